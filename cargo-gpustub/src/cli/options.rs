//! Options of each command.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use gpustub_core::date::Date;
use gpustub_workspace::selection::Selection;

use crate::cli::add::LibraryHeaders;
use crate::cli::values::{
    FamilyVersion, RepairedLibrary, date, header_version, repaired_library, rule,
};

/// `init`.
#[derive(Debug, Args)]
pub struct Init {
    /// Write a job for the checks of a CI service, too: github, gitlab
    #[arg(long, value_name = "SERVICE", hide_possible_values = true)]
    pub ci: Option<CiService>,
    /// Selected packages.
    #[command(flatten)]
    pub cargo: Selection,
}

/// A service whose jobs `init` writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CiService {
    /// GitHub Actions
    Github,
    /// GitLab CI/CD
    Gitlab,
}

/// `sync`.
#[derive(Debug, Args)]
pub struct Sync {
    /// Exit with 1 if files are out of date; write nothing
    #[arg(long, conflicts_with = "dry_run")]
    pub check: bool,
    /// Print the changes without writing them
    #[arg(long)]
    pub dry_run: bool,
    /// Print the `use` lines of source files instead of writing them
    ///
    /// For sources that are read-only or generated. Each line is printed as `FILE:LINE: TEXT`; other
    /// files are written.
    #[arg(long)]
    pub print_use_lines: bool,
    /// Check the declarations for this target triple [default: the host]
    #[arg(long, value_name = "TRIPLE")]
    pub target: Option<String>,
    /// Selected packages.
    #[command(flatten)]
    pub cargo: Selection,
}

/// `check`.
#[derive(Debug, Clone, Args)]
pub struct Check {
    /// Programs, libraries, wheels, crates or directories [default: the packages of the workspace]
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Apply machine-applicable fixes
    ///
    /// Runs `sync`, sets `header-version`, corrects load names and removes unused `[[policy.allow]]`.
    #[arg(long, conflicts_with = "paths")]
    pub fix: bool,
    /// Fix files even if they have uncommitted changes
    #[arg(long, requires = "fix")]
    pub allow_dirty: bool,
    /// Fix files even without version control
    #[arg(long, requires = "fix")]
    pub allow_no_vcs: bool,
    /// Run build scripts, and check the libraries that they link
    ///
    /// Runs `cargo check`, which links nothing, so that libraries and toolkits may be missing.
    #[arg(long, conflicts_with_all = ["paths", "fix"])]
    pub build: bool,
    /// Levels of rules.
    #[command(flatten)]
    pub levels: Levels,
    /// Date that `until` of `[[policy.allow]]` is compared with, for tests
    #[arg(long, hide = true, value_name = "DATE", value_parser = date)]
    pub today: Option<Date>,
    /// Check the packages for this target triple [default: the host]
    #[arg(long, value_name = "TRIPLE", conflicts_with = "paths")]
    pub target: Option<String>,
    /// Selected packages.
    #[command(flatten)]
    pub cargo: Selection,
}

/// Levels of rules, before those of `[policy]`.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Rules")]
pub struct Levels {
    /// Set a rule to allow; `all` for every rule
    ///
    /// `all` applies to every rule that no other option names.
    #[arg(short = 'A', long, value_name = "RULE", value_parser = rule)]
    pub allow: Vec<String>,
    /// Set a rule to warn; `all` for every rule
    ///
    /// `all` applies to every rule that no other option names.
    #[arg(short = 'W', long, value_name = "RULE", value_parser = rule)]
    pub warn: Vec<String>,
    /// Set a rule to deny; `all` for every rule
    ///
    /// `all` applies to every rule that no policy allows.
    #[arg(short = 'D', long, value_name = "RULE", value_parser = rule)]
    pub deny: Vec<String>,
}

