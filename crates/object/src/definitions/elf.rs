//! Symbols of ELF objects.

use object::read::elf::{FileHeader, Sym};
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
    let mut found = Found::new();
    for symbol in table.iter().skip(1) {
        // Those of sections and files are local.
        if symbol.is_local() || symbol.is_undefined(endian) {
            continue;
        }
        let name = symbol
            .name(endian, table.strings())
            .map_err(|_| Problem::Malformed("the name of a symbol lies outside of it"))?;
        let common = symbol.st_shndx(endian) == elf::SHN_COMMON;
        let unique = symbol.st_bind() == elf::STB_GNU_UNIQUE;
        found.add(name, symbol.is_weak() || common || unique)?;
    }
    Ok(found.list)
}
