//! What each command takes.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use gpustub_check::RULES;
use gpustub_check::policy::ALL;
use gpustub_core::date::Date;
use gpustub_core::suggest::nearest;
use gpustub_core::version::HeaderVersion;

/// Which packages, as cargo's own commands take them.
#[derive(Debug, Clone, Args)]
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
    /// Mend what can be mended without a decision: `sync`, `header-version`, load names, allowances
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
    /// How the plan is written: text, json, dot (device links, for Graphviz)
    #[arg(long, hide_possible_values = true, default_value = "text")]
    pub format: PlanFormat,
    /// Say by which rule a library or program with CUDA device code is linked, and why
    #[arg(long, value_name = "NODE", conflicts_with = "format")]
    pub explain: Option<String>,
    /// Plan the device links of a graph in a file, or `-`, and look at no package
    #[arg(long, value_name = "FILE")]
    #[arg(conflicts_with_all = ["target", "package", "workspace", "all", "exclude", "features"])]
    #[arg(conflicts_with_all = ["all_features", "no_default_features", "PATH"])]
    #[arg(conflicts_with_all = ["locked", "offline"])]
    pub graph: Option<PathBuf>,
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
    /// Device links alone, in Graphviz' language
    Dot,
}

/// `--format` of several commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TextOrJson {
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
    pub format: TextOrJson,
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

/// `install`.
#[derive(Debug, Args)]
pub struct Install {
    /// Where to install: DIR/lib, DIR/include
    #[arg(long, value_name = "DIR", required_unless_present = "list")]
    pub prefix: Option<PathBuf>,
    /// Install nothing; print the files, a line each
    #[arg(long)]
    pub list: bool,
    /// Build in release mode, with optimizations
    #[arg(short, long, conflicts_with = "profile")]
    pub release: bool,
    /// Build with this profile of Cargo.toml
    #[arg(long, value_name = "PROFILE")]
    pub profile: Option<String>,
    /// The target triple [default: cargo's]
    #[arg(long, value_name = "TRIPLE")]
    pub target: Option<String>,
    /// Which package.
    #[command(flatten)]
    pub cargo: Cargo,
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

#[cfg(test)]
mod tests {
    use super::name_and_path;

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
