//! The command line: the commands and their options.

mod add;
mod archive;
mod complete;
mod examples;
mod help;
mod options;
#[cfg(test)]
mod quoted;
mod values;

use std::time::Duration;

use std::ffi::{OsStr, OsString};

use clap::builder::UnknownArgumentValueParser;
use clap::{Arg, Args, CommandFactory, Parser, Subcommand, ValueEnum};

pub use crate::cli::add::*;
pub use crate::cli::archive::*;
pub use crate::cli::complete::{complete_if_requested, registration};
pub use crate::cli::options::*;
pub use crate::cli::values::{FamilyVersion, RepairedLibrary};
use gpustub_workspace::output::{Color, MessageFormat, Verbosity};

/// No findings.
pub const CLEAN: u8 = 0;
/// A file of the user has findings, or `--check` found a difference.
pub const FINDINGS: u8 = 1;
/// Error in the command line (clap's own code).
pub const USAGE: u8 = 2;
/// Internal or system error (cargo's own code).
pub const COULD_NOT_RUN: u8 = 101;

/// Link GPU libraries lazily: build without them, load the real library at run time
#[derive(Debug, Parser)]
#[command(name = "cargo-gpustub", bin_name = "cargo gpustub", version)]
#[command(styles = clap_cargo::style::CLAP_STYLING)]
pub struct Cli {
    /// Options of every command.
    #[command(flatten)]
    pub global: Global,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// Options of every command.
#[derive(Debug, Args)]
pub struct Global {
    /// Use verbose output
    #[arg(short, long, global = true, display_order = 900)]
    verbose: bool,
    /// Print errors only
    #[arg(short, long, global = true, display_order = 901)]
    #[arg(conflicts_with = "verbose")]
    quiet: bool,
    /// Coloring: auto, always, never
    #[arg(long, global = true, hide_possible_values = true, value_name = "WHEN")]
    #[arg(display_order = 902)]
    color: Option<Color>,
    /// Error format: human, short, json, github, sarif
    #[arg(long, global = true, hide_possible_values = true)]
    #[arg(value_name = "FORMAT", default_value = "human", display_order = 903)]
    pub message_format: MessageFormat,
    /// Time after which a terminal shows a status line, for tests
    #[arg(
        long,
        global = true,
        hide = true,
        value_name = "MILLISECONDS",
        default_value = "1000"
    )]
    status_after: u64,
}

impl Global {
    /// Time after which a terminal shows a status line.
    pub fn status_after(&self) -> Duration {
        Duration::from_millis(self.status_after)
    }

    /// `-q`, nothing or `-v`.
    pub fn verbosity(&self) -> Verbosity {
        match (self.quiet, self.verbose) {
            (true, _) => Verbosity::Quiet,
            (_, true) => Verbosity::Verbose,
            _ => Verbosity::Normal,
        }
    }
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Create a GpuStub.toml
    Init(Init),
    /// Add a library or a toolkit to GpuStub.toml
    Add(Add),
    /// Remove a library from GpuStub.toml
    Remove(Remove),
    /// Update build scripts, symbol lists and lock file from GpuStub.toml
    Sync(Sync),
    /// Show the stubs, device links and archives of a build
    Plan(Plan),
    /// Check the workspace, or binaries and wheels, against the policy
    Check(Check),
    /// Make finished wheels and binaries load GPU libraries lazily
    Repair(Repair),
    /// Show the GPU libraries of this machine and which ones stubs bind
    Doctor(Doctor),
    /// List the symbols that a library exports
    Symbols(Symbols),
    /// Compare two versions of a library
    Diff(Diff),
    /// Show releases, ABI variants and prototypes of functions
    Abi(Abi),
    /// Write stubs, device-linked libraries or headers for CMake, Meson, Bazel, make
    Export(Export),
    /// Build and inspect super-archives
    Archive(Archive),
    /// Explain a diagnostic code
    Explain(Explain),
    /// Print the JSON schema of GpuStub.toml
    Schema,
    /// Print a shell completion script
    Completions(Completions),
    /// Print the manual page
    Man(Man),
}

/// The definition of the command line, with groups of commands and examples in its help.
pub fn command() -> clap::Command {
    let mut command = complete::with_values(examples::with_examples(Cli::command()));
    command = command.mut_subcommand("sync", |sync| {
        let parser = UnknownArgumentValueParser::suggest(
            "symbol lists are written by `cargo gpustub add LIBRARY --from FILE`",
        );
        sync.arg(
            Arg::new("from")
                .long("from")
                .hide(true)
                .value_parser(parser),
        )
    });
    for path in [
        &["init"][..],
        &["add"],
        &["remove"],
        &["export", "stubs"],
        &["export", "device-link"],
    ] {
        command = help::without_several(command, path);
    }
    // The listing of commands is read from the built definition, which includes `help`.
    command.build();
    help::with_groups(command)
}

/// The arguments without the name of the subcommand, which cargo passes on.
pub fn arguments(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = arguments.into_iter().collect();
    if arguments.get(1).is_some_and(|first| first == "gpustub") {
        arguments.remove(1);
    }
    arguments
}

/// Color choice before parsing, so that it applies to help and usage errors: `--color`, then
/// `CARGO_TERM_COLOR`. clap reports a misspelt value.
pub fn early_color(arguments: &[OsString], variable: Option<OsString>) -> Color {
    let mut choice = variable;
    let mut words = arguments.iter().take_while(|word| *word != "--");
    while let Some(word) = words.next() {
        if word == "--color" {
            choice = words.next().cloned().or(choice);
        } else if let Some(color) = word.to_str().and_then(|word| word.strip_prefix("--color=")) {
            choice = Some(color.into());
        }
    }
    choice
        .as_deref()
        .and_then(OsStr::to_str)
        .and_then(|choice| Color::from_str(choice, false).ok())
        .unwrap_or(Color::Auto)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
        command().debug_assert();
    }

    #[test]
    fn only_our_own_name_is_dropped() {
        assert_eq!(arguments(words("x gpustub sync")), words("x sync"));
        assert_eq!(arguments(words("x sync gpustub")), words("x sync gpustub"));
        assert_eq!(arguments(words("x gpustub gpustub")), words("x gpustub"));
        assert_eq!(arguments([]), words("")[1..]);
    }

    #[test]
    fn early_color_reads_option_and_variable() {
        for (text, variable, color) in [
            ("x sync", None, Color::Auto),
            ("x sync --color never", None, Color::Never),
            ("x --color=always --help", None, Color::Always),
            ("x --color purple", None, Color::Auto),
            ("x add -- --color=always", None, Color::Auto),
            ("x sync", Some("always"), Color::Always),
            ("x sync --color auto", Some("always"), Color::Auto),
        ] {
            let variable = variable.map(OsString::from);
            assert_eq!(early_color(&words(text), variable), color, "{text}");
        }
    }
}
