//! Completions, colours, pipes.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{ends, gpustub, package, write};

#[test]
fn completions_are_printed_for_each_shell() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let (script, err) = ends(0, Path::new("."), &["completions", shell]);
        assert!(
            script.contains("cargo-gpustub") && err.is_empty(),
            "{shell}"
        );
    }
}

/// Cargo's choice of colours applies to help, errors and findings; `--color` has precedence.
#[test]
fn colours_follow_cargo() {
    for arguments in [
        &["--help"][..],
        &["syn"],
        &["explain", "nothing"],
        &["add", "nothing"],
    ] {
        assert!(is_coloured(arguments, "always"), "{arguments:?}");
        assert!(!is_coloured(arguments, "never"), "{arguments:?}");
        let always = [arguments, &["--color", "always"]].concat();
        assert!(is_coloured(&always, "never"), "{arguments:?}");
        let never = [arguments, &["--color", "never"]].concat();
        assert!(!is_coloured(&never, "always"), "{arguments:?}");
    }
}

/// Whether a command has coloured output with this value of `CARGO_TERM_COLOR`.
fn is_coloured(arguments: &[&str], variable: &str) -> bool {
    let mut command = gpustub(Path::new("/"), arguments);
    let output = command.env("CARGO_TERM_COLOR", variable).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    assert!(!text.is_empty());
    text.contains(&0x1b)
}

/// A closed pipe is no error, for any output.
#[test]
fn a_closed_pipe_is_no_error() {
    let mut child = gpustub(Path::new("."), &["schema"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut err = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut err)
        .unwrap();
    assert_eq!((child.wait().unwrap().code(), err.as_str()), (Some(0), ""));
}

/// Output that cannot be written is an error, for any output.
#[test]
fn a_full_disk_is_an_error() {
    for arguments in [&["--help"][..], &["schema"], &["explain", "--list"]] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let status = gpustub(Path::new("."), arguments)
            .stdout(full)
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert_eq!(status.code(), Some(101), "{arguments:?}");
    }
}

/// Standard output and standard error of the subcommand on a terminal.
fn on_terminal(directory: &Path, arguments: &str, terminal: &str) -> String {
    let program = env!("CARGO_BIN_EXE_cargo-gpustub");
    shell_on_terminal(directory, &format!("{program} {arguments}"), terminal)
}

/// Output of a shell command on a terminal, which `script` provides.
fn shell_on_terminal(directory: &Path, command: &str, terminal: &str) -> String {
    let output = Command::new("script")
        .current_dir(directory)
        .args(["-q", "-e", "-c", command, "/dev/null"])
        .env("TERM", terminal)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// Long work has a status line on a terminal, which is removed at the end; no line in a pipe. Without a
/// time to wait, the line is drawn for each file.
#[test]
fn long_work_has_a_status_line_on_a_terminal_only() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    write(directory, "d/one.so", "text");
    write(directory, "d/two.so", &" ".repeat(3_500_000));
    let check = "check --status-after 0 --color never d";
    let out = on_terminal(directory, check, "xterm");
    for file in ["d/one.so", "d/two.so 3 MB"] {
        let line = format!("\r\u{1b}[K\u{1b}[?7l    Checking {file}\u{1b}[?7h");
        assert!(out.contains(&line), "{out:?}");
    }
    let end = "\r\u{1b}[K     Checked 2 files: nothing found\r\n";
    assert!(out.ends_with(end), "{out:?}");
    let summary = "     Checked 2 files: nothing found";
    for (arguments, terminal, expected) in [
        (check, "dumb", format!("{summary}\r\n")),
        ("check -q --status-after 0 d", "xterm", String::new()),
        (
            "check --color never --status-after 3600000 d",
            "xterm",
            format!("{summary}\r\n"),
        ),
    ] {
        let out = on_terminal(directory, arguments, terminal);
        assert_eq!(out, expected, "{arguments}");
    }
    let (out, err) = ends(0, directory, &["check", "--status-after", "0", "d"]);
    assert_eq!((out, err), (String::new(), format!("{summary}\n")));
}

/// The line stays below the errors of cargo.
#[test]
fn builds_have_a_status_line_on_a_terminal_only() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    package(directory, "demo", "");
    write(directory, "GpuStub.toml", "schema = 1\n");
    let script = "fn main() { eprintln!(\"one\"); eprint!(\"two\"); std::process::exit(1) }";
    write(directory, "build.rs", script);
    let check = "check --build --offline --allow all --status-after 0 --color never";
    let line = "\r\u{1b}[K\u{1b}[?7l    Building demo\u{1b}[?7h";
    let out = on_terminal(directory, check, "xterm");
    let erased = "\r\u{1b}[K";
    assert!(out.starts_with(line), "{out:?}");
    let lines = out.replace(line, "").replace(erased, "");
    for message in [
        "  one\r\n",
        "  two",
        "\r\nerror: could not run the build scripts",
    ] {
        assert!(lines.contains(message), "{out:?}");
    }
    let (out, _) = out.split_once("error: could not run").unwrap();
    assert!(out.ends_with(erased), "{out:?}");
    write(directory, "build.rs", "fn main() {}");
    let out = on_terminal(directory, check, "xterm");
    let end = format!("{line}{erased}     Checked 1 package: nothing found\r\n");
    assert_eq!(out, end);
    let arguments: Vec<&str> = check.split(' ').collect();
    let (out, err) = ends(0, directory, &arguments);
    let summary = "     Checked 1 package: nothing found\n";
    assert_eq!((out.as_str(), err.as_str()), ("", summary));
}

/// The build script ends the subcommand, whose process the shell becomes. By SIGTERM: a test run in the background ignores SIGINT.
#[test]
fn an_interrupted_run_leaves_no_status_line() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    package(directory, "demo", "");
    write(directory, "GpuStub.toml", "schema = 1\n");
    let script = "fn main() {\n    let process = std::fs::read_to_string(\"process\").unwrap();\n    \
        std::process::Command::new(\"kill\").args([\"-TERM\", process.trim()]).status().unwrap();\n    \
        loop {\n        std::thread::park();\n    }\n}\n";
    write(directory, "build.rs", script);
    let program = env!("CARGO_BIN_EXE_cargo-gpustub");
    let check = "check --build --offline --allow all --status-after 0 --color never";
    let command = format!("echo $$ >process; exec {program} {check}");
    let out = shell_on_terminal(directory, &command, "xterm");
    let expected = "\r\u{1b}[K\u{1b}[?7l    Building demo\u{1b}[?7h\r\u{1b}[K";
    assert_eq!(out, expected);
}
