//! Symbol lists: what a library exports, one symbol a line.
//!
//! ```text
//! @gpustub-symbols 1
//! @soname libcudart.so.13
//! @versions 11.8 12.9 13.0
//! cudaBindTexture in=11.8
//! cudaFree
//! hipGetDeviceProperties node=hip_4.2 old
//! hipGetDeviceProperties node=hip_6.0
//! someTable kind=object size=64
//! weakHelper weak
//! ```
//!
//! Lines are sorted by name, then node. A line that starts with `@` says something of the whole
//! list, `#` starts a comment line. Attributes: `kind=ifunc|notype|object|tls` (`func` is not
//! written), `weak`, `node=N`, `old`, `size=N` (data), `in=RANGES` (the versions that have the
//! symbol: `11.8`, `11.8-12.9`, `12.9-` up to the last, several joined with commas).

mod read;
#[cfg(feature = "tools")]
mod write;

use crate::diag::Diagnostic;
use crate::suggest::nearest;
use crate::version::Version;

/// What a symbol is (ELF `st_info` type; gABI, "Symbol Table").
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Kind {
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

impl Kind {
    /// The name in a list; functions are not marked.
    const NAMES: [(&'static str, Self); 4] = [
        ("ifunc", Self::Ifunc),
        ("notype", Self::NoType),
        ("object", Self::Object),
        ("tls", Self::Tls),
    ];

    /// Whether it is data, which a stub cannot stand in for.
    pub fn is_data(self) -> bool {
        matches!(self, Self::Object | Self::Tls)
    }
}

/// One exported symbol.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Symbol {
    /// Its name, without version node.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// Weak binding.
    pub weak: bool,
    /// The symbol version node, for example `OPENCL_1.2`.
    pub node: Option<String>,
    /// A non-default version (`name@node`, not `name@@node`): bound by old programs only.
    pub old: bool,
    /// Size in bytes; written for data only.
    pub size: u64,
    /// The inclusive ranges of [`SymbolList::versions`] that have it; empty: all.
    pub present: Vec<(Version, Version)>,
}

/// A symbol list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SymbolList {
    /// The library's soname.
    pub soname: Option<String>,
    /// The ELF machine it was read from, for example `x86_64`; none for a list of names only.
    pub machine: Option<String>,
    /// The versions that the list was made from, ascending.
    pub versions: Vec<Version>,
    /// Sorted by name, then node; unique.
    pub symbols: Vec<Symbol>,
}

/// Whether a list can hold this name (or node): one word that is no directive and no comment. What an
/// assembler takes is narrower, and judged where stubs are planned.
pub fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(['@', '#'])
        && (is_plain(name) || !name.contains(|c: char| c.is_whitespace() || c.is_control()))
}

/// Whether it is of visible ASCII characters only, as nearly all names are.
fn is_plain(text: &str) -> bool {
    text.as_bytes().iter().all(|b| matches!(b, b'!'..=b'~'))
}

impl SymbolList {
    /// Reads a list. `file` names it in diagnostics. Errors: a missing or newer format line, an
    /// unknown attribute, a duplicate, a name with characters that no symbol has.
    pub fn parse(file: &str, text: &str) -> (Self, Vec<Diagnostic>) {
        read::list(file, text)
    }

    /// What can be called: functions, IFUNCs and NOTYPE, each name once (its default version if
    /// it has one, else its last old one).
    pub fn functions(&self) -> impl Iterator<Item = &Symbol> {
        self.symbols
            .chunk_by(|a, b| a.name == b.name)
            .filter_map(|same| {
                same.iter()
                    .filter(|symbol| !symbol.kind.is_data())
                    .max_by_key(|symbol| !symbol.old)
            })
    }

    /// The function that a word which is none was probably meant to be, as the next step.
    pub(crate) fn did_you_mean(&self, word: &str) -> Option<String> {
        let known = self.functions().map(|symbol| symbol.name.as_str());
        nearest(word, known).map(|meant| format!("did you mean `{meant}`?"))
    }

    /// All entries of a name: one, unless it has several version nodes; none if it is absent.
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
