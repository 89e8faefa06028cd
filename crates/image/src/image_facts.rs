//! Facts about programs and shared libraries that policy checks need.

use std::collections::BTreeSet;
use std::path::Path;

use object::read::elf::Note;
use object::{Endianness, ReadRef, elf};

use crate::consumed::{ConsumedFn, Reads};
use crate::device::{DeviceCode, device_code};
use crate::dlopen_notes::dlopen_notes;
use crate::elf::{ElfImage, Symbol, SymbolTable};
use crate::error::{Error, Problem};
use crate::file::with_file;
use crate::link_facts::{LinkFacts, VersionNeeds, loader_facts};
use crate::offload::{KpackReference, kpack_reference};
use crate::pe::{PeImage, is_pe};
use crate::strings::Strings;

/// Format of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ImageFormat {
    /// ELF, of Linux and other systems.
    #[default]
    Elf,
    /// PE, of Windows.
    Pe,
}

/// Kind of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ImageKind {
    /// A shared library, or a position-independent program without an interpreter.
    #[default]
    Library,
    /// A program that a loader starts.
    Program,
    /// A program that no loader sees.
    Static,
}

/// A symbol that an image imports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import {
    /// Name of the symbol.
    pub name: String,
    /// Whether the symbol may be missing.
    pub weak: bool,
    /// The version node, and the library that should provide it.
    pub version: Option<ImportVersion>,
}

/// The version of an import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportVersion {
    /// The library's soname.
    pub file: String,
    /// The node.
    pub node: String,
}

/// An image, as far as policy is concerned.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ImageFacts {
    /// Format of the image.
    pub format: ImageFormat,
    /// Requests to the loader.
    pub link: LinkFacts,
    /// DLLs that a PE image loads at the first call of one of their functions.
    pub delayed: Vec<String>,
    /// Kind of the image.
    pub kind: ImageKind,
    /// Imported functions and data, in the file's order.
    pub imports: Vec<Import>,
    /// Names of the functions that others can bind to, sorted.
    pub exports: Vec<String>,
    /// Number of further exports, whose names are not kept, without those that linkers define.
    pub other_exports: usize,
    /// Names of functions in the full symbol table that only this image can call, sorted; empty in a
    /// stripped file.
    pub hidden: Vec<String>,
    /// Names of the sections, in the file's order; empty if the file has no section headers.
    pub sections: Vec<String>,
    /// Strings of the read-only data: empty until the caller fills in the result of `read_strings`.
    pub strings: BTreeSet<String>,
    /// Requested strings that are not part of a longer one: no other string continues at their end,
    /// nor may code contain a longer one (`code_may_contain`).
    pub whole_strings: BTreeSet<String>,
    /// JSON of the notes that name libraries which the image opens, in the file's order.
    pub dlopen_notes: Vec<String>,
    /// Relocatable CUDA device code.
    pub device: DeviceCode,
    /// Archives with its code for AMD's GPUs, if ROCm's tools moved it there.
    pub kpack: Option<KpackReference>,
    /// Required level of x86-64: 3 for x86-64-v3. 0: not declared.
    pub x86_level: u8,
}

/// Selects the names to keep, by the name and, for imports, the version node.
pub type Keep<'a> = &'a dyn Fn(&str, Option<&str>) -> bool;

/// Reads a parsed program or shared library. Only the names that `keep` accepts are kept: a framework has
/// hundreds of thousands of others. `consumed` receives the bytes of the image from time to time: a large file
/// need not stay in memory.
///
/// A file that has no dynamic section and is not a program (an object file, separate debug data)
/// is [`Problem::NoDynamicSymbols`].
pub fn read_image(
    image: &ElfImage<'_>,
    keep: Keep<'_>,
    consumed: ConsumedFn<'_>,
) -> Result<ImageFacts, Error> {
    Ok(image_facts(
        image,
        keep,
        &Reads::new(image.data(), consumed),
    )?)
}

/// [`read_image`] of a file, or the facts of a PE image; the error has its path.
pub fn read_image_file(path: &Path, keep: Keep<'_>) -> Result<ImageFacts, Error> {
    with_file(path, |bytes| {
        if is_pe(bytes) {
            return Ok(PeImage::undamaged(bytes)?.facts(keep));
        }
        read_image(&ElfImage::parse(bytes)?, keep, &|_| ())
    })
}