/// `repair`.
#[derive(Debug, Args)]
pub struct Repair {
    /// Wheels, shared libraries, programs or directories
    ///
    /// Libraries and programs that are named together share a stub library.
    #[arg(value_name = "FILE", required = true)]
    pub paths: Vec<PathBuf>,
    /// Directory to write
    #[arg(long, value_name = "DIR")]
    pub out_dir: PathBuf,
    /// Version of the headers that the files were compiled against [default: that of the replaced libraries]
    ///
    /// A major, `12`, a release, `12.8`, or `none`, which refuses the functions that depend on it. With a
    /// name in front, it holds for a toolkit, `cuda=12.8` or `hip=6.4`, or for one library, `cudnn=9`.
    #[arg(long, value_name = "[NAME=]VERSION", value_parser = header_version)]
    pub header_version: Vec<FamilyVersion>,
    /// Print the plan without writing anything
    #[arg(long)]
    pub dry_run: bool,
    /// Replace and remove copies of CUDA or ROCm libraries that a tool grafted into the package
    ///
    /// auditwheel names them `libcudart-5a077122.so.12.0.107`. Without them users need the libraries of their system or
    /// of the vendor's wheels.
    #[arg(long)]
    pub remove_copies: bool,
    /// Repair files that need a library without stubs for their other libraries
    ///
    /// Such a file starts only where the library is installed. It is a warning instead of an error, also for a file without
    /// others beside files that are repaired.
    #[arg(long)]
    pub partial: bool,
    /// Remove the signature of a signed wheel, program or DLL, which the repair makes invalid
    #[arg(long)]
    pub unsign: bool,
    /// Replace files in DIR that were not generated by gpustub
    #[arg(long)]
    pub force: bool,
    /// Number of threads that read and compress files of wheels [default: number of processors]
    #[arg(long, short, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
    /// User-defined libraries.
    #[command(flatten, next_help_heading = "User-defined libraries")]
    pub user_defined: RepairUserDefined,
}

/// The options of `repair` about user-defined libraries.
#[derive(Debug, Args)]
pub struct RepairUserDefined {
    /// Replace this library, too, which gpustub does not know
    ///
    /// FILE is the shared library, DLL or import library, from which its functions are read. Without a file, `[stub.NAME]` of
    /// GpuStub.toml and its symbol list describe the library.
    #[arg(long, value_name = "NAME[=FILE]", value_parser = repaired_library, group = "library_file")]
    pub library: Vec<RepairedLibrary>,
    /// Headers of the libraries.
    #[command(flatten)]
    pub headers: LibraryHeaders,
    /// Path of the GpuStub.toml, or of the Cargo.toml beside it
    #[command(flatten)]
    pub manifest: clap_cargo::Manifest,
}

impl RepairUserDefined {
    /// Selection of the package whose GpuStub.toml describes libraries.
    pub fn selection(&self) -> Selection {
        Selection {
            workspace: Default::default(),
            features: Default::default(),
            manifest: self.manifest.clone(),
            locked: false,
            offline: false,
            frozen: false,
            config: Vec::new(),
        }
    }
}

/// `plan`.
#[derive(Debug, Args)]
pub struct Plan {
    /// Output format: text, json, dot (device links for Graphviz)
    #[arg(long, hide_possible_values = true, default_value = "text")]
    pub format: PlanFormat,
    /// Explain how a target is linked
    ///
    /// NODE is the name of a target with CUDA device code in the plan, such as `physics` or `app/bin/app`.
    #[arg(long, value_name = "NODE", conflicts_with = "format")]
    pub why: Option<String>,
    /// Plan the device links of a graph in FILE (or `-`) instead of those of packages
    #[arg(long, value_name = "FILE", hide = true)]
    #[arg(conflicts_with_all = ["target", "package", "workspace", "all", "exclude", "features"])]
    #[arg(conflicts_with_all = ["all_features", "no_default_features", "PATH"])]
    #[arg(conflicts_with_all = ["locked", "offline", "frozen", "config"])]
    pub graph: Option<PathBuf>,
    /// Plan for this target triple [default: the host]
    #[arg(long, value_name = "TRIPLE")]
    pub target: Option<String>,
    /// Selected packages.
    #[command(flatten)]
    pub cargo: Selection,
}

