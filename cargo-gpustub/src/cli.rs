//! The command line: what can be asked for, and nothing of how it is done.

mod archive;
mod options;

use std::ffi::{OsStr, OsString};

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::shell::Verbosity;
pub use archive::*;
pub use options::*;

/// Nothing to complain about.
pub const CLEAN: u8 = 0;
/// Something in the user's files is wrong, or `--check` found a difference.
pub const FINDINGS: u8 = 1;
/// The command line itself is wrong (clap's own code).
pub const USAGE: u8 = 2;
/// The command could not do its work (cargo's own code).
pub const COULD_NOT_RUN: u8 = 101;

const EXIT_CODES: &str = "\
Exit codes: 0 clean, 1 findings or a difference, 2 wrong usage, 101 could not run.
See `cargo gpustub help <command>` for a command.";

/// GPU libraries without needing them: link stubs now, find the real libraries at run time.
#[derive(Debug, Parser)]
#[command(name = "cargo-gpustub", bin_name = "cargo gpustub", version)]
#[command(styles = clap_cargo::style::CLAP_STYLING, after_help = EXIT_CODES)]
pub struct Cli {
    /// What every command takes.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Options of every command.
#[derive(Debug, Args)]
pub struct Global {
    /// Say what is looked at, too
    #[arg(
        short,
        long,
        global = true,
        help_heading = "Output",
        display_order = 900
    )]
    verbose: bool,
    /// Say nothing but errors
    #[arg(
        short,
        long,
        global = true,
        help_heading = "Output",
        display_order = 901
    )]
    #[arg(conflicts_with = "verbose")]
    quiet: bool,
    /// When to use colours: auto, always, never
    #[arg(
        long,
        global = true,
        hide_possible_values = true,
        value_name = "WHEN",
        help_heading = "Output",
        display_order = 902
    )]
    color: Option<Color>,
    /// How findings are written: human, short (a line each), json (an object a line), github, sarif
    #[arg(
        long,
        global = true,
        hide_possible_values = true,
        value_name = "FORMAT",
        default_value = "human"
    )]
    #[arg(help_heading = "Output", display_order = 903)]
    pub message_format: MessageFormat,
}

impl Global {
    /// `-q`, nothing or `-v`.
    pub fn verbosity(&self) -> Verbosity {
        match (self.quiet, self.verbose) {
            (true, _) => Verbosity::Quiet,
            (_, true) => Verbosity::Verbose,
            _ => Verbosity::Normal,
        }
    }
}

/// `--color`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal only
    Auto,
    /// Even in a pipe
    Always,
    /// Not at all
    Never,
}

impl Color {
    /// The choice for help and usage errors.
    pub fn for_clap(self) -> clap::ColorChoice {
        match self {
            Self::Auto => clap::ColorChoice::Auto,
            Self::Always => clap::ColorChoice::Always,
            Self::Never => clap::ColorChoice::Never,
        }
    }

    /// The choice for the streams.
    pub fn for_streams(self) -> anstream::ColorChoice {
        match self {
            Self::Auto => anstream::ColorChoice::Auto,
            Self::Always => anstream::ColorChoice::Always,
            Self::Never => anstream::ColorChoice::Never,
        }
    }
}

/// `--message-format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MessageFormat {
    /// With the place in the file, on standard error
    Human,
    /// A line each, on standard error
    Short,
    /// A JSON object a line, on standard output
    Json,
    /// Workflow commands of GitHub Actions, on standard output
    Github,
    /// One SARIF 2.1.0 document, on standard output
    Sarif,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Write a first GpuStub.toml beside Cargo.toml
    Init(Init),
    /// Declare a library in GpuStub.toml
    Add(Add),
    /// Make the tree agree with GpuStub.toml
    Sync(Sync),
    /// Check the workspace, or programs, libraries and wheels, against the rules of policy
    Check(Check),
    /// Lay out a folder that build scripts take for an installed toolkit
    Toolkit(Toolkit),
    /// Show what will be built, and check who provides stubs to whom
    Plan(Plan),
    /// Print the symbols that a library exports
    Symbols(Symbols),
    /// Show what two versions of a library differ in
    Diff(Diff),
    /// Write stubs for a build without cargo: sources, header, libraries to link
    Generate(Generate),
    /// Build a package's libraries of relocatable CUDA code, and install them for C and C++
    Install(Install),
    /// Build and look into super-archives: static libraries for many GPU families in one file
    Archive(Archive),
    /// Show what is on this machine, and what each stub would bind to
    Doctor(Doctor),
    /// Explain a diagnostic
    Explain(Explain),
    /// Print the JSON schema of GpuStub.toml
    Schema,
    /// Print a completion script
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the generated reference of this repository
    #[command(hide = true)]
    Reference(Reference),
}

/// The arguments without the name of the subcommand, which cargo passes on.
pub fn arguments(all: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = all.into_iter().collect();
    if arguments.get(1).is_some_and(|first| first == "gpustub") {
        arguments.remove(1);
    }
    arguments
}

/// `--color` before anything is parsed, so that help and usage errors obey it, too; then
/// `CARGO_TERM_COLOR`. What is misspelt is left for clap to complain about.
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
    use clap::CommandFactory;

    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn only_our_own_name_is_dropped() {
        assert_eq!(arguments(words("x gpustub sync")), words("x sync"));
        assert_eq!(arguments(words("x sync gpustub")), words("x sync gpustub"));
        assert_eq!(arguments(words("x gpustub gpustub")), words("x gpustub"));
        assert_eq!(arguments([]), words("")[1..]);
    }

    #[test]
    fn colour_is_known_before_parsing() {
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
