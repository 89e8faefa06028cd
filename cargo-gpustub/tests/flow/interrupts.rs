//! Runs that a signal or a limit ends: no temporary file stays, and the error names the file that was written.

use std::fs;
#[cfg(target_os = "linux")]
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
#[cfg(target_os = "linux")]
use std::os::unix::net::UnixListener;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

use super::repair::{COUNT, cudart, image};
use super::repair_wheels::{NAME, wheel};
use super::{ends, gpustub, write};

/// Bytes of data in the image, which hardly any compression makes smaller.
const SIZE: usize = 8 << 20;

/// Interrupts the process instead of renaming the temporary file of the wheel, which is complete then. Shells start jobs in the
/// background with SIGINT and SIGQUIT ignored, which programs inherit and keep (POSIX, "Signals and Error Handling" of the shell).
const INTERRUPT: &str = "#include <fcntl.h>\n#include <signal.h>\n#include <stdio.h>\n#include <stdlib.h>\n\
    #include <string.h>\n#include <unistd.h>\n\
    __attribute__((constructor)) static void handle(void)\n{\n    signal(SIGINT, SIG_DFL);\n\
    \x20   signal(SIGQUIT, SIG_DFL);\n}\n\
    int rename(const char *from, const char *to)\n{\n    if (!strstr(from, \".gpustub-\"))\n\
    \x20       return renameat(AT_FDCWD, from, AT_FDCWD, to);\n    if (access(from, F_OK))\n        abort();\n\
    \x20   kill(getpid(), atoi(getenv(\"SIGNAL\")));\n    for (;;)\n        pause();\n}\n";

/// A wheel with a large image, beside another large file.
fn large_wheel(directory: &Path) {
    cudart(directory, "12");
    // Xorshift (Marsaglia 2003).
    let mut state = 1_u64;
    let bytes: Vec<u8> = (0..SIZE / 8)
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

/// Shells report 130 for SIGINT (2), 131 for SIGQUIT (3) and 143 for SIGTERM (15).
#[test]
fn interrupted_runs_remove_their_temporary_files() {
    let work = tempfile::tempdir().unwrap();
    let directory = work.path();
    large_wheel(directory);
    write(directory, "interrupt.c", INTERRUPT);
    let flags = ["-shared", "-fPIC", "-o", "interrupt.so", "interrupt.c"];
    super::cc(directory, &flags);
    for number in [2, 3, 15] {
        let mut repair = gpustub(directory, &["repair", NAME, "--out-dir", "out"]);
        repair
            .env("LD_PRELOAD", directory.join("interrupt.so"))
            .env("SIGNAL", number.to_string());
        let output = repair.output().unwrap();
        assert_eq!(output.status.signal(), Some(number), "{output:?}");
        let names = names(&directory.join("out"));
        assert!(names.is_empty(), "{names:?}");
    }
}

/// A C compiler that interrupts its parent while the temporary directory exists, and stays.
const COMPILER: &str = "#!/bin/sh\n[ -n \"$(ls \"$TMPDIR\")\" ] || exit 1\necho $$ >\"$STARTED\"\n\
    kill -TERM $PPID\nexec sleep 600 </dev/null >/dev/null 2>&1\n";

#[test]
fn interrupted_runs_remove_their_temporary_directories() {
    let work = tempfile::tempdir().unwrap();
    let directory = work.path();
    cudart(directory, "12");
    image(directory, "libuser.so", COUNT, &["-shared"]);
    fs::create_dir(directory.join("tmp")).unwrap();
    write(directory, "cc", COMPILER);
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(directory.join("cc"), executable).unwrap();
    let started = directory.join("started");
    let mut repair = gpustub(directory, &["repair", "libuser.so", "--out-dir", "out"]);
    repair
        .env("TMPDIR", directory.join("tmp"))
        .env("CC", directory.join("cc"))
        .env("STARTED", &started);
    let output = repair.output().unwrap();
    assert_eq!(output.status.signal(), Some(15), "{output:?}");
    assert!(names(&directory.join("tmp")).is_empty());
    let compiler: u32 = fs::read_to_string(started).unwrap().trim().parse().unwrap();
    kill("-KILL", compiler);
}

/// A build script that ends its parent's parent and stays, with another process. Both keep the socket open.
#[cfg(target_os = "linux")]
const BUILD_SCRIPT: &str = r#"
use std::os::{fd::OwnedFd, unix::{net::UnixStream, process::parent_id}};
use std::process::Command;
fn main() {
    let mut socket = UnixStream::connect("../socket").unwrap();
    let status = std::fs::read_to_string(format!("/proc/{}/status", parent_id())).unwrap();
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap();
    let mut sleep = Command::new("sleep");
    sleep.arg("600").stdin(OwnedFd::from(socket.try_clone().unwrap()));
    let mut sleep = sleep.spawn().unwrap();
    assert!(Command::new("kill").args(["-TERM", parent.trim()]).status().unwrap().success());
    sleep.wait().unwrap();
    std::io::Write::write_all(&mut socket, b"stayed").unwrap();
}
"#;

#[test]
#[cfg(target_os = "linux")]
fn interrupted_checks_end_the_build_scripts() {
    let work = tempfile::tempdir().unwrap();
    let directory = work.path();
    let demo = directory.join("demo");
    super::package(&demo, "demo", "");
    write(&demo, "build.rs", BUILD_SCRIPT);
    let listener = UnixListener::bind(directory.join("socket")).unwrap();
    let output = gpustub(&demo, &["check", "--build"]).output().unwrap();
    assert_eq!(output.status.signal(), Some(15), "{output:?}");
    listener.set_nonblocking(true).unwrap();
    let (mut socket, _) = listener.accept().unwrap();
    socket.set_nonblocking(false).unwrap();
    let mut text = String::new();
    socket.read_to_string(&mut text).unwrap();
    assert_eq!(text, "");
}

/// The limit of a file's size stands for a full file system. The first is below the size of the image, the second below that
/// of the wheel.
#[test]
fn failed_writes_name_the_file_that_was_written() {
    let work = tempfile::tempdir().unwrap();
    let directory = work.path();
    large_wheel(directory);
    let temp = std::env::temp_dir();
    let temp = temp.display();
    // Blocks of 512 bytes (POSIX, ulimit).
    for (limit, message) in [
        (
            SIZE / 1024,
            format!("could not write a temporary file in `{temp}` for `{NAME}"),
        ),
        (
            (SIZE + (1 << 19)) / 512,
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
