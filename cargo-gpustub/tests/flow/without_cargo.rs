//! Projects in C: `export stubs` and `check` with a `GpuStub.toml` that has no `Cargo.toml`, and by name.

use std::fs;
use std::path::Path;

use super::{acme, ends, package, write};

/// A library that gpustub knows, and a user-defined one.
const BOTH: &str = "schema = 1\n\n[stub.cudart]\nheader-version = \"12.9\"\n\n[stub.acme]\n\
                    load-names = { linux = [\"libacme.so.3\"] }\nsymbols = \"acme.symbols\"\n";

const LIST: &str =
    "@gpustub-symbols 1\n@soname libacme.so.3\n@machine x86_64\nacmeOpen returns=status\n";

fn declare(directory: &Path) {
    write(directory, "GpuStub.toml", BOTH);
    write(directory, "acme.symbols", LIST);
}

/// Libraries of an exported directory, by their lines in the table of functions.
fn stubbed(directory: &Path) -> Vec<String> {
    let table = fs::read_to_string(directory.join("src/gpustub_table.inc")).unwrap();
    table
        .lines()
        .filter_map(|line| line.strip_prefix("GPUSTUB_LIBRARY(")?.strip_suffix(')'))
        .map(str::to_owned)
        .collect()
}

/// Runs `export stubs` with these options; returns the libraries with stubs.
fn export(directory: &Path, options: &[&str]) -> Vec<String> {
    let command = ["export", "stubs", "--sources-only", "--out-dir", "out"];
    ends(0, directory, &[&command, options].concat());
    let libraries = stubbed(&directory.join("out"));
    fs::remove_dir_all(directory.join("out")).unwrap();
    libraries
}

#[test]
fn a_file_without_a_package_is_exported() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    declare(directory);
    assert_eq!(export(directory, &[]), ["acme", "cudart"]);
    write(directory, "elsewhere/x.c", "");
    let elsewhere = directory.join("elsewhere");
    let named = ["--manifest-path", "../GpuStub.toml"];
    assert_eq!(export(&elsewhere, &named), ["acme", "cudart"]);

    let out = ["export", "stubs", "--out-dir", "out"];
    let (_, err) = ends(
        101,
        &elsewhere,
        &[&out[..], &["-m", "GpuStub.toml"]].concat(),
    );
    assert!(err.contains("error: no file `GpuStub.toml`"), "{err}");
    let (_, err) = ends(101, directory, &[&out[..], &["-p", "user"]].concat());
    assert!(err.contains("no packages or features to select"), "{err}");
}

/// With a `Cargo.toml` beside it, the file is that of the package, whichever of them is named.
#[test]
fn a_package_is_named_by_either_file() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    package(directory, "user", "");
    declare(directory);
    for file in ["Cargo.toml", "GpuStub.toml"] {
        let options = ["--manifest-path", file, "-p", "user"];
        assert_eq!(export(directory, &options), ["acme", "cudart"], "{file}");
    }
}

#[test]
fn a_file_without_a_package_is_checked() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    declare(directory);
    let (_, err) = ends(0, directory, &["check"]);
    assert!(err.contains("Checked GpuStub.toml: nothing found"), "{err}");

    // Also below a package, to which the file does not belong.
    let above = tempfile::tempdir().unwrap();
    package(above.path(), "user", "");
    let below = above.path().join("native");
    declare(&below);
    let (_, err) = ends(0, &below, &["check"]);
    assert!(err.contains("Checked GpuStub.toml: nothing found"), "{err}");

    write(directory, "GpuStub.toml", &BOTH.replace("12.9", "19"));
    let (_, err) = ends(1, directory, &["check", "-m", "GpuStub.toml"]);
    assert!(
        err.contains("error[unknown-version]: unknown major 19"),
        "{err}"
    );
    assert!(err.contains(" --> GpuStub.toml:4:18"), "{err}");

    // `[policy]` applies to files.
    write(directory, "empty.a", "!<arch>\n");
    let policy = "schema = 1\n[policy.rules]\nmalformed-image = \"what\"\n";
    write(directory, "GpuStub.toml", policy);
    let (_, err) = ends(1, directory, &["check", "empty.a"]);
    assert!(err.contains("GpuStub.toml:3:"), "{err}");
}

#[test]
fn user_defined_libraries_are_exported_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    declare(directory);
    assert_eq!(export(directory, &["acme"]), ["acme"]);
    assert_eq!(export(directory, &["acme", "cudart"]), ["acme", "cudart"]);
    // A known library without a table takes the options, and its errors name no place in the file.
    let with_cuda = ["acme", "cuda", "--header-version", "13"];
    assert_eq!(export(directory, &with_cuda), ["acme", "cuda"]);
    let out = ["export", "stubs", "--out-dir", "out"];
    let (_, err) = ends(1, directory, &[&out[..], &with_cuda[..2]].concat());
    assert!(err.contains("error[missing-header-version]"), "{err}");
    assert!(err.contains("help: add `--header-version 13`"), "{err}");
    assert!(!err.contains("-->"), "{err}");
    let declared = ["acme", "cudart", "--header-version", "13"];
    let (_, err) = ends(101, directory, &[&out[..], &declared].concat());
    assert!(
        err.contains("help: set `header-version` in GpuStub.toml"),
        "{err}"
    );
    // Errors of the file come before those of the name.
    write(
        directory,
        "GpuStub.toml",
        &BOTH.replace("symbols =", "symbls ="),
    );
    let (_, err) = ends(1, directory, &[&out[..], &["acme"]].concat());
    assert!(err.contains("error[unknown-key]"), "{err}");
    let (_, err) = ends(
        1,
        Path::new("/"),
        &["export", "stubs", "acme", "--out-dir", "x"],
    );
    assert!(err.contains("error[unknown-library]"), "{err}");
}

#[test]
fn libraries_are_added_to_a_file_without_a_package() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    acme(directory);
    let add_acme = [
        "add",
        "acme",
        "--from",
        "libacme.so.3",
        "--returns",
        "status",
    ];
    for (add, next) in [
        (
            &add_acme[..],
            "in a project without cargo, write the line `schema = 1` to GpuStub.toml first",
        ),
        (
            &["add", "cudart", "--header-version", "12"],
            "`cargo gpustub export stubs cudart --header-version 12 --out-dir stubs`",
        ),
        (
            &["add"],
            "`cargo gpustub export stubs cudart --header-version 13 --out-dir stubs`",
        ),
    ] {
        let (_, err) = ends(101, directory, add);
        assert!(err.contains(next), "{err}");
    }
    write(directory, "GpuStub.toml", "schema = 1\n");
    let (_, err) = ends(0, directory, &add_acme);
    assert!(
        err.contains("Updated GpuStub.toml")
            && err.contains("next: `cargo gpustub export stubs --out-dir stubs`"),
        "{err}"
    );
    let (_, err) = ends(1, directory, &["add", "cudart"]);
    assert!(err.contains("error[missing-header-version]"), "{err}");
    ends(0, directory, &["add", "cudart", "--header-version", "12.9"]);
    let (_, err) = ends(0, directory, &["add", "nvrtc", "-m", "GpuStub.toml"]);
    assert!(err.contains("Found header version 12.9"), "{err}");
    assert_eq!(export(directory, &[]), ["acme", "cudart", "nvrtc"]);
    assert_eq!(export(directory, &["acme"]), ["acme"]);
    // An update of the list.
    let (_, err) = ends(0, directory, &add_acme);
    assert!(err.contains("Fresh acme"), "{err}");
}