fn image_facts(
    image: &ElfImage<'_>,
    keep: Keep<'_>,
    reads: &Reads<'_>,
) -> Result<ImageFacts, Problem> {
    let kind = match (image.is_dynamic(), image.has_segment(elf::PT_INTERP)) {
        (true, true) => ImageKind::Program,
        // A position-independent static program (`-static-pie`) relocates itself.
        (true, false) if is_program(image) => ImageKind::Static,
        (true, false) => ImageKind::Library,
        (false, _) if image.has_segment(elf::PT_LOAD) => ImageKind::Static,
        (false, _) => return Err(Problem::NoDynamicSymbols(image.kind())),
    };
    let strings = image.strings()?;
    let mut facts = ImageFacts {
        kpack: kpack(image),
        link: loader_facts(image, &strings)?,
        kind,
        ..ImageFacts::default()
    };
    let required = VersionNeeds::read(image, &strings)?;
    dynamic_symbols(image, &strings, &required, keep, reads, &mut facts)?;
    facts.link.verneed = required.needs;
    facts.x86_level = x86_level(image);
    facts.dlopen_notes = dlopen_notes(image);
    facts.device = device_code(image, reads);
    // A file with truncated section headers still loads, but has no names.
    facts.sections = image.section_names();
    hidden_functions(image, keep, reads, &mut facts);
    Ok(facts)
}

/// Returns whether the image was linked as a program (`DF_1_PIE` of binutils and lld).
fn is_program(image: &ElfImage<'_>) -> bool {
    let flags = image.tag(elf::DT_FLAGS_1).unwrap_or(0);
    flags & elf::DF_1_PIE.0 != 0
}

/// Level in the note GNU_PROPERTY_X86_ISA_1_NEEDED (x86-64 psABI, "Program Property"), which has a bit
/// per level. Malformed notes count as absent: no loader rejects a file for them.
fn x86_level(image: &ElfImage<'_>) -> u8 {
    let mut level = 0;
    for note in notes(image) {
        if note.name() != elf::ELF_NOTE_GNU
            || note.n_type(image.endian) != elf::NT_GNU_PROPERTY_TYPE_0
        {
            continue;
        }
        let mut rest = note.desc();
        while let Some((kind, data)) = property(image, &mut rest) {
            let bits = data.read_at::<object::U32<Endianness>>(0);
            if let (elf::GNU_PROPERTY_X86_ISA_1_NEEDED, Ok(bits)) = (kind, bits) {
                let bits = bits.get(image.endian) & 0xf;
                level = level.max((u32::BITS - bits.leading_zeros()) as u8);
            }
        }
    }
    level
}

/// The notes of the segments, up to the first malformed one of each.
fn notes<'d>(
    image: &ElfImage<'d>,
) -> impl Iterator<Item = Note<'d, elf::FileHeader64<Endianness>>> {
    image
        .segments
        .iter()
        .filter_map(|segment| image.segment_notes(segment))
        .flat_map(|notes| notes.map_while(Result::ok))
}

/// The next property of a note, which is aligned by the class of the file.
fn property<'d>(
    image: &ElfImage<'_>,
    rest: &mut &'d [u8],
) -> Option<(elf::GnuPropertyType, &'d [u8])> {
    let header = rest.read_slice_at::<object::U32<Endianness>>(0, 2).ok()?;
    let kind = elf::GnuPropertyType(header[0].get(image.endian));
    let size = header[1].get(image.endian) as usize;
    let align = if image.is_64 { 8 } else { 4 };
    let data = rest.get(8..)?.get(..size)?;
    *rest = rest.get((8 + size).next_multiple_of(align)..)?;
    Some((kind, data))
}

/// Whether the bytes are a shared library of stubs, by its note (`elf_table.h`), as the run time decides.
pub fn is_stub_library(bytes: &[u8]) -> bool {
    let image = ElfImage::undamaged(bytes);
    image.is_ok_and(|image| notes(&image).any(|note| note.name() == b"gpustub"))
}

