//! Shell completion: scripts that run this program at each TAB, and candidate values.
//!
//! `cargo gpustub <TAB>` is also completed. zsh's `_cargo` calls `_cargo-gpustub` itself; in bash
//! and fish the completion of `cargo` is unchanged for all other subcommands.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;

use clap::Command;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use clap_complete::env::Shells;
use clap_complete::{CompleteEnv, Shell};
use gpustub_check::RULES;
use gpustub_check::policy::ALL_RULES;
use gpustub_core::library::Library;
use gpustub_core::manifest::Manifest;
use gpustub_workspace::codes;
use gpustub_workspace::tables::FILE;

/// Environment variable in which a completion script names its shell.
const VARIABLE: &str = "COMPLETE";
const NAME: &str = "cargo-gpustub";

/// Prints completions if a shell requested them, and returns whether it did.
pub fn complete_if_requested(
    arguments: &[OsString],
    definition: impl Fn() -> Command,
) -> clap::error::Result<bool> {
    // Scripts pass the words after `cargo`, so both forms are handled alike.
    let current_dir = std::env::current_dir().ok();
    CompleteEnv::with_factory(definition)
        .var(VARIABLE)
        .bin(NAME)
        .try_complete(arguments, current_dir.as_deref())
}

/// The script that registers the completion with a shell.
pub fn registration(shell: Shell) -> io::Result<Vec<u8>> {
    match shell {
        Shell::Bash => return Ok(include_str!("complete/bash.sh").into()),
        Shell::Fish => return Ok(include_str!("complete/fish.fish").into()),
        Shell::Zsh => return Ok(include_str!("complete/zsh.zsh").into()),
        _ => {}
    }
    let shells = Shells::builtins();
    let completer = shells
        .completer(&shell.to_string())
        .ok_or_else(|| io::Error::other("unknown shell"))?;
    let mut script = Vec::new();
    completer.write_registration(VARIABLE, NAME, NAME, NAME, &mut script)?;
    Ok(script)
}

/// Adds candidate values for completion to a definition.
pub fn with_values(mut command: Command) -> Command {
    let completions: [(&str, &str, Values); 6] = [
        ("add", "libraries", libraries),
        ("remove", "libraries", declared_libraries),
        ("explain", "code", codes),
        ("check", "allow", rules),
        ("check", "warn", rules),
        ("check", "deny", rules),
    ];
    for (name, id, values) in completions {
        command = with_argument_values(command, name, id, values);
    }
    command = command.mut_subcommand("export", |export| {
        with_argument_values(export, "stubs", "libraries", exportable_libraries)
    });
    with_packages(command)
}

/// Adds candidate values to an argument of a subcommand.
fn with_argument_values(command: Command, name: &str, id: &'static str, values: Values) -> Command {
    command.mut_subcommand(name, |subcommand| {
        subcommand.mut_arg(id, |arg| arg.add(ArgValueCompleter::new(values)))
    })
}

type Values = fn(&OsStr) -> Vec<CompletionCandidate>;

/// Adds package names to `-p` and `--exclude` of each command that has them.
fn with_packages(mut command: Command) -> Command {
    let names: Vec<String> = command
        .get_subcommands()
        .map(|subcommand| subcommand.get_name().to_owned())
        .collect();
    for name in names {
        command = command.mut_subcommand(name, with_packages);
    }
    for id in ["package", "exclude"] {
        if command.get_arguments().any(|arg| arg.get_id() == id) {
            command = command.mut_arg(id, |arg| arg.add(ArgValueCompleter::new(packages)));
        }
    }
    command
}

/// The values that start with the typed text, each with its help.
fn candidates<'a>(
    typed: &OsStr,
    values: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    values
        .into_iter()
        .filter(|(value, _)| value.starts_with(&*typed))
        .map(|(value, help)| {
            let help = (!help.is_empty()).then(|| help.to_owned().into());
            CompletionCandidate::new(value).help(help)
        })
        .collect()
}

fn libraries(typed: &OsStr) -> Vec<CompletionCandidate> {
    candidates(
        typed,
        Library::builtin_ids()
            .filter_map(Library::builtin)
            .map(|library| (library.id.as_str(), library.title.as_str())),
    )
}

/// Libraries in the GpuStub.toml of the current directory; without one, every known library.
fn declared_libraries(typed: &OsStr) -> Vec<CompletionCandidate> {
    let Ok(text) = std::fs::read_to_string(Path::new(FILE)) else {
        return libraries(typed);
    };
    let (manifest, _) = Manifest::parse(FILE, &text);
    candidates(
        typed,
        manifest.stubs.iter().map(|stub| (&*stub.id.value, "")),
    )
}

/// Every known library, and the user-defined ones of the current directory.
fn exportable_libraries(typed: &OsStr) -> Vec<CompletionCandidate> {
    let mut candidates = libraries(typed);
    for declared in declared_libraries(typed) {
        if candidates
            .iter()
            .all(|candidate| candidate.get_value() != declared.get_value())
        {
            candidates.push(declared);
        }
    }
    candidates
}

fn codes(typed: &OsStr) -> Vec<CompletionCandidate> {
    candidates(
        typed,
        codes::all_codes()
            .iter()
            .map(|code| (code.id, code.summary)),
    )
}

fn rules(typed: &OsStr) -> Vec<CompletionCandidate> {
    let rules = RULES.iter().map(|rule| (rule.code.id, rule.code.summary));
    candidates(typed, [(ALL_RULES, "every rule")].into_iter().chain(rules))
}

/// Members of the workspace; empty outside of a workspace.
fn packages(typed: &OsStr) -> Vec<CompletionCandidate> {
    let mut command = cargo_metadata::MetadataCommand::new();
    command.no_deps().other_options(["--offline".to_owned()]);
    let Ok(metadata) = command.exec() else {
        return Vec::new();
    };
    candidates(
        typed,
        metadata
            .packages
            .iter()
            .map(|package| (package.name.as_str(), "")),
    )
}
