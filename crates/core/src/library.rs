//! Library manifests: data of one GPU library (`manifests/<id>.toml`), or of a user-defined library in
//! `GpuStub.toml`.

mod builtin;
#[cfg(feature = "tools")]
pub mod exports;
mod families;
pub(crate) mod parse;

use crate::abi_table::AbiTable;
use crate::by_name::ByName;
pub use crate::returns::Returns;
use crate::spanned::{Spanned, values};
use crate::symbols::SymbolList;
use crate::version::Version;

/// Origin of a library, which decides where the run time searches for it.
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(PartialEq, Eq, Clone, Copy, Default)]
pub enum Role {
    /// Installed with the kernel driver (libcuda, libnvidia-ml): never taken from a toolkit.
    Driver,
    /// Part of a toolkit (cudart, nvrtc): wheels, conda, toolkits.
    #[default]
    Toolkit,
    /// A loader in front of vendors' drivers (libOpenCL): by the loader's search only. A package may bring one, which finds
    /// the same drivers.
    Loader,
}

/// A file name to request from the loader.
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(PartialEq, Eq, Clone)]
pub struct LoadName {
    /// The toolkit major it belongs to; `None`: an unversioned name.
    pub major: Option<u32>,
    /// For example `libcudart.so.12`.
    pub name: String,
}

/// Version probe: a string in a file that the toolkit's major follows.
#[cfg_attr(feature = "tools", derive(Debug, Clone))]
#[derive(PartialEq, Eq)]
pub enum VersionProbe {
    /// Prefix of a DT_NEEDED entry: `libcublas.so.`.
    Needed(String),
    /// Prefix of a constant (section `.rodata`).
    Constant {
        /// For example `+cuda`.
        prefix: String,
        /// Name up to `.so` of a sibling that is read instead of the file itself: `libcudnn_adv`. The
        /// rest of the name is the same in both.
        sibling: Option<String>,
    },
}

/// Search keys that replace those of other systems on Windows, where no directory has a fixed path.
#[cfg_attr(feature = "tools", derive(Debug, Clone))]
#[derive(Default, PartialEq, Eq)]
pub struct WindowsSearch {
    /// [`Library::wheel_dirs`]: `nvidia/cu13/bin/x86_64`.
    pub wheel_dirs: Vec<String>,
    /// [`Library::root_subdirs`]: `bin/x64`.
    pub root_subdirs: Vec<String>,
    /// [`Library::preload`].
    pub preload: Vec<Preload>,
}

/// A file that the library opens later by a bare name.
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(PartialEq, Eq, Clone)]
pub struct Preload {
    /// Name beside the library, `libnvrtc-builtins.so.`, or below a site-packages directory,
    /// `nvidia/cuda_nvrtc/lib/libnvrtc.so.`. After a dot at the end the major follows.
    pub file: String,
    /// Prefix of the functions that need the file; `None`: any.
    pub functions: Option<String>,
}

/// Query of the library's version after loading.
#[cfg_attr(feature = "tools", derive(Debug, Clone))]
#[derive(PartialEq, Eq)]
pub struct VersionQuery {
    /// Function that returns the version.
    pub function: String,
    /// Signature and number format.
    pub encoding: VersionEncoding,
}

/// Signature and number format of a version function.
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(PartialEq, Eq, Clone, Copy)]
pub enum VersionEncoding {
    /// `int f(int *v)`, `*v = 1000 * major + 10 * minor` (cuDriverGetVersion, cudaRuntimeGetVersion).
    Cuda,
    /// `int f(int *major, int *minor)` (nvrtcVersion).
    Pair,
    /// `int f(int *v)`, `*v = 10_000_000 * major + 100_000 * minor + patch` (hipRuntimeGetVersion).
    Hip,
    /// `int f(libraryPropertyType type, int *v)` for major, minor and patch of a number of the library's own
    /// (cufftGetProperty). The ABI table has the releases; without any, the numbers are those of the versions.
    Property,
    /// `int f(char *text, unsigned size)`, with the driver's branch after the first dot (nvmlSystemGetNVMLVersion).
    /// The ABI table has the releases.
    Driver,
}

/// Value written through a pointer argument when the function cannot be called.
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OutKind {
    /// Zeros of this size in bytes. 0 is the size of a pointer.
    Zero(u32),
    /// The status code for the reason, as a 32-bit integer (`errcode_ret`).
    Status,
    /// The library's fall-back string (`char **`).
    String,
    /// The name of the status code in the first argument (`char **`); NULL if it is unknown.
    ErrorName,
    /// Number and name of that code, in the same way.
    ErrorString,
}

