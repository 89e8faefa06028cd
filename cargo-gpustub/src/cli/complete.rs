//! Shell completion: scripts that run this program at each TAB, and candidate values.
//!
//! `cargo gpustub <TAB>` is also completed. zsh's `_cargo` calls `_cargo-gpustub` itself; in bash
//! and fish the completion of `cargo` is unchanged for all other subcommands.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;

use clap::Command;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use clap_complete::env::{EnvCompleter, Shells};
use clap_complete::{CompleteEnv, Shell};
use gpustub_check::RULES;
use gpustub_check::policy::ALL;
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
    let here = std::env::current_dir().ok();
    CompleteEnv::with_factory(definition)
        .var(VARIABLE)
        .bin(NAME)
        .try_complete(arguments, here.as_deref())
}

/// The script that registers the completion with a shell.
pub fn registration(shell: Shell) -> io::Result<Vec<u8>> {
    let own = match shell {
        Shell::Bash => Some(include_str!("complete/bash.sh")),
        Shell::Fish => Some(include_str!("complete/fish.fish")),
        Shell::Zsh => Some(include_str!("complete/zsh.zsh")),
        _ => None,
    };
    if let Some(script) = own {
        return Ok(script.into());
    }
    let mut script = Vec::new();
    let shells = Shells::builtins();
    let known: Option<&dyn EnvCompleter> = shells.completer(&shell.to_string());
    let known = known.ok_or_else(|| io::Error::other("unknown shell"))?;
    known.write_registration(VARIABLE, NAME, NAME, NAME, &mut script)?;
    Ok(script)
}

/// Adds candidate values for completion to a definition.
pub fn with_values(command: Command) -> Command {
    let named = |command: Command, names: &[&str], id: &'static str, values: Values| {
        names.iter().fold(command, |command, name| {
            command.mut_subcommand(name, |inner| {
                inner.mut_arg(id, |arg| arg.add(ArgValueCompleter::new(values)))
            })
        })
    };
    let command = named(command, &["add"], "libraries", libraries);
    let command = named(command, &["remove"], "libraries", declared_libraries);
    let command = named(command, &["explain"], "code", codes);
    let command = ["allow", "warn", "deny"]
        .iter()
        .fold(command, |command, id| named(command, &["check"], id, rules));
    let command = command.mut_subcommand("export", |export| {
        named(export, &["stubs"], "libraries", exportable_libraries)
    });
    with_packages(command)
}

type Values = fn(&OsStr) -> Vec<CompletionCandidate>;

/// Adds package names to `-p` and `--exclude` of each command that has them.
fn with_packages(mut command: Command) -> Command {
    let inner: Vec<String> = command
        .get_subcommands()
        .map(|inner| inner.get_name().to_owned())
        .collect();
    for name in inner {
        command = command.mut_subcommand(name, with_packages);
    }
    for id in ["package", "exclude"] {
        if command.get_arguments().any(|arg| arg.get_id() == id) {
            command = command.mut_arg(id, |arg| arg.add(ArgValueCompleter::new(packages)));
        }
    }
    command
}

/// Candidates that start with the typed text.
fn starting<'a>(
    typed: &OsStr,
    all: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    all.into_iter()
        .filter(|(value, _)| value.starts_with(&*typed))
        .map(|(value, help)| {
            let help = (!help.is_empty()).then(|| help.to_owned().into());
            CompletionCandidate::new(value).help(help)
        })
        .collect()
}

fn libraries(typed: &OsStr) -> Vec<CompletionCandidate> {
    let all = Library::builtin_ids().filter_map(Library::builtin);
    starting(typed, all.map(|one| (one.id.as_str(), one.title.as_str())))
}

/// Libraries in the GpuStub.toml of the current directory; without one, every known library.
fn declared_libraries(typed: &OsStr) -> Vec<CompletionCandidate> {
    let Ok(text) = std::fs::read_to_string(Path::new(FILE)) else {
        return libraries(typed);
    };
    let (manifest, _) = Manifest::parse(FILE, &text);
    let ids = manifest.stubs.iter().map(|stub| (&*stub.id.value, ""));
    starting(typed, ids)
}

/// Every known library, and the user-defined ones of the current directory.
fn exportable_libraries(typed: &OsStr) -> Vec<CompletionCandidate> {
    let mut all = libraries(typed);
    for one in declared_libraries(typed) {
        if all.iter().all(|known| known.get_value() != one.get_value()) {
            all.push(one);
        }
    }
    all
}

fn codes(typed: &OsStr) -> Vec<CompletionCandidate> {
    starting(
        typed,
        codes::all().iter().map(|code| (code.id, code.summary)),
    )
}

fn rules(typed: &OsStr) -> Vec<CompletionCandidate> {
    let rules = RULES.iter().map(|rule| (rule.code.id, rule.code.summary));
    starting(typed, [(ALL, "every rule")].into_iter().chain(rules))
}

/// Members of the workspace; empty outside of a workspace.
fn packages(typed: &OsStr) -> Vec<CompletionCandidate> {
    let mut command = cargo_metadata::MetadataCommand::new();
    command.no_deps().other_options(["--offline".to_owned()]);
    let Ok(metadata) = command.exec() else {
        return Vec::new();
    };
    let packages = metadata.packages.iter();
    starting(typed, packages.map(|package| (package.name.as_str(), "")))
}