fn dynamic_symbols(
    image: &ElfImage<'_>,
    strings: &Strings<'_>,
    required: &VersionNeeds,
    keep: Keep<'_>,
    reads: &Reads<'_>,
    facts: &mut ImageFacts,
) -> Result<(), Problem> {
    let table = image.symbols()?;
    let versions = image.symbol_versions(table.len())?;
    let mut imports: Vec<(usize, Import)> = Vec::new();
    for_names(
        table,
        strings,
        reads,
        is_import_or_function,
        |index, symbol, name| {
            let name = name?;
            if symbol.is_undefined() {
                let version = versions
                    .get(index)
                    .and_then(|version| {
                        let version_index = version.0.get(image.endian).index().0;
                        required.by_index.get(&version_index)
                    })
                    .map(|&version| required.version(version));
                if keep(name, version.map(|(_, node)| node)) {
                    let import = Import {
                        name: name.to_owned(),
                        weak: symbol.is_weak(),
                        version: version.map(|(file, node)| ImportVersion {
                            file: file.to_owned(),
                            node: node.to_owned(),
                        }),
                    };
                    imports.push((index, import));
                }
            } else if keep(name, None) {
                facts.exports.push(name.to_owned());
            } else if !LINKER_DEFINED.contains(&name) {
                facts.other_exports += 1;
            }
            Ok(())
        },
    )?;
    imports.sort_unstable_by_key(|(index, _)| *index);
    facts.imports = imports.into_iter().map(|(_, import)| import).collect();
    facts.exports.sort();
    facts.exports.dedup();
    Ok(())
}

/// Whether the symbol is an import, or a function that others may bind to.
fn is_import_or_function(symbol: &Symbol) -> bool {
    !symbol.is_local() && (symbol.is_undefined() || is_function(symbol.kind))
}

/// Whether the symbol is a function that only this image can call.
fn is_hidden_function(symbol: &Symbol) -> bool {
    let is_exported = !symbol.is_local() && symbol.is_visible();
    !is_exported && !symbol.is_undefined() && is_function(symbol.kind)
}

/// Calls `read` with index, symbol and name of all symbols that `select` accepts, but the first one, which is null.
///
/// The names are read from the start of the string table to its end. Linkers scatter those of neighbours over it, so that
/// in the order of the symbols the whole table would stay in memory: 87 MB of libtensorflow_cc. Of a large table one part
/// after the other is read so, each from start to end.
fn for_names<'d>(
    table: SymbolTable<'_>,
    strings: &Strings<'d>,
    reads: &Reads<'_>,
    select: impl Fn(&Symbol) -> bool,
    mut read: impl FnMut(usize, Symbol, Result<&'d str, Problem>) -> Result<(), Problem>,
) -> Result<(), Problem> {
    const PART: usize = 1 << 16;
    // Offset of the name, and index, of each symbol.
    let mut names: Vec<(u32, usize)> = Vec::new();
    for start in (0..table.len()).step_by(PART) {
        reads.count(table.size_of(PART.min(table.len() - start)));
        for (index, symbol) in table.range(start, PART) {
            if index != 0 && select(&symbol) {
                names.push((symbol.name, index));
            }
        }
        names.sort_unstable();
        for (offset, index) in names.drain(..) {
            let name = strings.get(offset.into());
            reads.count(name.as_ref().map_or(0, |name| name.len()));
            if let Some(symbol) = table.get(index) {
                read(index, symbol, name)?;
            }
        }
    }
    Ok(())
}

/// Symbols that older linkers export from every library.
const LINKER_DEFINED: [&str; 5] = ["_init", "_fini", "_edata", "_end", "__bss_start"];

pub(crate) fn is_function(kind: elf::SymbolType) -> bool {
    matches!(kind, elf::STT_FUNC | elf::STT_GNU_IFUNC | elf::STT_NOTYPE)
}

fn hidden_functions(
    image: &ElfImage<'_>,
    keep: Keep<'_>,
    reads: &Reads<'_>,
    facts: &mut ImageFacts,
) {
    let Some((table, strings)) = image.full_symbols() else {
        return;
    };
    let _ = for_names(table, &strings, reads, is_hidden_function, |_, _, name| {
        // A damaged name concerns its symbol only.
        if let Some(name) = name.ok().filter(|name| keep(name, None)) {
            facts.hidden.push(name.to_owned());
        }
        Ok(())
    });
    facts.hidden.sort();
    facts.hidden.dedup();
}

/// Names of the image's kpack archives.
fn kpack(image: &ElfImage<'_>) -> Option<KpackReference> {
    let mut sections = image.named_sections()?;
    let (_, section) = sections.find(|(name, _)| *name == b".rocm_kpack_ref")?;
    kpack_reference(section.data(image.source)?)
}