/// An out-parameter.
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Out {
    /// Index of the argument among the integer and pointer arguments, from 0.
    pub arg: u8,
    /// Index among all arguments: on Windows each of them takes a word ("x64 calling convention",
    /// learn.microsoft.com).
    pub position: u8,
    /// Value written.
    pub kind: OutKind,
}

/// Behaviour of one function that cannot be called.
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Fallback {
    /// Return value.
    pub returns: Returns,
    /// Out-parameters, ordered by argument.
    pub outs: Vec<Out>,
    /// Arguments of 64 bits on all machines, in ascending order: two words each where words have 32 bits.
    pub wide: Vec<u8>,
    /// Status code for a missing library, if it differs from the library's.
    pub status_if_missing: Option<i32>,
}

impl Fallback {
    /// Whether the function names a status code, or says which ones there are.
    pub fn names_error(&self) -> bool {
        matches!(
            self.returns,
            Returns::ErrorName | Returns::ErrorString | Returns::UnknownError(_)
        ) || self
            .outs
            .iter()
            .any(|out| matches!(out.kind, OutKind::ErrorName | OutKind::ErrorString))
    }
}

/// Role of a function beyond a call. All but [`Self::Update`] are roles in compilers' start-up code, which calls the
/// function before main for each module with device code. The stub answers without the library and replays the call
/// once the library is loaded.
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HookKind {
    /// Opens a module: `handle f(fatbin)`.
    Open,
    /// Registers something with a module: `void f(handle, …)`.
    Record,
    /// Closes a module: `void f(handle)`. Never loads the library.
    Close,
    /// A real call whose first argument is the module's handle.
    Call,
    /// `status f(out, in)`: where a version lacks it, copies the handle `in` to `out`.
    CopyThrough,
    /// A real call after which the stubs' copies of the library's data are made again. Requested by the symbol list.
    Update,
}

/// A function with a role.
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hook {
    /// Role.
    pub kind: HookKind,
    /// Number of integer and pointer arguments. Of [`HookKind::Update`]: number of the argument, from 1, with a function
    /// of the program that reads the data and that the library calls before it returns; 0: none.
    pub args: u8,
}

/// Status codes of a library's API, by the reason of the failure.
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(PartialEq, Eq, Default, Clone, Copy)]
pub struct Status {
    /// The library cannot be loaded.
    pub library_missing: i32,
    /// The library is loaded and lacks the function.
    pub missing: i32,
    /// The function's ABI differs between the program's headers and this library.
    pub refused: i32,
    /// The process is exiting.
    pub unloading: i32,
}

impl Status {
    /// One code for every reason.
    pub const fn all(code: i32) -> Self {
        Self {
            library_missing: code,
            missing: code,
            refused: code,
            unloading: code,
        }
    }
}

/// A library manifest. Every list is in order of preference.
#[cfg_attr(feature = "tools", derive(Debug, Clone))]
#[derive(PartialEq, Eq, Default)]
pub struct Library {
    /// For example `cudart`.
    pub id: String,
    /// Human-readable name: `CUDA runtime`.
    pub title: String,
    /// Family name; libraries of one family share one toolkit major and root. Empty: none.
    pub family: String,
    /// Origin.
    pub role: Role,
    /// The names after `-l`: `cudart`.
    pub link_names: Vec<String>,
    /// Load names by `CARGO_CFG_TARGET_OS`, newest major first, unversioned last.
    pub load_names: ByName<Vec<LoadName>>,
    /// Directories below a site-packages directory: `nvidia/cu13/lib`.
    pub wheel_dirs: Vec<String>,
    /// Environment variables that name a toolkit root: `CUDA_HOME`.
    pub root_env: Vec<String>,
    /// Well-known toolkit roots; one `*` in the last component matches a version.
    pub roots: Vec<String>,
    /// Directories with libraries below a toolkit root: `lib64`. `{arch}` is replaced, and
    /// `{cuda-target}` by each name of the target below `targets` of a CUDA toolkit.
    pub root_subdirs: Vec<String>,
    /// Driver directories that are searched before the loader's own search (WSL). `{arch}` is replaced.
    pub dirs_before_loader: Vec<String>,
    /// Driver directories that are searched after the loader's own search. `{arch}` is replaced.
    pub dirs_after_loader: Vec<String>,
    /// Files to preload, because the library opens them later.
    pub preload: Vec<Preload>,
    /// The search on Windows, where it differs.
    pub windows: WindowsSearch,
    /// Probes for the toolkit's major where toolkit majors share a load name. The first match counts.
    pub toolkit_version_from: Vec<VersionProbe>,
    /// Whether versions, and the majors of load names, are the library's own (cuDNN 9), independent of its toolkit's,
    /// which only `toolkit_version_from` determines then.
    pub independent_major: bool,
    /// Oldest headers of the library for a major of its toolkit, where the versions are its own.
    pub oldest_headers: Vec<(u32, Version)>,
    /// Whether the library exists with words of 32 bits. The headers of others do not state which of their arguments
    /// take two words, so that their out-parameters stay unwritten there.
    pub has_32_bit: bool,
    /// Whether functions without `version=` in the symbol list have the soname as their version node, as in
    /// NVIDIA's toolkit libraries.
    pub versioned_by_soname: bool,
    /// The driver library whose version limits which toolkit majors work: `cuda`.
    pub driver: Option<String>,
    /// Query of the library's own version.
    pub version_query: Option<VersionQuery>,
    /// The status codes.
    pub status: Status,
    /// Result of string functions; `{title}` has been replaced.
    pub status_string: String,
    /// Names of the status codes: lines such as `35 cudaErrorInsufficientDriver`, and comments.
    pub errors: &'static str,
    /// Fall-backs of functions other than plain status functions, by name.
    pub fallbacks: ByName<Fallback>,
    /// Functions whose ABI differs between versions.
    pub abi: AbiTable,
    /// Functions with a role beyond a call, by name.
    pub hooks: ByName<Hook>,
    /// Symbol bound where a version lacks a function, by the function's name.
    pub fallback_symbols: ByName<String>,
    /// The functions.
    pub symbols: SymbolList,
}

