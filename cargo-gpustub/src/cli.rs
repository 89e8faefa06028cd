//! The command line: the commands and their options.

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

pub use crate::cli::archive::*;
pub use crate::cli::complete::{complete_if_requested, registration};
pub use crate::cli::options::*;
pub use crate::cli::values::FamilyVersion;
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
        let moved = UnknownArgumentValueParser::suggest(
            "symbol lists are written by `cargo gpustub add LIBRARY --from FILE`",
        );
        sync.arg(Arg::new("from").long("from").hide(true).value_parser(moved))
    });
    let stubs = ["export", "stubs"];
    let device_link = ["export", "device-link"];
    for path in [&["init"][..], &["add"], &["remove"], &stubs, &device_link] {
        command = help::without_several(command, path);
    }
    // The listing of commands is read from the built definition, which includes `help`.
    command.build();
    help::with_groups(command)
}

/// The arguments without the name of the subcommand, which cargo passes on.
pub fn arguments(all: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = all.into_iter().collect();
    if arguments.get(1).is_some_and(|first| first == "gpustub") {
        arguments.remove(1);
    }
    arguments
}

/// Color choice before parsing, so that it applies to help and usage errors: `--color`, then
/// `CARGO_TERM_COLOR`. clap reports a misspelt value.
pub fn early_color(arguments: &[OsString], variable: Option<OsString>) -> Color {
    let mut words = arguments.iter().take_while(|word| *word != "--");
    let mut given = variable;
    while let Some(word) = words.next() {
        if word == "--color" {
            given = words.next().cloned().or(given);
        } else if let Some(value) = word.to_str().and_then(|w| w.strip_prefix("--color=")) {
            given = Some(value.into());
        }
    }
    let value = given.as_deref().and_then(OsStr::to_str);
    value
        .and_then(|v| Color::from_str(v, false).ok())
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
        let auto = |text| early_color(&words(text), None);
        let with = |text| early_color(&words(text), Some("always".into()));
        assert_eq!(auto("x sync"), Color::Auto);
        assert_eq!(auto("x sync --color never"), Color::Never);
        assert_eq!(auto("x --color=always --help"), Color::Always);
        assert_eq!(auto("x --color purple"), Color::Auto);
        assert_eq!(auto("x add -- --color=always"), Color::Auto);
        assert_eq!(with("x sync"), Color::Always);
        assert_eq!(with("x sync --color auto"), Color::Auto);
    }
}