/// `plan --format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PlanFormat {
    /// Human-readable
    Text,
    /// Machine-readable
    Json,
    /// Device links alone, in Graphviz' language
    Dot,
}

/// `--format` of several commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TextOrJson {
    /// Human-readable
    Text,
    /// Machine-readable
    Json,
}

/// `symbols`.
#[derive(Debug, Args)]
pub struct Symbols {
    /// Shared library, or DLL of Windows
    pub file: PathBuf,
    /// Output format: list (as in *.symbols files), json, ifs (text stub of llvm-ifs)
    #[arg(long, hide_possible_values = true, default_value = "list")]
    pub format: SymbolsFormat,
    /// Fail unless the library is for this machine: x86_64, aarch64
    #[arg(long)]
    pub machine: Option<String>,
    /// Fail unless this symbol is exported
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
    /// Shared library, *.symbols file, or known release: cudart@12.9
    pub old: String,
    /// Shared library, *.symbols file, or known release to compare with
    pub new: String,
    /// Output format: text, json
    #[arg(long, hide_possible_values = true, default_value = "text")]
    pub format: TextOrJson,
    /// Headers of both versions.
    #[command(flatten, next_help_heading = "Headers")]
    pub headers: DiffHeaders,
}

/// The headers of `diff`.
#[derive(Debug, Args)]
pub struct DiffHeaders {
    /// Headers of the old version: a header, or a directory to include from
    ///
    /// clang compares the declarations of functions in both versions; `CLANG` names another clang.
    #[arg(long, value_name = "PATH", requires = "new_headers")]
    pub old_headers: Vec<PathBuf>,
    /// Headers of the new version
    #[arg(long, value_name = "PATH", requires = "old_headers")]
    pub new_headers: Vec<PathBuf>,
    /// Header to include from the directories [default: that of the library]
    #[arg(long, value_name = "HEADER", requires = "old_headers")]
    pub include: Vec<String>,
    /// Argument for clang: -DNAME, -Idirectory
    #[arg(
        long,
        value_name = "ARG",
        requires = "old_headers",
        allow_hyphen_values = true
    )]
    pub clang_arg: Vec<String>,
}

/// `abi`.
#[derive(Debug, Args)]
pub struct Abi {
    /// Functions, names in sources, which macros replace, or libraries: as text their numbers of functions, as JSON these
    #[arg(value_name = "NAME", required_unless_present = "all")]
    pub names: Vec<String>,
    /// Show the functions of all libraries
    #[arg(long, conflicts_with = "names")]
    pub all: bool,
    /// Show the functions of one library only, for names that several libraries have
    #[arg(long, value_name = "LIBRARY")]
    pub library: Option<String>,
    /// Output format: text, json, jsonl (one JSON document on each line)
    #[arg(long, hide_possible_values = true, default_value = "text")]
    pub format: AbiFormat,
}

/// `abi --format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AbiFormat {
    /// Lines for readers
    Text,
    /// One JSON document
    Json,
    /// One JSON document for each function
    Jsonl,
}

/// `export`.
#[derive(Debug, Args)]
pub struct Export {
    /// The command.
    #[command(subcommand)]
    pub command: ExportCommand,
}

/// The commands of `export`.
#[derive(Debug, Subcommand)]
pub enum ExportCommand {
    /// Write stubs for other build systems
    Stubs(ExportStubs),
    /// Build and install libraries of relocatable CUDA and HIP code
    DeviceLink(ExportDeviceLink),
    /// Install the C header that reads super-archives
    ArchiveHeader(ExportArchiveHeader),
}

