//! Requirements of an image, as far as an edit depends on them.

use crate::image_facts::ImageKind;
use crate::link_facts::VersionNeed;

use super::problem::Problem;

/// Requirements of an image.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Inspection {
    /// The machine, as in `SymbolList::machine`.
    pub machine: String,
    /// Kind of the image; never static.
    pub kind: ImageKind,
    /// Whether the image has a fixed address (`ET_EXEC`).
    pub fixed_address: bool,
    /// `DT_SONAME`.
    pub soname: Option<String>,
    /// `DT_NEEDED`, in order.
    pub needed: Vec<String>,
    /// `DT_RUNPATH`, or else the older `DT_RPATH`: directories separated by colons.
    pub runpath: Option<String>,
    /// Whether `runpath` is a `DT_RPATH`.
    pub rpath: bool,
    /// Symbol versions required of each library.
    pub verneed: Vec<VersionNeed>,
    /// Whether the image requires any version. Imports of an image without stay unversioned.
    pub has_versions: bool,
    /// Imported functions and data, in the file's order.
    pub imports: Vec<Imported>,
}

/// An import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// Name of the symbol.
    pub name: String,
    /// Library that should provide the version.
    pub file: Option<String>,
    /// The version node.
    pub node: Option<String>,
    /// Kind, as far as the linker knew it.
    pub kind: ImportKind,
    /// Whether the symbol may be missing.
    pub weak: bool,
    /// Whether a copy relocation reserves space for the symbol's data in the image.
    pub copied: bool,
    /// Whether a relocation refers to the symbol.
    pub referenced: bool,
}

/// Kind of an import.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportKind {
    /// A function.
    Function,
    /// Data.
    Data,
    /// Thread-local data.
    ThreadLocal,
    /// Not recorded (`STT_NOTYPE`).
    Unknown,
}

/// Reads the requirements of the program or shared library in `source`.
pub fn inspect(_source: &[u8]) -> Result<Inspection, Problem> {
    Err(Problem::NotElf)
}
