//! `repair` of wheels whose archives are unusual.

use std::fs;
use std::path::Path;

use super::pack::pack;
use super::repair::{COUNT, cudart, image};
use super::repair_wheels::{NAME, contents, needed, wheel};
use super::{ends, write};

/// Offset of the size of the comment in the end record (APPNOTE.TXT 4.3.16).
const COMMENT_SIZE: usize = 20;

/// Packs a wheel with an image that calls cudart, and with the further files `more`.
fn wheel_with(directory: &Path, path: &str, more: &[(&str, &str)]) {
    cudart(directory, "12");
    image(directory, &format!("content/{path}"), COUNT, &["-shared"]);
    wheel(directory, more);
}

#[test]
fn comment_and_quoted_record_of_a_wheel_are_read() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    wheel_with(directory, "acme/_core.so", &[]);
    let record = "content/acme-1.0.dist-info/RECORD";
    let text = fs::read_to_string(directory.join(record)).unwrap();
    let quoted = |line: &str| format!("\"{}\"\n", line.replace(',', "\",\""));
    write(
        directory,
        record,
        &text.lines().map(quoted).collect::<String>(),
    );
    let path = directory.join(NAME);
    pack(&directory.join("content"), &[], &path).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let end = bytes.len() - 22;
    bytes[end + COMMENT_SIZE] = 5;
    bytes.extend_from_slice(b"built");
    fs::write(&path, bytes).unwrap();

    ends(0, directory, &["repair", NAME, "--out-dir", "out"]);
    let repaired = directory.join("out").join(NAME);
    assert!(fs::read(&repaired).unwrap().ends_with(b"\x05\0built"));
    let files = contents(&repaired);
    assert_eq!(needed(&files, "acme/_core.so")[0], "libgpustub_acme_1_0.so");
    let (out, err) = ends(0, directory, &["check", &format!("out/{NAME}")]);
    assert!(err.contains("nothing found"), "{out}{err}");
}

/// Its run path would lead one directory too high.
#[test]
fn member_whose_path_is_not_normalized_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    wheel_with(directory, "acme/xx/core.so", &[]);
    let path = directory.join(NAME);
    let mut bytes = fs::read(&path).unwrap();
    for start in 0..bytes.len() - 8 {
        if bytes[start..].starts_with(b"acme/xx/") {
            bytes[start..start + 8].copy_from_slice(b"acme/./x");
        }
    }
    fs::write(&path, bytes).unwrap();
    let (_, err) = ends(1, directory, &["repair", NAME, "--out-dir", "out"]);
    assert!(
        err.contains("not rewritten: `acme/./xcore.so`: `.` or nothing between"),
        "{err}"
    );
    assert!(!directory.join("out").exists());
}

/// The file would have to be a directory.
#[test]
fn file_in_place_of_the_directory_of_stubs_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    wheel_with(directory, "acme/_core.so", &[("acme.libs", "text")]);
    let (_, err) = ends(101, directory, &["repair", NAME, "--out-dir", "out"]);
    assert!(err.contains("already has `acme.libs`"), "{err}");
    assert!(!directory.join("out").join(NAME).exists());
}
