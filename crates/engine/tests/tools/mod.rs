//! Tools of the machine that the tests run on.

use std::ffi::OsStr;
use std::process::Command;

/// Output of a tool, which must succeed.
pub fn output<S: AsRef<OsStr>>(program: &str, words: impl IntoIterator<Item = S>) -> String {
    let output = Command::new(program).args(words).output().unwrap();
    assert!(
        output.status.success(),
        "{program}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// Output of a tool for a file.
pub fn tool_output(program: &str, options: &[&str], file: &std::path::Path) -> String {
    let words = options.iter().map(OsStr::new).chain([file.as_os_str()]);
    output(program, words)
}

/// Triple of this machine, from rustc.
pub fn host() -> String {
    output("rustc", ["-vV"])
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .unwrap()
        .to_owned()
}
