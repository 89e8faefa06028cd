//! Symbol lists: exports of a library, one symbol a line.
//!
//! ```text
//! @gpustub-symbols 1
//! @soname libcudart.so.13
//! @releases 11.8 12.9 13.0
//! cudaBindTexture releases=11.8
//! cudaD3D11GetDevice system=windows
//! cudaFree
//! cudaGetErrorString returns=string
//! hipGetDeviceProperties version=hip_4.2 compat
//! hipGetDeviceProperties version=hip_6.0
//! someInit updates
//! someTable kind=object size=64 copied
//! weakHelper weak
//! ```
//!
//! Lines are sorted by name, then symbol version. A line that starts with `@` applies to the whole
//! list, `#` starts a comment line. Attributes: `kind=ifunc|notype|object|tls` (`func` is not written),
//! `weak`, `version=NODE` (ELF symbol version), `compat` (not the default version), `size=N` (data),
//! `copied` (the stub is an object with a copy of the data), `updates` (the function may change such data: copies are
//! made again when it returns), `callback=N` (argument N of such a function, from 0, is a function that reads the data),
//! `system=SYSTEM` (the library of no other system has it: a key of `load-names`),
//! `releases=RANGES` (releases that have the symbol: `11.8`, `11.8-12.9`, `12.9-` up to the last, several
//! joined with commas), `returns=CLASS` (result of the function without the library): `status`, `null` (NULL or
//! zero), `string`, `void`, `value:N`, `zeroed-struct:SIZE`, `zeroed-hfa:SIZE` (the same, of up
//! to four equal floating-point members). A library's manifest has the classes of functions without one, `fallback.returns`
//! of its table those of a user-defined library.

mod read;
#[cfg(feature = "tools")]
mod write;

use crate::returns::Returns;
use crate::suggest::nearest;
use crate::version::Version;

/// Type of a symbol (ELF `st_info` type; gABI, "Symbol Table").
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(PartialOrd, Ord, Hash, Clone, Copy, PartialEq, Eq, Default)]
pub enum SymbolKind {
    /// `STT_FUNC`.
    #[default]
    Function,
    /// `STT_GNU_IFUNC`: a function that the loader picks.
    Ifunc,
    /// `STT_NOTYPE`: in practice a function written in assembly.
    NoType,
    /// `STT_OBJECT` or `STT_COMMON`: data.
    Object,
    /// `STT_TLS`: thread-local data.
    Tls,
}

impl SymbolKind {
    /// The name in a list; functions are not marked.
    const NAMES: [(&'static str, Self); 4] = [
        ("ifunc", Self::Ifunc),
        ("notype", Self::NoType),
        ("object", Self::Object),
        ("tls", Self::Tls),
    ];

    /// Whether it is data, of which a stub can be a copy only.
    pub fn is_data(self) -> bool {
        matches!(self, Self::Object | Self::Tls)
    }
}

/// One exported symbol.
#[cfg_attr(feature = "tools", derive(Debug, Clone))]
#[derive(PartialEq, Eq, Default)]
pub struct Symbol {
    /// Name, without symbol version.
    pub name: String,
    /// Type.
    pub kind: SymbolKind,
    /// Weak binding.
    pub weak: bool,
    /// ELF symbol version, for example `OPENCL_1.2`.
    pub version: Option<String>,
    /// Compat symbol: a non-default version (`name@V1`, not `name@@V1`), bound by old programs only.
    pub compat: bool,
    /// Size in bytes; written for data only.
    pub size: u64,
    /// Data that the stub is a copy of, from the time at which the library is bound.
    pub copied: bool,
    /// A function that may change the library's data: copies are made again when it returns.
    pub updates: bool,
    /// Index of the argument, of a function that changes data, with a function of the program that reads the data: the
    /// library may call it before the first one returns.
    pub callback: Option<u8>,
    /// The only system (`CARGO_CFG_TARGET_OS`) whose library has it; `None`: any.
    pub system: Option<&'static str>,
    /// Result without the library; `None`: unknown.
    pub returns: Option<Returns>,
    /// Inclusive ranges of [`SymbolList::releases`] that have it; empty: all.
    pub releases: Vec<(Version, Version)>,
}

impl Symbol {
    /// Order in a list, in which it is unique.
    fn sort_key(&self) -> (&str, Option<&str>) {
        (&self.name, self.version.as_deref())
    }