/// `export stubs`.
#[derive(Debug, Args)]
pub struct ExportStubs {
    /// Names of libraries [default: those in GpuStub.toml]
    #[arg(value_name = "LIBRARY")]
    pub libraries: Vec<String>,
    /// Directory to write
    #[arg(long, value_name = "DIR")]
    pub out_dir: PathBuf,
    /// Library type: static (to link in), shared (to ship) [default: as in GpuStub.toml]
    #[arg(long = "type", id = "type", hide_possible_values = true)]
    pub library_type: Option<StubType>,
    /// Build for this target triple [default: the host]
    #[arg(long, value_name = "TRIPLE")]
    pub target: Option<String>,
    /// Name of the shared library, without `lib` and `.so`; default: `gpustub_` and the libraries
    #[arg(long)]
    pub name: Option<String>,
    /// Version of the headers that the program is compiled against
    ///
    /// A major, `12`, a release, `12.8`, or `none`, which refuses the functions that depend on it. With a
    /// name in front, it holds for a toolkit, `cuda=12.8` or `hip=6.4`, or for one library, `cudnn=9`.
    #[arg(long, value_name = "[NAME=]VERSION", value_parser = header_version)]
    pub header_version: Vec<FamilyVersion>,
    /// Write DIR/lib/NAME, a shared library with the file name and the symbol versions of the real one
    ///
    /// For programs that need this file or open it themselves, unchanged: `libcudart.so.12`, `libcuda.so.1`. May be
    /// repeated. The header version is that of NAME, if it has one.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["name", "sources_only"])]
    pub soname: Vec<String>,
    /// Make stubs only for the functions that this program or shared library imports
    ///
    /// May be repeated. Without LIBRARY, the stubs are those of the libraries that FILE needs, with their header versions.
    /// A file of another system than the host needs `--target`.
    #[arg(long = "for", value_name = "FILE")]
    pub importers: Vec<PathBuf>,
    /// Write the sources only, compile nothing
    #[arg(long)]
    pub sources_only: bool,
    /// Package of the GpuStub.toml.
    #[command(flatten)]
    pub cargo: Selection,
}

/// `export stubs --type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StubType {
    /// An archive whose stubs are hidden in the image that links it
    Static,
    /// A shared library that exports the stubs
    Shared,
}

/// `export device-link`.
#[derive(Debug, Args)]
pub struct ExportDeviceLink {
    /// Installation prefix
    #[arg(long, value_name = "DIR", required_unless_present = "list")]
    pub prefix: Option<PathBuf>,
    /// Print the installed files without installing
    #[arg(long)]
    pub list: bool,
    /// Build in release mode, with optimizations
    #[arg(short, long, conflicts_with = "profile")]
    pub release: bool,
    /// Build with this profile of Cargo.toml
    #[arg(long, value_name = "PROFILE")]
    pub profile: Option<String>,
    /// Build for this target triple [default: that of cargo]
    #[arg(long, value_name = "TRIPLE")]
    pub target: Option<String>,
    /// Selected package.
    #[command(flatten)]
    pub cargo: Selection,
}

/// `export archive-header`.
#[derive(Debug, Args)]
pub struct ExportArchiveHeader {
    /// Installation prefix
    #[arg(long, value_name = "DIR", required_unless_present = "list")]
    pub prefix: Option<PathBuf>,
    /// Print the installed files without installing
    #[arg(long)]
    pub list: bool,
}

/// `doctor`.
#[derive(Debug, Args)]
pub struct Doctor {
    /// Packages of the GpuStub.toml [default: every known library, if there is none].
    #[command(flatten)]
    pub cargo: Selection,
}

/// `explain`.
#[derive(Debug, Args)]
pub struct Explain {
    /// Diagnostic code, as in `error[unknown-key]`
    #[arg(required_unless_present = "list")]
    pub code: Option<String>,
    /// List all codes
    #[arg(long, conflicts_with = "code")]
    pub list: bool,
}

/// `completions`.
#[derive(Debug, Args)]
pub struct Completions {
    /// Shell: bash, elvish, fish, powershell, zsh
    #[arg(hide_possible_values = true)]
    pub shell: clap_complete::Shell,
}

/// `man`.
#[derive(Debug, Args)]
pub struct Man {
    /// Command, such as `export stubs` [default: the tool itself]
    #[arg(value_name = "COMMAND")]
    pub command: Vec<String>,
    /// Write the pages of all commands to this directory
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    pub out_dir: Option<PathBuf>,
}
