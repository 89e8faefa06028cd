//! Library manifests: what gpustub knows of one GPU library (`manifests/<id>.toml`), or what
//! `GpuStub.toml` says of a library of one's own.

mod parse;

pub(crate) use parse::{LONGEST_PREFIX, MOST_HOOK_ARGS};

use std::sync::OnceLock;

use gpustub_manifests::LIBRARIES;

use crate::by_name::ByName;
use crate::diag::Diagnostic;
use crate::gates::Gates;
use crate::symbols::SymbolList;

/// Where a library comes from, which decides where it is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Installed with the kernel driver (libcuda, libnvidia-ml): never taken from a toolkit.
    Driver,
    /// Part of a toolkit (cudart, nvrtc): wheels, conda, toolkits.
    Toolkit,
    /// A system loader in front of vendors' drivers (libOpenCL): the loader's search only.
    Loader,
}

/// A file name to ask the loader for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadName {
    /// The toolkit major it belongs to; `None`: an unversioned name.
    pub major: Option<u32>,
    /// For example `libcudart.so.12`.
    pub name: String,
}

/// Where the toolkit's major stands in a file: right after this text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToldBy {
    /// In the name of a library that it needs (DT_NEEDED): `libcublas.so.`.
    Needed(String),
    /// In its constants (section `.rodata`).
    Text {
        /// For example `+cuda`.
        text: String,
        /// Not in the file itself but in one beside it: its name up to `.so`, `libcudnn_adv`. What
        /// follows that is the same in both names.
        beside: Option<String>,
    },
}

/// How the library is asked for its version after loading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VersionForm {
    /// `int f(int *v)`, `*v = 1000 * major + 10 * minor` (cuDriverGetVersion, cudaRuntimeGetVersion).
    Cuda,
    /// `int f(int *major, int *minor)` (nvrtcVersion).
    Pair,
    /// `int f(int *v)`, `*v = 10_000_000 * major + 100_000 * minor + patch` (hipRuntimeGetVersion).
    Hip,
}

/// What a function gives back when it cannot be called.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Returns {
    /// The library's status code for the reason.
    #[default]
    Status,
    /// This number, whatever the reason.
    Value(i32),
    /// The library's fall-back text, as a C string.
    Text,
    /// NULL.
    Null,
    /// Nothing.
    Void,
    /// A struct of this many bytes, all zero, through the hidden result pointer.
    Struct(u32),
}

/// What is written through a pointer argument when the function cannot be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OutKind {
    /// This many bytes of zero. 0 stands for the size of a pointer.
    Zero(u32),
    /// The status code for the reason, as a 32-bit integer (`errcode_ret`).
    Status,
    /// The library's fall-back text (`char **`).
    Text,
}

/// An out-parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Out {
    /// The argument's index among the integer and pointer arguments, from 0.
    pub arg: u8,
    /// What is written there.
    pub kind: OutKind,
}

/// What one function does when it cannot be called.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Fallback {
    /// What it returns.
    pub returns: Returns,
    /// What it writes, ordered by argument.
    pub outs: Vec<Out>,
    /// The code for a missing library, if it is another than the library's.
    pub missing: Option<i32>,
}

/// What a function is to compilers' start-up code, which calls it before main for each module with
/// device code. It is answered without the library, and replayed when that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HookKind {
    /// Opens a module: `handle f(fatbin)`.
    Open,
    /// Registers something with a module: `void f(handle, …)`.
    Record,
    /// Closes a module: `void f(handle)`. Never loads the library.
    Close,
    /// A call as others, but for the module's handle that it takes first.
    Handle,
    /// `status f(out, in)`: where a version lacks it, what is in is what is out.
    Identity,
}

/// A function of compilers' start-up code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hook {
    /// What it does.
    pub kind: HookKind,
    /// How many integer and pointer arguments it has.
    pub args: u8,
}

/// The status codes of a library's API, by the reason that a call cannot be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Codes {
    /// The library is not there.
    pub library_missing: i32,
    /// The library is there, the function is not.
    pub function_missing: i32,
    /// The function's meaning differs between the program's headers and this library.
    pub refused: i32,
    /// The process is exiting.
    pub unloading: i32,
}

impl Codes {
    /// One code for every reason.
    pub const fn all(code: i32) -> Self {
        Self {
            library_missing: code,
            function_missing: code,
            refused: code,
            unloading: code,
        }
    }
}