impl Library {
    /// Family whose toolkit's versions are the library's, in `header-version` as in symbol lists. `None`: versions
    /// are the library's own, and say nothing about those of other libraries.
    pub fn toolkit_family(&self) -> Option<&str> {
        let is_of_toolkit = !self.independent_major && !self.family.is_empty();
        is_of_toolkit.then_some(self.family.as_str())
    }

    /// Majors for which the library has a load name on `os`, a symbol list or an ABI table, newest first.
    pub fn majors(&self, os: &str) -> Vec<u32> {
        let mut majors = Vec::new();
        for name in self.load_names.get(os).map_or(&[][..], Vec::as_slice) {
            if let Some(major) = name.major {
                add_major(&mut majors, major);
            }
        }
        for version in self.symbols.releases.iter().chain(self.abi.headers()) {
            add_major(&mut majors, version.major);
        }
        majors
    }
}

/// Adds a major to a list in descending order.
pub(super) fn add_major(majors: &mut Vec<u32>, major: u32) {
    if let Err(index) = majors.binary_search_by(|known| major.cmp(known)) {
        majors.insert(index, major);
    }
}

impl LoadName {
    /// A load name whose major is the first number after `.so.` (ELF) or before `.dylib` (Mach-O).
    pub fn new(name: impl Into<String>) -> Self {
        let name = name.into();
        let version = match name.split_once(".so.") {
            Some((_, version)) => Some(version),
            None => name
                .strip_suffix(".dylib")
                .and_then(|stem| stem.split_once('.'))
                .map(|(_, version)| version),
        };
        let major = version
            .and_then(|version| version.split('.').next())
            .filter(|major| major.len() <= 4)
            .and_then(|major| major.parse().ok());
        Self { major, name }
    }
}

/// Load names without their locations.
pub(crate) fn plain_load_names(
    load_names: &ByName<Vec<Spanned<LoadName>>>,
) -> ByName<Vec<LoadName>> {
    let mut plain = ByName::new();
    for (os, names) in load_names {
        plain.insert(os, values(names));
    }
    plain
}

/// Whether a text can be a library's id: the id becomes a part of C names and of a variable's name.
pub fn is_id(id: &str) -> bool {
    id.len() <= 64
        && id.starts_with(|c: char| c.is_ascii_lowercase())
        && id
            .bytes()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_'))
}

/// Id as a part of C names: `cublas-lt` becomes `cublas_lt`.
pub fn c_name(id: &str) -> String {
    id.replace("-", "_")
}

/// Environment variable that overrides the search for this library: `GPUSTUB_CUBLAS_LT_PATH`.
pub fn override_variable(id: &str) -> String {
    format!("GPUSTUB_{}_PATH", c_name(id).to_ascii_uppercase())
}

/// Name of the variable with which a build links the library itself instead of its stubs:
/// `GPUSTUB_CUDART_LINK=dylib`.
pub fn link_variable(id: &str) -> String {
    format!("GPUSTUB_{}_LINK", c_name(id).to_ascii_uppercase())
}

#[cfg(test)]
mod tests;
