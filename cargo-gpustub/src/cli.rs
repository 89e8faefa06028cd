//! The command line: what can be asked for, and nothing of how it is done.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use gpustub_check::RULES;
use gpustub_check::policy::ALL;
use gpustub_core::date::Date;
use gpustub_core::suggest::nearest;
use gpustub_core::version::HeaderVersion;

use crate::shell::Verbosity;

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

/// Which packages, as cargo's own commands take them.
#[derive(Debug, Args)]
pub struct Cargo {
    /// `-p`, `--workspace`, `--exclude`.
    #[command(flatten, next_help_heading = "Package selection")]
    pub workspace: clap_cargo::Workspace,
    /// `--features` and its kin.
    #[command(flatten, next_help_heading = "Feature selection")]
    pub features: clap_cargo::Features,
    /// `--manifest-path`.
    #[command(flatten, next_help_heading = "Manifest options")]
    pub manifest: clap_cargo::Manifest,
    /// Assert that Cargo.lock stays as it is
    #[arg(long, help_heading = "Manifest options")]
    pub locked: bool,
    /// Do not use the network
    #[arg(long, help_heading = "Manifest options")]
    pub offline: bool,
}

/// `init`.
#[derive(Debug, Args)]
pub struct Init {
    /// Which package.
    #[command(flatten)]
    pub cargo: Cargo,
}

/// `add`.
#[derive(Debug, Args)]
pub struct Add {
    /// Libraries: cuda, cudart, nvrtc, …
    #[arg(required = true, value_name = "LIBRARY")]
    pub libraries: Vec<String>,
    /// The version of the headers that the program is compiled against: `12`, `12.8`
    #[arg(long, value_name = "VERSION", value_parser = header_version)]
    pub header: Option<String>,
    /// Which package.
    #[command(flatten)]
    pub cargo: Cargo,
}

/// `sync`.
#[derive(Debug, Args)]
pub struct Sync {
    /// Write nothing; print the difference and exit with 1 if there is one
    #[arg(long, conflicts_with = "dry_run")]
    pub check: bool,
    /// Write nothing; print what would change
    #[arg(long)]
    pub dry_run: bool,
    /// Take the symbol list of a library of your own from this file
    #[arg(long, value_name = "NAME=FILE", value_parser = name_and_path)]
    pub from: Vec<(String, PathBuf)>,
    /// Which packages.
    #[command(flatten)]
    pub cargo: Cargo,
}

/// `check`.
#[derive(Debug, Args)]
pub struct Check {
    /// Programs, libraries, wheels, crates, directories [default: the workspace's packages]
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Mend what can be mended without a decision: `sync`, `header`, load names, allowances
    #[arg(long, conflicts_with = "paths")]
    pub fix: bool,
    /// Let --fix change files that have uncommitted changes
    #[arg(long, requires = "fix")]
    pub allow_dirty: bool,
    /// Let --fix change files that are under no version control
    #[arg(long, requires = "fix")]
    pub allow_no_vcs: bool,
    /// Levels of rules.
    #[command(flatten)]
    pub levels: Levels,
    /// The day that allowances are judged by, for tests
    #[arg(long, hide = true, value_name = "DATE", value_parser = date)]
    pub today: Option<Date>,
    /// Which packages.
    #[command(flatten)]
    pub cargo: Cargo,
}

/// Levels of rules, before those of `[policy]`.
#[derive(Debug, Args)]
#[command(next_help_heading = "Rules")]
pub struct Levels {
    /// Turn a rule off; `all`: every one that no other option names
    #[arg(short = 'A', long, value_name = "RULE", value_parser = rule)]
    pub allow: Vec<String>,
    /// Make findings of a rule warnings
    #[arg(short = 'W', long, value_name = "RULE", value_parser = rule)]
    pub warn: Vec<String>,
    /// Make findings of a rule errors; `all`: of every one that no policy turns off
    #[arg(short = 'D', long, value_name = "RULE", value_parser = rule)]
    pub deny: Vec<String>,
}

/// `toolkit`.
#[derive(Debug, Args)]
pub struct Toolkit {
    /// The CUDA release to stand in for: `12.8`
    #[arg(long, value_name = "VERSION")]
    pub cuda: Option<String>,
    /// The HIP release to stand in for: `6.4`
    #[arg(long, value_name = "VERSION")]
    pub hip: Option<String>,
    /// Real headers to put into it: of a toolkit's folder, an `include`, or a wheel (*.whl)
    #[arg(long, value_name = "PATH")]
    pub headers: Vec<PathBuf>,
    /// The folder, relative to the root of the workspace [default: gpustub-toolkit]
    #[arg(long, value_name = "DIR")]
    pub out: Option<String>,
    /// Go before a toolkit that the environment names
    #[arg(long)]
    pub force: bool,
    /// A crate whose build script cargo shall not run, because it only prints link lines
    #[arg(long, value_name = "CRATE")]
    pub links: Vec<String>,
    /// Which workspace.
    #[command(flatten)]
    pub cargo: Cargo,
}

/// `plan`.
#[derive(Debug, Args)]
pub struct Plan {
    /// How the plan is written: text, json
    #[arg(long, hide_possible_values = true, default_value = "text")]
    pub format: PlanFormat,
    /// The target triple [default: the host]
    #[arg(long, value_name = "TRIPLE")]
    pub target: Option<String>,
    /// Which packages.
    #[command(flatten)]
    pub cargo: Cargo,
}

/// `plan --format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PlanFormat {
    /// For people
    Text,
    /// For programs
    Json,
}