/// A library manifest. Every list is in order of preference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Library {
    /// For example `cudart`.
    pub id: String,
    /// For people: `CUDA runtime`.
    pub title: String,
    /// Libraries of one family share one toolkit major and root. Empty: none.
    pub family: String,
    /// Where it comes from.
    pub role: Role,
    /// The names after `-l`: `cudart`.
    pub link_names: Vec<String>,
    /// Load names by `CARGO_CFG_TARGET_OS`, newest major first, unversioned last.
    pub load_names: ByName<Vec<LoadName>>,
    /// Directories below a site-packages directory: `nvidia/cu13/lib`.
    pub wheel_dirs: Vec<String>,
    /// Environment variables that name a toolkit root: `CUDA_HOME`.
    pub root_variables: Vec<String>,
    /// Well-known toolkit roots; one `*` in the last component may stand for a version.
    pub roots: Vec<String>,
    /// Directories with libraries below a toolkit root: `lib64`. `{arch}` is replaced.
    pub root_dirs: Vec<String>,
    /// Driver directories that come before the loader's own search (WSL). `{arch}` is replaced.
    pub dirs_first: Vec<String>,
    /// Driver directories that come after it. `{arch}` is replaced.
    pub dirs: Vec<String>,
    /// File-name prefixes of siblings to load with it: `libnvrtc-builtins.so.`.
    pub needs: Vec<String>,
    /// Where two toolkit majors share a load name: what tells them apart. The first that does counts.
    pub told_by: Vec<ToldBy>,
    /// Whether the majors of load names are the library's own (cuDNN 9), not its toolkit's, which then
    /// only `told_by` tells.
    pub own_majors: bool,
    /// The driver library whose version limits which toolkit majors work: `cuda`.
    pub driver: Option<String>,
    /// The function that tells the version.
    pub version: Option<(String, VersionForm)>,
    /// The status codes.
    pub codes: Codes,
    /// The text of string functions; `{title}` has been replaced.
    pub text: String,
    /// What functions other than plain status functions do, by name.
    pub fallbacks: ByName<Fallback>,
    /// Which functions mean something else in other versions.
    pub gates: Gates,
    /// What compilers' start-up code calls before main, by name.
    pub hooks: ByName<Hook>,
    /// What is bound where a version lacks a function, by the function's name.
    pub instead: ByName<String>,
    /// The functions.
    pub symbols: SymbolList,
}

impl Library {
    /// Reads a shipped manifest. `file` names it in diagnostics; its symbol list and its gates are
    /// named alike.
    pub fn parse(
        file: &str,
        manifest: &str,
        symbols: &str,
        gates: &str,
    ) -> (Option<Self>, Vec<Diagnostic>) {
        parse::library(file, manifest, symbols, gates)
    }

    /// The shipped library of this id. (A test keeps all shipped manifests readable.)
    pub fn builtin(id: &str) -> Option<&'static Self> {
        // Read once: a workspace asks for the same few in each of its packages.
        static READ: [OnceLock<Option<Library>>; LIBRARIES.len()] =
            [const { OnceLock::new() }; LIBRARIES.len()];
        let index = LIBRARIES.iter().position(|library| library.id == id)?;
        let text = &LIBRARIES[index];
        READ[index]
            .get_or_init(|| {
                Self::parse(
                    &format!("{id}.toml"),
                    text.manifest,
                    text.symbols,
                    text.gates,
                )
                .0
            })
            .as_ref()
    }

    /// The ids of all shipped libraries, sorted.
    pub fn builtin_ids() -> impl Iterator<Item = &'static str> {
        LIBRARIES.iter().map(|l| l.id)
    }

    /// The majors that it has a load name on `os`, a symbol list or gates for, newest first.
    pub fn majors(&self, os: &str) -> Vec<u32> {
        let mut majors = Vec::new();
        let mut add = |major: u32| {
            if let Err(index) = majors.binary_search_by(|other| major.cmp(other)) {
                majors.insert(index, major);
            }
        };
        for name in self.load_names.get(os).map_or(&[][..], Vec::as_slice) {
            name.major.map(&mut add);
        }
        for version in self.symbols.versions.iter().chain(self.gates.headers()) {
            add(version.major);
        }
        majors
    }
}

impl LoadName {
    /// A load name whose major is the first number after `.so.` (ELF) or before `.dylib` (Mach-O).
    pub fn new(name: impl Into<String>) -> Self {
        let name = name.into();
        let number = |text: &str| {
            Some(text)
                .filter(|t| t.len() <= 4)
                .and_then(|t| t.parse().ok())
        };
        let major = match name.split_once(".so.") {
            Some((_, version)) => version.split('.').next().and_then(number),
            None => name
                .strip_suffix(".dylib")
                .and_then(|stem| stem.split_once('.'))
                .and_then(|(_, version)| version.split('.').next().and_then(number)),
        };
        Self { major, name }
    }
}

/// Whether this can be a library's id: it becomes a part of C names and of a variable's name.
pub fn is_id(id: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_';
    id.len() <= 64 && id.starts_with(|c: char| c.is_ascii_lowercase()) && id.bytes().all(inner)
}

/// The id as a part of C names: `cublas-lt` becomes `cublas_lt`.
pub fn c_name(id: &str) -> String {
    id.replace('-', "_")
}

/// The environment variable that overrides where this library is looked for:
/// `GPUSTUB_CUBLAS_LT_PATH`.
pub fn override_variable(id: &str) -> String {
    format!("GPUSTUB_{}_PATH", c_name(id).to_ascii_uppercase())
}

#[cfg(test)]
mod tests;