    /// Whether the library may have it on `os`.
    pub fn is_on(&self, os: &str) -> bool {
        self.system.is_none_or(|system| system == os)
    }

    /// Whether the library of a release has it.
    pub fn is_in(&self, release: Version) -> bool {
        let mut ranges = self.releases.iter();
        self.releases.is_empty() || ranges.any(|(first, last)| (*first..=*last).contains(&release))
    }

    /// Whether its stub is an object with a copy of the library's data.
    pub fn is_copied(&self) -> bool {
        self.copied && self.kind == SymbolKind::Object
    }

    /// Whether it is an inline function of C++, or its vtable, of which the program has its own copy.
    pub fn is_weak_cxx(&self) -> bool {
        self.weak && self.name.starts_with("_Z")
    }
}

/// A symbol list.
#[cfg_attr(feature = "tools", derive(Debug, Clone))]
#[derive(PartialEq, Eq, Default)]
pub struct SymbolList {
    /// The library's soname.
    pub soname: Option<String>,
    /// ELF machine of the library, for example `x86_64`; `None` for a list of names only.
    pub machine: Option<String>,
    /// Releases recorded in the list, ascending.
    pub releases: Vec<Version>,
    /// Sorted by name, then symbol version; unique.
    pub symbols: Vec<Symbol>,
}

/// Whether a list can hold this name (or symbol version): one word that is no directive and no comment. An
/// assembler accepts less, which the planner of stubs checks.
pub fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(['@', '#'])
        && (is_plain(name) || !name.contains(|c: char| c.is_whitespace() || c.is_control()))
}

/// Whether it consists of visible ASCII characters only, as nearly all names do.
fn is_plain(text: &str) -> bool {
    text.as_bytes().iter().all(|b| matches!(b, b'!'..=b'~'))
}

impl SymbolList {
    /// Callable symbols: functions, IFUNCs and NOTYPE, each name once (its default version if
    /// it has one, else its last compat one).
    pub fn functions(&self) -> impl Iterator<Item = &Symbol> {
        self.functions_among(|_| true)
    }

    /// [`Self::functions`] of the list with the accepted symbols only: a name has other symbol versions in other releases.
    pub fn functions_among<'a>(
        &'a self,
        is_accepted: impl Fn(&Symbol) -> bool + 'a,
    ) -> impl Iterator<Item = &'a Symbol> {
        self.symbols
            .chunk_by(|a, b| a.name == b.name)
            .filter_map(move |versions| {
                versions
                    .iter()
                    .filter(|symbol| !symbol.kind.is_data() && is_accepted(symbol))
                    .max_by_key(|symbol| !symbol.compat)
            })
    }

    /// [`Self::functions`] that the library may have on `os`.
    pub fn functions_on<'a>(&'a self, os: &'a str) -> impl Iterator<Item = &'a Symbol> {
        self.functions().filter(move |symbol| symbol.is_on(os))
    }

    /// Help that suggests the function nearest to an unknown name.
    pub(crate) fn did_you_mean(&self, word: &str) -> Option<String> {
        nearest(word, self.functions().map(|symbol| symbol.name.as_str()))
            .map(|meant| format!("did you mean `{meant}`?"))
    }

    /// All entries of a name: one, unless it has several symbol versions; none if it is missing.
    pub fn lookup(&self, name: &str) -> &[Symbol] {
        let start = self
            .symbols
            .partition_point(|symbol| symbol.name.as_str() < name);
        let rest = &self.symbols[start..];
        &rest[..rest.partition_point(|symbol| symbol.name == name)]
    }
}

#[cfg(test)]
mod tests;
