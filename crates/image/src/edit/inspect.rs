//! Requirements of an image, as far as an edit depends on them.

use std::collections::{BTreeMap, BTreeSet};

use object::elf::{
    self, DynamicTag, STT_COMMON, STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE, STT_OBJECT, STT_TLS,
};

use super::hashes;
use super::initializers;
use super::problem::EditProblem;
use super::relocations::Relocations;
use super::symbols::Symbols;
use super::versions::{Needs, defined_indices};
use crate::elf::{ElfImage, SymbolTable};
use crate::image_facts::ImageKind;
use crate::link_facts::VersionNeed;
use crate::strings::Strings;

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
    /// `DT_NEEDED`, or the import table of a PE image, in order.
    pub needed: Vec<String>,
    /// DLLs that a PE image loads at the first call of one of their functions.
    pub delayed: Vec<String>,
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
    /// Library that should provide the version; the DLL of a PE image's import, which has no version.
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
    /// A number in the export table of a DLL.
    Ordinal,
    /// Not recorded (`STT_NOTYPE`, PE images).
    Unknown,
}

/// Requirements of an image, and where they are in the file.
pub(super) struct Details<'d> {
    pub(super) inspection: Inspection,
    /// Symbol index of each import.
    pub(super) indices: Vec<u32>,
    /// Offset of the version table of the symbols.
    pub(super) versions_offset: u64,
    /// Version table of the symbols; empty in an image without versions.
    pub(super) versions: &'d [u8],
    pub(super) needs: Option<Needs>,
    /// The symbol table.
    pub(super) symbols: SymbolTable<'d>,
    /// Indices of the versions that the image defines.
    pub(super) defined: BTreeSet<u16>,
}

/// Reads the requirements of a loadable image.
pub(super) fn read_details<'d>(image: &ElfImage<'d>) -> Result<Details<'d>, EditProblem> {
    initializers::check_dynamic(image)?;
    let (_, bytes) = image.string_table()?;
    let strings = Strings::new(bytes);
    let string_of = |tag: DynamicTag| match image.tag(tag) {
        Some(offset) => string_at(&strings, offset).map(Some),
        None => Ok(None),
    };
    let flags = image.tag(elf::DT_FLAGS_1).unwrap_or(0);
    let kind = match (image.header.kind, image.is_program()) {
        (_, true) => ImageKind::Program,
        // A position-independent static program relocates itself.
        (elf::ET_DYN, false) if flags & elf::DF_1_PIE.0 == 0 => ImageKind::Library,
        _ => return Err(EditProblem::Static),
    };
    if kind == ImageKind::Program && !image.is_code(image.header.entry) {
        return Err(EditProblem::Malformed("entry of the program is no code"));
    }
    let runpath = string_of(elf::DT_RUNPATH)?;
    let rpath = runpath.is_none() && image.tag(elf::DT_RPATH).is_some();
    let needs = Needs::read(image)?;
    let verneed = match &needs {
        Some(needs) => version_needs(needs, &strings)?,
        None => Vec::new(),
    };
    let inspection = Inspection {
        machine: image.machine(),
        kind,
        fixed_address: image.header.kind == elf::ET_EXEC,
        soname: string_of(elf::DT_SONAME)?,
        needed: image
            .tags(elf::DT_NEEDED)
            .map(|offset| string_at(&strings, offset))
            .collect::<Result<_, _>>()?,
        delayed: Vec::new(),
        runpath: if rpath {
            string_of(elf::DT_RPATH)?
        } else {
            runpath
        },
        rpath,
        verneed,
        has_versions: needs.is_some(),
        imports: Vec::new(),
    };
    let defined = defined_indices(image, bytes)?;
    let arrays = initializers::arrays(image)?;
    let relocations = Relocations::read(image, &arrays)?;
    initializers::check(image, &arrays, &relocations)?;
    let symbols = Symbols::read(image, &relocations)?;
    hashes::check(image, bytes, symbols.table)?;
    let mut details = Details {
        inspection,
        indices: Vec::new(),
        versions_offset: symbols.versions_offset,
        versions: symbols.versions,
        needs,
        symbols: symbols.table,
        defined,
    };
    read_imports(
        image,
        (&strings, bytes),
        &symbols,
        &relocations,
        &mut details,
    )?;
    Ok(details)
}

/// The libraries and versions of the version needs.
fn version_needs(needs: &Needs, strings: &Strings<'_>) -> Result<Vec<VersionNeed>, EditProblem> {
    let mut verneed = Vec::new();
    for need in &needs.entries {
        let file = string_at(strings, need.file.into())?;
        let mut nodes = Vec::new();
        for node in &need.nodes {
            let name = string_at(strings, node.name.into())?;
            // The loader compares both (`match_symbol`).
            if elf::hash(name.as_bytes()) != node.hash {
                return Err(EditProblem::Malformed(
                    "version has the hash of another one",
                ));
            }
            nodes.push(name);
        }
        verneed.push(VersionNeed { file, nodes });
    }
    Ok(verneed)
}

fn read_imports(
    image: &ElfImage<'_>,
    (strings, bytes): (&Strings<'_>, &[u8]),
    symbols: &Symbols<'_>,
    relocations: &Relocations,
    details: &mut Details<'_>,
) -> Result<(), EditProblem> {
    let versions = match &details.needs {
        Some(needs) => needs.by_index(),
        None => BTreeMap::new(),
    };
    for (index, symbol) in symbols.iter() {
        symbol.check(index, image, relocations)?;
        if symbol.name as usize >= bytes.len() {
            return Err(EditProblem::Malformed("name is outside the string table"));
        }
        let version_index = symbols.version_index(index);
        let version = version_index.and_then(|index| versions.get(&index));
        let copied = relocations.is_copied(index);
        // glibc indexes its array of versions without a check, also for what the image defines.
        let is_unknown = |index| version.is_none() && !details.defined.contains(&index);
        if version_index.is_some_and(is_unknown) {
            return Err(EditProblem::Malformed("symbol has an unknown version"));
        }
        // A program defines what it copies, in the version of the library.
        if symbol.is_local() || !(symbol.is_undefined() || copied || version.is_some()) {
            continue;
        }
        let name = string_at(strings, symbol.name.into())?;
        let (file, node) = match version {
            Some(&(file, node)) => (
                Some(string_at(strings, file.into())?),
                Some(string_at(strings, node.into())?),
            ),
            None => (None, None),
        };
        details.indices.push(index);
        details.inspection.imports.push(Imported {
            name,
            file,
            node,
            kind: match symbol.kind {
                STT_FUNC | STT_GNU_IFUNC => ImportKind::Function,
                STT_OBJECT | STT_COMMON => ImportKind::Data,
                STT_TLS => ImportKind::ThreadLocal,
                STT_NOTYPE => ImportKind::Unknown,
                _ => return Err(EditProblem::Malformed("import has an unknown type")),
            },
            weak: symbol.is_weak(),
            copied,
            referenced: relocations.is_referenced(index),
        });
    }
    Ok(())
}

fn string_at(strings: &Strings<'_>, offset: u64) -> Result<String, EditProblem> {
    match strings.get(offset) {
        Ok(string) => Ok(string.to_owned()),
        Err(crate::Problem::Malformed(what)) => Err(EditProblem::Malformed(what)),
        Err(_) => Err(EditProblem::Malformed("invalid string table")),
    }
}
