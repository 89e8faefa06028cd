//! Completions, colours, pipes.

use std::io::Read;
use std::path::Path;
use std::process::Stdio;

use super::{ends, gpustub};

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
    let coloured = |arguments: &[&str], variable: &str| {
        let mut command = gpustub(Path::new("/"), arguments);
        let output = command.env("CARGO_TERM_COLOR", variable).output().unwrap();
        let both = [output.stdout, output.stderr].concat();
        assert!(!both.is_empty());
        both.contains(&0x1b)
    };
    for arguments in [
        &["--help"][..],
        &["syn"],
        &["explain", "nothing"],
        &["add", "nothing"],
    ] {
        assert!(coloured(arguments, "always"), "{arguments:?}");
        assert!(!coloured(arguments, "never"), "{arguments:?}");
        let with = |choice| [arguments, &["--color", choice]].concat();
        assert!(coloured(&with("always"), "never"), "{arguments:?}");
        assert!(!coloured(&with("never"), "always"), "{arguments:?}");
    }
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