/// `symbols`.
#[derive(Debug, Args)]
pub struct Symbols {
    /// A shared library
    pub file: PathBuf,
    /// How the list is written: list (as *.symbols files), json, ifs (as llvm-ifs)
    #[arg(long, hide_possible_values = true, default_value = "list")]
    pub format: SymbolsFormat,
    /// Fail unless the library is for this architecture: `x86_64`, `aarch64`
    #[arg(long)]
    pub arch: Option<String>,
    /// Fail unless the library has this symbol
    #[arg(long, value_name = "NAME")]
    pub require: Vec<String>,
}

/// `symbols --format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SymbolsFormat {
    /// The format of *.symbols files
    List,
    /// One JSON document
    Json,
    /// The text stub of llvm-ifs
    Ifs,
}

/// `diff`.
#[derive(Debug, Args)]
pub struct Diff {
    /// A shared library, a *.symbols file, or a version that gpustub knows: `cudart@12.9`
    pub old: String,
    /// The other one
    pub new: String,
    /// How the differences are written: text, json
    #[arg(long, hide_possible_values = true, default_value = "text")]
    pub format: PlanFormat,
    /// What the headers are compared with.
    #[command(flatten, next_help_heading = "Headers")]
    pub headers: DiffHeaders,
}

/// The headers of `diff`.
#[derive(Debug, Args)]
pub struct DiffHeaders {
    /// Headers of the old version: a folder to include from, or a header; compares what both declare,
    /// with clang (`CLANG` names another)
    #[arg(long, value_name = "PATH", requires = "new_headers")]
    pub old_headers: Vec<PathBuf>,
    /// Headers of the new version
    #[arg(long, value_name = "PATH", requires = "old_headers")]
    pub new_headers: Vec<PathBuf>,
    /// What to include from the folders; known for the libraries that gpustub knows
    #[arg(long, value_name = "HEADER", requires = "old_headers")]
    pub include: Vec<String>,
    /// One more argument for clang: `-DNAME`, `-Ifolder`
    #[arg(
        long,
        value_name = "ARG",
        requires = "old_headers",
        allow_hyphen_values = true
    )]
    pub clang_arg: Vec<String>,
}

/// `generate`.
#[derive(Debug, Args)]
pub struct Generate {
    /// Libraries [default: those in GpuStub.toml]
    #[arg(value_name = "LIBRARY")]
    pub libraries: Vec<String>,
    /// Where to write
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// static (an archive to link in) or shared (a library to ship) [default: as in GpuStub.toml]
    #[arg(long, hide_possible_values = true)]
    pub form: Option<Form>,
    /// The target triple [default: the host]
    #[arg(long, value_name = "TRIPLE")]
    pub target: Option<String>,
    /// Name of the shared library, without `lib` and `.so`; by default `gpustub_` and the libraries
    #[arg(long)]
    pub name: Option<String>,
    /// The version of the headers that the program is compiled against: `12`, `12.8`
    #[arg(long, value_name = "VERSION", value_parser = header_version)]
    pub header: Option<String>,
    /// Write the sources only, compile nothing
    #[arg(long)]
    pub sources_only: bool,
    /// Which package's GpuStub.toml.
    #[command(flatten)]
    pub cargo: Cargo,
}

/// `generate --form`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// An archive whose stubs are hidden in what links it
    Static,
    /// A shared library that exports the stubs
    Shared,
}

/// `doctor`.
#[derive(Debug, Args)]
pub struct Doctor {
    /// Which packages' GpuStub.toml [default: every library that gpustub knows, if there is none].
    #[command(flatten)]
    pub cargo: Cargo,
}

/// `explain`.
#[derive(Debug, Args)]
pub struct Explain {
    /// The code in brackets, as in `error[unknown-key]`
    #[arg(required_unless_present = "list")]
    pub code: Option<String>,
    /// List all codes
    #[arg(long)]
    pub list: bool,
}

/// `reference`.
#[derive(Debug, Args)]
pub struct Reference {
    /// The folder for the documentation
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Write nothing; print the difference and exit with 1 if there is one
    #[arg(long)]
    pub check: bool,
}

fn header_version(text: &str) -> Result<String, String> {
    match HeaderVersion::parse(text) {
        Some(_) => Ok(text.to_owned()),
        None => Err("write the major, `12`, or one release, `12.8`".into()),
    }
}

fn date(text: &str) -> Result<Date, String> {
    Date::parse(text).ok_or_else(|| "write it as 2027-01-31".into())
}

fn rule(text: &str) -> Result<String, String> {
    let ids = || std::iter::once(ALL).chain(RULES.iter().map(|rule| rule.code.id));
    if ids().any(|id| id == text) {
        return Ok(text.to_owned());
    }
    Err(match nearest(text, ids()) {
        Some(near) => format!("there is no such rule; did you mean `{near}`?"),
        None => "there is no such rule; `cargo gpustub explain --list` lists them".into(),
    })
}

fn name_and_path(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, path)) if !name.is_empty() && !path.is_empty() => {
            Ok((name.to_owned(), PathBuf::from(path)))
        }
        _ => Err("write it as NAME=FILE, for example acme=/opt/acme/lib/libacme.so".into()),
    }
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

    #[test]
    fn from_needs_a_name_and_a_file() {
        assert_eq!(
            name_and_path("acme=a=b").unwrap(),
            ("acme".into(), "a=b".into())
        );
        for bad in ["acme", "=x", "acme="] {
            assert!(name_and_path(bad).is_err(), "{bad}");
        }
    }
}
