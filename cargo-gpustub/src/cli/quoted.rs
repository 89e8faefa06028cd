//! Test: command lines quoted in explanations, messages and documents parse.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use gpustub_workspace::codes;

use super::{arguments, command};

/// The command lines in a text: after `$ ` or an indentation, and between back-ticks.
fn quoted(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in text.lines() {
        let line = line.trim_start().trim_start_matches("$ ");
        if line.starts_with("cargo gpustub ") {
            found.push(line.split(" #").next().unwrap_or_default().to_owned());
            continue;
        }
        let spans = line.split('`').skip(1).step_by(2);
        let commands = spans.filter(|span| span.starts_with("cargo gpustub "));
        found.extend(commands.map(str::to_owned));
    }
    found
}

/// Parses a command line; placeholders are replaced by values.
fn check(line: &str, origin: &str) -> Option<String> {
    // Several commands, a redirection, or text after the command.
    let line = line
        .split([';', '>', '|', '&', ')'])
        .next()
        .unwrap_or_default();
    if line.contains(['…', '{', '\\']) || line.contains("$(") || line.ends_with("<TAB") {
        return None;
    }
    let line = line.trim_end_matches(['"', ',', ' ']);
    let line = line.replace("VERSION", "12").replace("NAME=FILE", "a=b");
    let words = line.split_whitespace().skip(1).map(OsString::from);
    let words = [vec!["cargo-gpustub".into()], words.collect()].concat();
    if let Err(error) = command().try_get_matches_from(arguments(words)) {
        use clap::error::ErrorKind as Kind;
        // Name of a command alone: `cargo gpustub add`.
        let is_name = [Kind::MissingRequiredArgument, Kind::MissingSubcommand];
        let is_help = [
            Kind::DisplayHelp,
            Kind::DisplayHelpOnMissingArgumentOrSubcommand,
        ];
        let is_name = is_name.contains(&error.kind()) && !line.contains(" -");
        // Option without its value: `cargo gpustub add --toolkit`.
        let last = line.split(' ').next_back().unwrap_or_default();
        let is_option = error.kind() == Kind::InvalidValue && last.starts_with("--");
        if !is_name && !is_option && !is_help.contains(&error.kind()) {
            return Some(format!("{origin}: {line}\n{error}"));
        }
    }
    None
}

#[test]
fn explanations_quote_command_lines_that_parse() {
    let (mut count, mut wrong) = (0, Vec::new());
    for code in codes::all() {
        for line in quoted(code.explanation) {
            wrong.extend(check(&line, code.id));
            count += 1;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 10, "{count}");
}

/// Files below a directory of the repository.
fn files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

#[test]
fn messages_and_documents_quote_command_lines_that_parse() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut all = vec![repository.join("README.md")];
    for directory in [
        "cargo-gpustub/src",
        "crates",
        "docs",
        "gpustub-build/src",
        "templates",
    ] {
        files(&repository.join(directory), &mut all);
    }
    let (mut count, mut wrong) = (0, Vec::new());
    for path in all {
        let shown = path.display().to_string();
        let extensions = ["rs", "md", "hbs", "c", "h", "yml", "yaml", "toml"];
        let is_text = extensions
            .iter()
            .any(|end| shown.ends_with(&format!(".{end}")));
        if !is_text || shown.contains("/target/") {
            continue;
        }
        // A string that is broken into lines continues on the next.
        let text = fs::read_to_string(&path).unwrap_or_default();
        for line in quoted(&joined(&text)) {
            wrong.extend(check(&line, &shown));
            count += 1;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 60, "{count}");
}

/// The text with the lines of broken string literals joined.
fn joined(text: &str) -> String {
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
