//! Runs that a signal or a limit ends: no temporary file stays, and the error names the file that was written.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use super::repair::{COUNT, cudart, image};
use super::repair_wheels::{NAME, wheel};
use super::{ends, gpustub, write};

/// Bytes of data in the image, which hardly any compression makes smaller: more, if a busy machine lets runs end before
/// the signal arrives.
const SIZES: [usize; 3] = [8 << 20, 32 << 20, 128 << 20];

/// A wheel with a large image, beside another large file.
fn large_wheel(directory: &Path, size: usize) {
    cudart(directory, "12");
    // Xorshift (Marsaglia 2003).
    let mut state = 1_u64;
    let bytes: Vec<u8> = (0..size / 8)
        .flat_map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()
        })
        .collect();
    fs::write(directory.join("data"), &bytes).unwrap();
    let data = "asm(\".data\\n.incbin \\\"data\\\"\\n\");\n";
    image(
        directory,
        "content/acme/_core.so",
        &format!("{data}{COUNT}"),
        &["-shared"],
    );
    fs::write(directory.join("content/acme/more"), &bytes[..1 << 20]).unwrap();
    wheel(directory, &[]);
}

fn names(directory: &Path) -> Vec<String> {
    fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect()
}

/// Sends a signal to a process.
fn kill(signal: &str, process: u32) {
    let mut kill = Command::new("kill");
    assert!(
        kill.args([signal, &process.to_string()])
            .status()
            .unwrap()
            .success()
    );
}

/// Number of the signal that ended a `repair` into `out`, which is sent as soon as the output is being written; none if
/// the run ended before.
fn interrupted_repair(directory: &Path, signal: &str) -> Option<i32> {
    let out = directory.join("out");
    let _ = fs::remove_dir_all(&out);
    let mut repair = gpustub(directory, &["repair", NAME, "--out-dir", "out"]);
    let mut process = repair.stderr(Stdio::null()).spawn().unwrap();
    while names(&out).iter().all(|name| !name.starts_with('.')) {
        if process.try_wait().unwrap().is_some() {
            return None;
        }
        thread::sleep(Duration::from_millis(1));
    }
    kill(signal, process.id());
    process.wait().unwrap().signal()
}

/// Shells report 130 for SIGINT (2) and 143 for SIGTERM (15).
#[test]
fn interrupted_runs_remove_their_temporary_files() {
    let work = tempfile::tempdir().unwrap();
    let directory = work.path();
    large_wheel(directory, SIZES[0]);
    for (signal, number) in [("-INT", 2), ("-TERM", 15)] {
        let ended_by = SIZES.iter().find_map(|&size| {
            if size != SIZES[0] {
                large_wheel(directory, size);
            }
            (0..5).find_map(|_| interrupted_repair(directory, signal))
        });
        assert_eq!(ended_by, Some(number));
        let names = names(&directory.join("out"));
        assert!(names.is_empty(), "{names:?}");
    }
}

/// A C compiler that waits while the temporary directory exists.
#[test]
fn interrupted_runs_remove_their_temporary_directories() {
    let work = tempfile::tempdir().unwrap();
    let directory = work.path();
    cudart(directory, "12");
    image(directory, "libuser.so", COUNT, &["-shared"]);
    fs::create_dir(directory.join("tmp")).unwrap();
    let compiler =
        "#!/bin/sh\necho $$ >\"$STARTED.new\"; mv \"$STARTED.new\" \"$STARTED\"; exec sleep 60\n";
    write(directory, "cc", compiler);
    super::cc(directory, &["--version"]);
    let mut chmod = Command::new("chmod");
    assert!(
        chmod
            .arg("+x")
            .arg(directory.join("cc"))
            .status()
            .unwrap()
            .success()
    );
    let started = directory.join("started");
    let mut repair = gpustub(directory, &["repair", "libuser.so", "--out-dir", "out"]);
    repair
        .env("TMPDIR", directory.join("tmp"))
        .env("CC", directory.join("cc"))
        .env("STARTED", &started);
    let mut process = repair.stderr(Stdio::null()).spawn().unwrap();
    while !started.exists() {
        assert!(process.try_wait().unwrap().is_none());
        thread::sleep(Duration::from_millis(1));
    }
    assert!(!names(&directory.join("tmp")).is_empty());
    kill("-TERM", process.id());
    assert_eq!(process.wait().unwrap().signal(), Some(15));
    assert!(names(&directory.join("tmp")).is_empty());
    let compiler: u32 = fs::read_to_string(started).unwrap().trim().parse().unwrap();
    kill("-KILL", compiler);
}

/// The limit of a file's size stands for a full file system. The first is below the size of the image, the second below that
/// of the wheel.
#[test]
fn failed_writes_name_the_file_that_was_written() {
    let work = tempfile::tempdir().unwrap();
    let directory = work.path();
    large_wheel(directory, SIZES[0]);
    let temp = std::env::temp_dir();
    let temp = temp.display();
    // Blocks of 512 bytes (POSIX, ulimit).
    for (limit, message) in [
        (
            SIZES[0] / 1024,
            format!("could not write a temporary file in `{temp}` for `{NAME}"),
        ),
        (
            (SIZES[0] + (1 << 19)) / 512,
            format!("could not write `out/{NAME}`"),
        ),
    ] {
        let mut repair = Command::new("sh");
        repair
            .current_dir(directory)
            .args(["-c", "ulimit -f $0; exec \"$@\"", &limit.to_string()])
            .args([
                env!("CARGO_BIN_EXE_cargo-gpustub"),
                "gpustub",
                "repair",
                NAME,
                "--out-dir",
                "out",
            ]);
        let output = repair.output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(101), "{err}");
        assert!(
            err.contains(&message) && err.contains("File too large"),
            "{message}\n{err}"
        );
        let names = names(&directory.join("out"));
        assert!(names.is_empty(), "{names:?}");
    }
    ends(
        0,
        directory,
        &["repair", NAME, "--out-dir", "out", "--dry-run"],
    );
}
