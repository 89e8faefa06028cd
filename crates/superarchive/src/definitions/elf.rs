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
    const OUTSIDE: Problem = Problem::Malformed("section headers or symbols lie outside the file");
    let sections = header.sections(endian, data).map_err(|_| OUTSIDE)?;
    let table = sections
        .symbols(endian, data, elf::SHT_SYMTAB)
        .map_err(|_| OUTSIDE)?;
    let in_comdat = comdat_members(&sections, endian, data)?;
    let mut collector = Collector::new();
    for (index, symbol) in table.enumerate() {
        // Symbols of sections and files are local, as is the null symbol.
        if symbol.is_local() || symbol.is_undefined(endian) {
            continue;
        }
        let name = symbol
            .name(endian, table.strings())
            .map_err(|_| Problem::Malformed("symbol name is outside the string table"))?;
        let is_comdat = table
            .symbol_section(endian, symbol, index)
            .map_err(|_| OUTSIDE)?
            .is_some_and(|section| in_comdat.get(section.0) == Some(&true));
        let binding = if is_comdat || symbol.st_bind() == elf::STB_GNU_UNIQUE {
            Binding::Comdat
        } else {
            let is_common = symbol.st_shndx(endian) == elf::SHN_COMMON;
            Binding::weak_if(symbol.is_weak() || is_common)
        };
        collector.add(name, binding)?;
    }
    Ok(collector.definitions)
}

/// Whether each section is in a group of which linkers keep one (`GRP_COMDAT` of the gABI).
fn comdat_members<Elf: FileHeader<Endian = Endianness>>(
    sections: &SectionTable<'_, Elf>,
    endian: Endianness,
    data: &[u8],
) -> Result<Vec<bool>, Problem> {
    let mut in_comdat = vec![false; sections.len()];
    let mut remaining_members = sections.len();
    for section in sections.iter() {
        let group = section
            .group(endian, data)
            .map_err(|_| Problem::Malformed("section group is outside the file"))?;
        let Some((flags, members)) = group else {
            continue;
        };
        // Groups of a hostile file may overlap.
        remaining_members =
            remaining_members
                .checked_sub(members.len())
                .ok_or(Problem::Malformed(
                    "section groups have more members than there are sections",
                ))?;
        if flags.contains(elf::GRP_COMDAT) {
            for member in members {
                if let Some(is_member) = in_comdat.get_mut(member.get(endian) as usize) {
                    *is_member = true;
                }
            }
        }
    }
    Ok(in_comdat)
}

/// Whether an ELF file is neither a program nor a shared library.
pub fn is_relocatable(data: &[u8]) -> bool {
    // `e_type`, in either byte order. Damage is reported later.
    matches!(data.get(16..18), None | Some([1, 0] | [0, 1]))
}
