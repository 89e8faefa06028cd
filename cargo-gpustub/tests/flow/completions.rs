//! Completion, as shells request it.

#![allow(clippy::disallowed_methods, reason = "shells find the tool by PATH")]

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use snapbox::cmd::cargo_bin;

use super::{package, write};

/// A package `user`, in a workspace with `kernels`.
fn workspace(directory: &Path) {
    package(directory, "user", "[workspace]\nmembers = [\"kernels\"]\n");
    package(&directory.join("kernels"), "kernels", "");
    write(directory, "GpuStub.toml", "schema = 1\n\n[stub.nvrtc]\n");
}

/// Typed words, and candidates of which some must be offered.
const CASES: &[(&[&str], &[&str])] = &[
    (&["cargo-gpustub", "sy"], &["symbols", "sync"]),
    (&["cargo", "gpustub", "sy"], &["symbols", "sync"]),
    (
        &["cargo", "gpustub", "export", ""],
        &["device-link", "stubs"],
    ),
    (
        &["cargo", "gpustub", "add", "cud"],
        &["cuda", "cudart", "cudnn"],
    ),
    (&["cargo", "gpustub", "add", "cudart", "nvr"], &["nvrtc"]),
    (&["cargo", "gpustub", "remove", ""], &["nvrtc"]),
    (
        &["cargo", "gpustub", "explain", "unknown-k"],
        &["unknown-key"],
    ),
    (
        &["cargo", "gpustub", "sync", "-p", ""],
        &["kernels", "user"],
    ),
    (&["cargo-gpustub", "plan", "--package", "u"], &["user"]),
    (
        &["cargo", "gpustub", "sync", "--exclude", "k"],
        &["kernels"],
    ),
    (
        &["cargo", "gpustub", "check", "-D", "needed-"],
        &["needed-driver", "needed-toolkit"],
    ),
    (&["cargo-gpustub", "archive", "e"], &["extract"]),
];

/// Runs a shell on a script in a workspace, with the tool in PATH; returns its output words.
fn ask(shell: &str, arguments: &[&str], script: &str) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    workspace(directory.path());
    let mut path = OsString::from(cargo_bin!("cargo-gpustub").parent().unwrap());
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap());
    let output = Command::new(shell)
        .args(arguments)
        .args(["-c", script])
        .current_dir(directory.path())
        .env("PATH", path)
        .env("HOME", directory.path())
        .env(
            "CARGO_HOME",
            std::env::var_os("CARGO_HOME").unwrap_or_else(|| "/root/.cargo".into()),
        )
        .env("CARGO_NET_OFFLINE", "true")
        .output()
        .unwrap_or_else(|error| panic!("{shell}: {error}"));
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && err.is_empty(), "{script}\n{err}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.split_whitespace().map(str::to_owned).collect()
}

fn quoted(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    quoted.join(" ")
}

/// Runs the script of each case; its output must have the expected candidates.
fn check_cases(shell: &str, arguments: &[&str], script: fn(&[&str]) -> String) {
    for (words, expected) in CASES {
        let candidates = ask(shell, arguments, &script(words));
        for word in *expected {
            assert!(
                candidates.iter().any(|candidate| candidate == word),
                "{words:?}: {candidates:?}"
            );
        }
    }
}

/// Calls the functions that the script registers with `complete -F`, as readline does.
#[test]
fn bash_completes_the_tool_and_the_subcommand_of_cargo() {
    check_cases("bash", &["--norc", "--noprofile"], |words| {
        let current = words.len() - 1;
        format!(
            "source <(cargo-gpustub completions bash)\n\
             COMP_WORDS=({}) COMP_CWORD={current} COMP_TYPE=9\n\
             registered=$(complete -p {})\n\
             [[ $registered =~ -F\\ ([^ ]+) ]]\n\
             \"${{BASH_REMATCH[1]}}\" {} '{}' '{}'\n\
             printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            quoted(words),
            words[0],
            words[0],
            words[current],
            words[current - 1],
        )
    });
}

/// Other subcommands of cargo keep their previous completion.
#[test]
fn bash_keeps_the_completion_of_cargo() {
    let script = "_cargo() { COMPREPLY=(former); }\ncomplete -F _cargo cargo\n\
                  source <(cargo-gpustub completions bash)\n\
                  source <(cargo-gpustub completions bash)\n\
                  COMP_WORDS=(cargo bui) COMP_CWORD=1\n\
                  _gpustub_in_cargo cargo bui cargo\nprintf '%s\\n' \"${COMPREPLY[@]}\"";
    assert_eq!(ask("bash", &["--norc", "--noprofile"], script), ["former"]);
}

/// readline escapes the names that are declared as those of files; a name with a star is not expanded.
#[test]
fn bash_escapes_names_of_files() {
    let script = "touch 'wheel a.whl' 'wheel*.whl'\n\
                  compopt() { printf '%s ' \"$@\"; }\n\
                  source <(cargo-gpustub completions bash)\n\
                  COMP_WORDS=(cargo-gpustub check wheel) COMP_CWORD=2\n\
                  _gpustub cargo-gpustub wheel check\nprintf '<%s>' \"${COMPREPLY[@]}\"";
    let words = ask("bash", &["--norc", "--noprofile"], script);
    assert_eq!(words, ["-o", "filenames", "<wheel", "a.whl><wheel*.whl>"]);
}

#[test]
#[ignore = "needs fish"]
fn fish_completes_the_tool_and_the_subcommand_of_cargo() {
    check_cases("fish", &["--no-config"], |words| {
        format!(
            "cargo-gpustub completions fish | source\ncomplete --do-complete '{}' | cut --fields 1",
            words.join(" ")
        )
    });
}

/// zsh completes only in its line editor: the function is called with `_describe` replaced.
#[test]
#[ignore = "needs zsh"]
fn zsh_completes_the_tool_and_the_subcommand_of_cargo() {
    check_cases("zsh", &["-f"], |words| {
        // `_cargo` calls `_cargo-gpustub` with the words after `cargo`.
        let words = words.strip_prefix(&["cargo"]).unwrap_or(words);
        format!(
            "compdef() {{ :; }}\n_files() {{ :; }}\n\
             _describe() {{ local name=$3; [[ $1 == -V ]] && name=$3; print -rl -- \"${{(@)${{(P)name}}%%:*}}\"; }}\n\
             source <(cargo-gpustub completions zsh)\n\
             words=({}) CURRENT={}\n_cargo-gpustub",
            quoted(words),
            words.len(),
        )
    });
}
