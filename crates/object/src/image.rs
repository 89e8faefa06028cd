//! What a program or shared library is made of, beyond what its loader is asked for: what policy
//! checks look at.

use object::read::elf::{FileHeader, ProgramHeader, Sym};
use object::{Endianness, elf};

use crate::elf::{Image, for_class};
use crate::error::{Error, Problem};
use crate::facts::{LinkFacts, Requirements, loader_facts};
use crate::strings::Strings;

/// What kind of image it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ImageKind {
    /// A shared library, or a program of its kind without an interpreter.
    #[default]
    Library,
    /// A program that a loader starts.
    Program,
    /// A program that no loader sees.
    Static,
}

/// A symbol that an image wants from another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import {
    /// Its name.
    pub name: String,
    /// Whether the image does without it.
    pub weak: bool,
    /// The version node, and the library that is to have it.
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
    /// What it asks of the loader.
    pub link: LinkFacts,
    /// What it is.
    pub kind: ImageKind,
    /// Functions and data that it wants from others, in the file's order.
    pub imports: Vec<Import>,
    /// Names of the functions that others can bind to, sorted.
    pub exports: Vec<String>,
    /// Names of functions of the full symbol table that only it can call, sorted; empty in a
    /// stripped file.
    pub hidden: Vec<String>,
    /// Names of its sections, in the file's order; empty if the file does not have them.
    pub sections: Vec<String>,
    /// The level of x86-64 that it says it needs: 3 for x86-64-v3. 0: it says nothing.
    pub x86_level: u8,
}

/// Reads the program or shared library in `bytes`. Of all its names only those are kept that
/// `keep` wants: a framework has hundreds of thousands of others.
///
/// A file that has no dynamic section and is not a program (an object file, separate debug data)
/// is [`Problem::NoDynamicSymbols`].
pub fn read_image(bytes: &[u8], keep: &dyn Fn(&str) -> bool) -> Result<ImageFacts, Error> {
    Ok(read(bytes, keep)?)
}

fn read(bytes: &[u8], keep: &dyn Fn(&str) -> bool) -> Result<ImageFacts, Problem> {
    for_class!(bytes, image_facts, keep)
}

fn image_facts<Elf: FileHeader<Endian = Endianness>>(
    bytes: &[u8],
    keep: &dyn Fn(&str) -> bool,
) -> Result<ImageFacts, Problem> {
    let image = Image::<Elf>::parse(bytes)?;
    let segments = image.segments();
    let has = |kind| segments.iter().any(|s| s.p_type(image.endian) == kind);
    let kind = match (image.is_dynamic(), has(elf::PT_INTERP)) {
        (true, true) => ImageKind::Program,
        (true, false) => ImageKind::Library,
        (false, _) if has(elf::PT_LOAD) => ImageKind::Static,
        (false, _) => return Err(Problem::NoDynamicSymbols(image.kind())),
    };
    let strings = image.strings()?;
    let mut facts = ImageFacts {
        link: loader_facts(&image, &strings)?,
        kind,
        ..ImageFacts::default()
    };
    let required = Requirements::read(&image, &strings)?;
    dynamic_symbols(&image, &strings, &required, keep, &mut facts)?;
    facts.link.verneed = required.needs;
    facts.x86_level = x86_level(&image);
    sections(&image, keep, &mut facts);
    Ok(facts)
}

/// What the note GNU_PROPERTY_X86_ISA_1_NEEDED says (x86-64 psABI, "Program Property"): a bit per
/// level. Notes that cannot be read count as none: no loader refuses a file for them.
fn x86_level<Elf: FileHeader<Endian = Endianness>>(image: &Image<'_, Elf>) -> u8 {
    let mut level = 0;
    for segment in image.segments() {
        let Ok(Some(mut notes)) = segment.notes(image.endian, image.data()) else {
            continue;
        };
        while let Ok(Some(note)) = notes.next() {
            let Some(mut properties) = note.gnu_properties(image.endian) else {
                continue;
            };
            while let Ok(Some(property)) = properties.next() {
                let data = match property.pr_type() {
                    elf::GNU_PROPERTY_X86_ISA_1_NEEDED => property.data_u32(image.endian),
                    _ => continue,
                };
                let bits = data.unwrap_or(0) & 0xf;
                level = level.max((u32::BITS - bits.leading_zeros()) as u8);
            }
        }
    }
    level
}

fn dynamic_symbols<Elf: FileHeader<Endian = Endianness>>(
    image: &Image<'_, Elf>,
    strings: &Strings<'_>,
    required: &Requirements,
    keep: &dyn Fn(&str) -> bool,
    facts: &mut ImageFacts,
) -> Result<(), Problem> {
    let table = image.symbols()?;
    let versions = image.symbol_versions(table.len())?;
    for (index, symbol) in table.iter().enumerate().skip(1) {
        if symbol.is_local() {
            continue;
        }
        let name = strings.get(symbol.st_name(image.endian).into())?;
        if !keep(name) {
            continue;
        }
        if symbol.is_undefined(image.endian) {
            let version = versions
                .get(index)
                .and_then(|v| required.by_index.get(&v.0.get(image.endian).index().0));
            facts.imports.push(Import {
                name: name.to_owned(),
                weak: symbol.is_weak(),
                version: version.map(|&(need, node)| ImportVersion {
                    file: required.needs[need].file.clone(),
                    node: required.needs[need].nodes[node].clone(),
                }),
            });
        } else if is_function(symbol.st_type()) {
            facts.exports.push(name.to_owned());
        }
    }
    facts.exports.sort();
    facts.exports.dedup();
    Ok(())
}

fn is_function(kind: elf::SymbolType) -> bool {
    matches!(kind, elf::STT_FUNC | elf::STT_GNU_IFUNC | elf::STT_NOTYPE)
}

fn sections<Elf: FileHeader<Endian = Endianness>>(
    image: &Image<'_, Elf>,
    keep: &dyn Fn(&str) -> bool,
    facts: &mut ImageFacts,
) {
    let (endian, data) = (image.endian, image.data());
    // A file that is cut off there still loads; it just has no names for us.
    let Ok(sections) = image.header().sections(endian, data) else {
        return;
    };
    for section in sections.iter().skip(1) {
        if let Ok(name) = sections.section_name(endian, section) {
            facts
                .sections
                .push(String::from_utf8_lossy(name).into_owned());
        }
    }
    let Ok(table) = sections.symbols(endian, data, elf::SHT_SYMTAB) else {
        return;
    };
    for symbol in table.symbols() {
        let exported = !symbol.is_local()
            && matches!(
                symbol.st_visibility(),
                elf::STV_DEFAULT | elf::STV_PROTECTED
            );
        if exported || symbol.is_undefined(endian) || !is_function(symbol.st_type()) {
            continue;
        }
        let name = table.symbol_name(endian, symbol).ok();
        let name = name.and_then(|name| std::str::from_utf8(name).ok());
        facts
            .hidden
            .extend(name.filter(|name| keep(name)).map(str::to_owned));
    }
    facts.hidden.sort();
    facts.hidden.dedup();
}
