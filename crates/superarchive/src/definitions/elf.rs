//! Symbols of ELF objects.

use object::read::elf::{FileHeader, SectionHeader, SectionTable, Sym};
use object::{Endianness, ReadRef, elf};

use super::collector::{Binding, Collector, Definition};
use crate::error::Problem;

pub fn definitions(data: &[u8]) -> Result<Vec<Definition<'_>>, Problem> {
    if is_64(data)? {
        read_definitions::<elf::FileHeader64<Endianness>>(data)
    } else {
        read_definitions::<elf::FileHeader32<Endianness>>(data)
    }
}

/// Whether an ELF file is of the 64-bit class.
pub fn is_64(data: &[u8]) -> Result<bool, Problem> {
    match data.get(elf::ELFMAG.len()) {
        Some(1) => Ok(false),
        Some(2) => Ok(true),
        Some(_) => Err(Problem::Malformed("ELF class is neither 32 nor 64 bits")),
        None => Err(Problem::Truncated("ELF header")),
    }
}

fn read_definitions<Elf: FileHeader<Endian = Endianness>>(
    data: &[u8],
) -> Result<Vec<Definition<'_>>, Problem> {
    let header: &Elf = data
        .read_at(0)
        .map_err(|()| Problem::Truncated("ELF header"))?;
    let endian = header
        .endian()
        .map_err(|_| Problem::Malformed("byte order is neither little nor big"))?;
    if header.e_type(endian) != elf::ET_REL {
        return Ok(Vec::new());
    }
    let damaged = |_| Problem::Malformed("section headers or symbols lie outside the file");
    let sections = header.sections(endian, data).map_err(damaged)?;
    let table = sections
        .symbols(endian, data, elf::SHT_SYMTAB)
        .map_err(damaged)?;
    let groups = groups(&sections, endian, data)?;
    let mut found = Collector::new();
    for (index, symbol) in table.enumerate() {
        // Symbols of sections and files are local, as is the null symbol.
        if symbol.is_local() || symbol.is_undefined(endian) {
            continue;
        }
        let name = symbol
            .name(endian, table.strings())
            .map_err(|_| Problem::Malformed("symbol name is outside the string table"))?;
        let common = symbol.st_shndx(endian) == elf::SHN_COMMON;
        let unique = symbol.st_bind() == elf::STB_GNU_UNIQUE;
        let section = table.symbol_section(endian, symbol, index);
        let grouped = section
            .map_err(damaged)?
            .is_some_and(|section| groups.get(section.0) == Some(&true));
        let binding = if grouped || unique {
            Binding::Comdat
        } else {
            Binding::weak_if(symbol.is_weak() || common)
        };
        found.add(name, binding)?;
    }
    Ok(found.definitions)
}

/// Whether each section is in a group of which linkers keep one (`GRP_COMDAT` of the gABI).
fn groups<Elf: FileHeader<Endian = Endianness>>(
    sections: &SectionTable<'_, Elf>,
    endian: Endianness,
    data: &[u8],
) -> Result<Vec<bool>, Problem> {
    let damaged = |_| Problem::Malformed("section group is outside the file");
    let mut found = vec![false; sections.len()];
    let mut left = sections.len();
    for section in sections.iter() {
        let Some((flags, members)) = section.group(endian, data).map_err(damaged)? else {
            continue;
        };
        // Groups of a hostile file may overlap.
        let twice = Problem::Malformed("section groups have more members than there are sections");
        left = left.checked_sub(members.len()).ok_or(twice)?;
        if flags.contains(elf::GRP_COMDAT) {
            for member in members {
                if let Some(found) = found.get_mut(member.get(endian) as usize) {
                    *found = true;
                }
            }
        }
    }
    Ok(found)
}

/// Whether an ELF file is neither a program nor a shared library.
pub fn is_relocatable(data: &[u8]) -> bool {
    // `e_type`, in either byte order. Damage is reported later.
    matches!(data.get(16..18), None | Some([1, 0] | [0, 1]))
}
