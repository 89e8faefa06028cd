//! Test: command lines quoted in explanations, messages and documents parse.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use gpustub_workspace::codes;
use gpustub_workspace::display_path::slashes;

use super::{arguments, command};

/// The command lines in a text: after `$ ` or an indentation, and between back-ticks.
fn quoted(text: &str) -> Vec<String> {
    let mut commands = Vec::new();
    for line in text.lines() {
        let line = line.trim_start().trim_start_matches("$ ");
        if line.starts_with("cargo gpustub ") {
            commands.push(line.split(" #").next().unwrap_or_default().to_owned());
            continue;
        }
        for span in line.split('`').skip(1).step_by(2) {
            if span.starts_with("cargo gpustub ") {
                commands.push(span.to_owned());
            }
        }
    }
    commands
}

/// Parses a command line; placeholders are replaced by values. Returns the error.
fn parse(line: &str, origin: &str) -> Option<String> {
    // Several commands, a redirection, or text after the command.
    let line = line
        .split([';', '>', '|', '&', ')'])
        .next()
        .unwrap_or_default();
    if line.contains(['…', '{', '\\']) || line.contains("$(") || line.ends_with("<TAB") {
        return None;
    }
    let line = line
        .trim_end_matches(['"', ',', ' '])
        .replace("VERSION", "12")
        .replace("NAME=FILE", "a=b");
    let mut words = vec![OsString::from("cargo-gpustub")];
    words.extend(line.split_whitespace().skip(1).map(OsString::from));
    let error = command().try_get_matches_from(arguments(words)).err()?;
    let is_quotable = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => true,
        // Name of a command alone: `cargo gpustub add`.
        ErrorKind::MissingRequiredArgument | ErrorKind::MissingSubcommand => !line.contains(" -"),
        // Option without its value: `cargo gpustub add --toolkit`.
        ErrorKind::InvalidValue => line
            .split(' ')
            .next_back()
            .is_some_and(|word| word.starts_with("--")),
        _ => false,
    };
    (!is_quotable).then(|| format!("{origin}: {line}\n{error}"))
}

#[test]
fn explanations_quote_command_lines_that_parse() {
    let (mut count, mut errors) = (0, Vec::new());
    for code in codes::all_codes() {
        for line in quoted(code.explanation) {
            errors.extend(parse(&line, code.id));
            count += 1;
        }
    }
    assert!(errors.is_empty(), "{}", errors.join("\n"));
    assert!(count > 10, "{count}");
}

/// Adds the files below a directory of the repository.
fn collect_files(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect_files(&path, files);
        } else {
            files.push(path);
        }
    }
}

#[test]
fn messages_and_documents_quote_command_lines_that_parse() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = vec![repository.join("README.md")];
    for directory in [
        "cargo-gpustub/src",
        "crates",
        "docs",
        "gpustub-build/src",
        "templates",
    ] {
        collect_files(&repository.join(directory), &mut files);
    }
    let (mut count, mut errors) = (0, Vec::new());
    for path in files {
        let extension = path.extension().and_then(OsStr::to_str);
        let is_text = matches!(
            extension,
            Some("rs" | "md" | "hbs" | "c" | "h" | "yml" | "yaml" | "toml")
        );
        let name = slashes(&path);
        if !is_text || name.contains("/target/") {
            continue;
        }
        // A string that is broken into lines continues on the next.
        let text = fs::read_to_string(&path).unwrap_or_default();
        for line in quoted(&with_joined_lines(&text)) {
            errors.extend(parse(&line, &name));
            count += 1;
        }
    }
    assert!(errors.is_empty(), "{}", errors.join("\n"));
    assert!(count > 60, "{count}");
}

/// The text with the lines of broken string literals joined.
fn with_joined_lines(text: &str) -> String {
    let mut lines = String::new();
    let mut continues = false;
    for line in text.lines() {
        let line = if continues { line.trim_start() } else { line };
        match line.strip_suffix('\\') {
            Some(start) => lines.push_str(start),
            None => {
                lines.push_str(line);
                lines.push('\n');
            }
        }
        continues = line.ends_with('\\');
    }
    lines
}
