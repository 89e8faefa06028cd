//! Options of `add` and `remove`.

use std::path::PathBuf;

use clap::Args;
use gpustub_core::library::Returns;
use gpustub_workspace::selection::Selection;

use crate::cli::values::{FamilyVersion, header_version, returns, toolkit_release};

/// `add`.
#[derive(Debug, Args)]
pub struct Add {
    /// Names of libraries: cuda, cudart, nvrtc [default: list those that dependencies link]
    ///
    /// `cargo gpustub doctor` outside of a package lists all of them.
    #[arg(value_name = "LIBRARY")]
    pub libraries: Vec<String>,
    /// Version of the headers that the program is compiled against
    ///
    /// A major, `12`, a release, `12.8`, or `none`, which refuses the functions that depend on it. With a
    /// name in front, it holds for a toolkit, `cuda=12.8` or `hip=6.4`, or for one library, `cudnn=9`.
    #[arg(long, value_name = "[NAME=]VERSION", value_parser = header_version)]
    #[arg(requires = "libraries")]
    pub header_version: Vec<FamilyVersion>,
    /// User-defined library.
    #[command(flatten, next_help_heading = "User-defined library")]
    pub own: AddOwn,
    /// Toolkit for build scripts.
    #[command(flatten, next_help_heading = "Toolkit")]
    pub toolkit: AddToolkit,
    /// Extent of the changes.
    #[command(flatten)]
    pub changes: Changes,
    /// Selected package.
    #[command(flatten)]
    pub cargo: Selection,
}

/// The options of `add` and `remove` about the files that are changed.
#[derive(Debug, Args)]
pub struct Changes {
    /// Change GpuStub.toml only: `cargo gpustub sync` then makes the package build it
    #[arg(long)]
    pub no_sync: bool,
    /// Print the changes without writing them
    #[arg(long)]
    pub dry_run: bool,
}

/// The options of `add` about a user-defined library.
#[derive(Debug, Args)]
pub struct AddOwn {
    /// Read the load name and the functions of LIBRARY from this shared library, DLL or import library
    ///
    /// `libacme.so.3`, or for Windows `acme64_3.dll`, `acme.lib` or `libacme.dll.a`. Writes the table and the symbol
    /// list. For a declared library it updates the list, and keeps comments, `returns=` and `copied`.
    #[arg(
        long,
        value_name = "FILE",
        requires = "libraries",
        group = "library_file"
    )]
    pub from: Option<PathBuf>,
    /// Headers of the library.
    #[command(flatten)]
    pub headers: LibraryHeaders,
}

/// The options of `add` and `repair` about the results of a library's functions.
#[derive(Debug, Args)]
pub struct LibraryHeaders {
    /// Read return types from a header, or a directory to include from
    ///
    /// clang reads the headers, those of a DLL for Windows; `CLANG` names another clang.
    #[arg(
        id = "headers",
        long = "headers",
        value_name = "PATH",
        requires = "library_file"
    )]
    pub paths: Vec<PathBuf>,
    /// Header to include from the directories
    #[arg(long, value_name = "HEADER", requires = "headers")]
    pub include: Vec<String>,
    /// Argument for clang: -DNAME, -Idirectory
    #[arg(
        long,
        value_name = "ARG",
        requires = "headers",
        allow_hyphen_values = true
    )]
    pub clang_arg: Vec<String>,
    /// Result of the functions for which no header is read: status, null, value:1
    ///
    /// As `fallback.returns` of a table in GpuStub.toml, which `add` writes. `status` is for functions that all return a
    /// status: one that returns a pointer would return -1, at which its callers crash.
    #[arg(long, value_name = "CLASS", requires = "library_file", value_parser = returns)]
    pub returns: Option<Returns>,
}

/// The options of `add` about the `[toolkit]` table.
#[derive(Debug, Args)]
pub struct AddToolkit {
    /// Lay out a directory that build scripts accept as an installed toolkit: cuda=12.8, hip=6.4
    #[arg(id = "toolkit", long = "toolkit", value_name = "FAMILY=VERSION")]
    #[arg(value_parser = toolkit_release)]
    pub releases: Vec<FamilyVersion>,
    /// Copy real headers from a toolkit, an include directory or a wheel
    #[arg(id = "toolkit_headers", long = "toolkit-headers", value_name = "PATH")]
    pub headers: Vec<PathBuf>,
    /// Directory of the toolkit, relative to the workspace root [default: gpustub-toolkit]
    #[arg(id = "toolkit_dir", long = "toolkit-dir", value_name = "DIR")]
    pub dir: Option<String>,
    /// Override toolkit variables that the environment sets
    #[arg(id = "toolkit_force", long = "toolkit-force")]
    pub force: bool,
    /// Override the build script of this crate (`[target.<triple>.<links>]`)
    #[arg(
        id = "override_build_script",
        long = "override-build-script",
        value_name = "CRATE"
    )]
    pub override_build_scripts: Vec<String>,
}

impl AddToolkit {
    /// Whether any of the options is given.
    pub fn is_given(&self) -> bool {
        !self.releases.is_empty()
            || !self.headers.is_empty()
            || !self.override_build_scripts.is_empty()
            || self.dir.is_some()
            || self.force
    }

    /// The release of a family; the last one, if it is given several times.
    pub fn release(&self, family: &str) -> Option<&str> {
        self.releases
            .iter()
            .rev()
            .find(|release| release.family.as_deref() == Some(family))
            .map(|release| release.version.as_str())
    }
}

/// `remove`.
#[derive(Debug, Args)]
pub struct Remove {
    /// Names of libraries in GpuStub.toml
    #[arg(required = true, value_name = "LIBRARY")]
    pub libraries: Vec<String>,
    /// Extent of the changes.
    #[command(flatten)]
    pub changes: Changes,
    /// Selected package.
    #[command(flatten)]
    pub cargo: Selection,
}
