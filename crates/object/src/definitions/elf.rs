//! Symbols of ELF objects.

use object::read::elf::{FileHeader, SectionHeader, SectionTable, Sym};
use object::{Endianness, ReadRef, elf};

use super::found::Found;
use crate::elf::for_class;
use crate::error::Problem;
use crate::superarchive::Definition;

pub fn definitions(data: &[u8]) -> Result<Vec<Definition<'_>>, Problem> {
    for_class!(data, of)
}

fn of<Elf: FileHeader<Endian = Endianness>>(data: &[u8]) -> Result<Vec<Definition<'_>>, Problem> {
    let header: &Elf = data
        .read_at(0)
        .map_err(|()| Problem::Truncated("ELF header"))?;
    let endian = header
        .endian()
        .map_err(|_| Problem::Malformed("its ELF byte order is none"))?;
    if header.e_type(endian) != elf::ET_REL {
        return Ok(Vec::new());
    }
    let damaged = |_| Problem::Malformed("its section headers or symbols lie outside of it");
    let sections = header.sections(endian, data).map_err(damaged)?;
    let table = sections
        .symbols(endian, data, elf::SHT_SYMTAB)
        .map_err(damaged)?;
    let groups = groups(&sections, endian, data)?;
    let mut found = Found::new();
    for (index, symbol) in table.enumerate() {
        // Those of sections and files are local, as the first, which is none.
        if symbol.is_local() || symbol.is_undefined(endian) {
            continue;
        }
        let name = symbol
            .name(endian, table.strings())
            .map_err(|_| Problem::Malformed("the name of a symbol lies outside of it"))?;
        let common = symbol.st_shndx(endian) == elf::SHN_COMMON;
        let unique = symbol.st_bind() == elf::STB_GNU_UNIQUE;
        let section = table.symbol_section(endian, symbol, index);
        let grouped = section
            .map_err(damaged)?
            .is_some_and(|section| groups.get(section.0) == Some(&true));
        found.add(name, symbol.is_weak() || common || unique || grouped)?;
    }
    Ok(found.list)
}

/// Whether each section is of a group of which linkers keep one (`GRP_COMDAT` of the gABI).
fn groups<Elf: FileHeader<Endian = Endianness>>(
    sections: &SectionTable<'_, Elf>,
    endian: Endianness,
    data: &[u8],
) -> Result<Vec<bool>, Problem> {
    let damaged = |_| Problem::Malformed("a group of its sections lies outside of it");
    let mut found = vec![false; sections.len()];
    let mut left = sections.len();
    for section in sections.iter() {
        let Some((flags, members)) = section.group(endian, data).map_err(damaged)? else {
            continue;
        };
        // Groups of a hostile file may lie over one another.
        let twice = Problem::Malformed("its groups have more sections than it has");
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

/// Whether it is no program or shared library.
pub fn is_relocatable(data: &[u8]) -> bool {
    // `e_type`, in either byte order. What is damaged is told later.
    matches!(data.get(16..18), None | Some([1, 0] | [0, 1]))
}
