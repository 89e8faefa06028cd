//! Undefined symbols in ELF objects.

use std::mem::size_of;

use object::read::SectionIndex;
use object::read::elf::{FileHeader, SectionHeader, SectionTable, Sym};
use object::{Endianness, ReadRef, elf};

use crate::definitions::elf::is_64;
use crate::definitions::undefined::Refused;

const DAMAGED: Refused = (0, "the object is malformed");

/// Machines with a test that links and runs variants.
const TESTED: [u16; 4] = [
    elf::EM_X86_64.0,
    elf::EM_AARCH64.0,
    elf::EM_ARM.0,
    elf::EM_S390.0,
];

/// Machines of GPUs: the resources of a kernel follow from the functions that it calls.
const GPUS: [u16; 2] = [elf::EM_AMDGPU.0, elf::EM_CUDA.0];

/// `SHT_LLVM_BITCODE` and `SHT_LLVM_LTO` (llvm/BinaryFormat/ELF.h).
const LTO_TYPES: [u32; 2] = [0x6FFF_4C06, 0x6FFF_4C0C];
/// Sections of code for link-time optimization, in addition to or instead of the object's own.
const LTO_NAMES: [&[u8]; 3] = [b".gnu.lto_", b".llvm.lto", b".llvmbc"];

/// The object with these symbols undefined.
pub fn undefine(data: &[u8], names: &[&[u8]]) -> Result<Vec<u8>, Refused> {
    if is_64(data).map_err(|_| DAMAGED)? {
        write::<elf::FileHeader64<Endianness>>(data, names)
    } else {
        write::<elf::FileHeader32<Endianness>>(data, names)
    }
}

fn write<Elf: FileHeader<Endian = Endianness>>(
    data: &[u8],
    names: &[&[u8]],
) -> Result<Vec<u8>, Refused> {
    let header: &Elf = data.read_at(0).map_err(|()| DAMAGED)?;
    let endian = header.endian().map_err(|_| DAMAGED)?;
    let machine = header.e_machine(endian).0;
    if GPUS.contains(&machine) {
        return Err((
            0,
            "resources of GPU code depend on the functions that it calls",
        ));
    }
    if !TESTED.contains(&machine) {
        return Err((0, "objects for this machine are not tested"));
    }
    let sections = header.sections(endian, data).map_err(|_| DAMAGED)?;
    for section in sections.iter() {
        let name = sections
            .section_name(endian, section)
            .map_err(|_| DAMAGED)?;
        let of_lto = LTO_NAMES.iter().any(|start| name.starts_with(start));
        if of_lto || LTO_TYPES.contains(&section.sh_type(endian).0) {
            return Err((0, "the object contains code for link-time optimization"));
        }
    }
    let table = sections
        .symbols(endian, data, elf::SHT_SYMTAB)
        .map_err(|_| DAMAGED)?;
    let symbols_at = offset(&sections, endian, table.section())?;
    let mut found = vec![false; names.len()];
    let mut out = data.to_vec();
    for (index, symbol) in table.enumerate() {
        if symbol.is_local() || symbol.is_undefined(endian) {
            continue;
        }
        let name = symbol.name(endian, table.strings()).map_err(|_| DAMAGED)?;
        let Some(at) = names.iter().position(|&wanted| wanted == name) else {
            continue;
        };
        found[at] = true;
        if symbol.st_type() == elf::STT_GNU_IFUNC {
            return Err((at, "the definition is an indirect function (IFUNC)"));
        }
        // With this the compiler calls the definition itself, whatever the symbol becomes.
        let local_alias = symbol.st_bind() == elf::STB_GLOBAL
            && table.iter().any(|other| {
                other.is_local()
                    && other.st_type() == elf::STT_FUNC
                    && other.st_shndx(endian) == symbol.st_shndx(endian)
                    && other.st_value(endian).into() == symbol.st_value(endian).into()
            });
        if local_alias {
            let reason = "a local alias of the definition shows that it is not interposable";
            return Err((at, reason));
        }
        let section = table.symbol_section(endian, symbol, index);
        let section = section.map_err(|_| DAMAGED)?;
        // gcc 12 and clang 14 also do so if it is weak.
        if symbol.st_type() == elf::STT_OBJECT && is_read_only(&sections, endian, section)? {
            let reason = "the definition is a constant: compilers insert its value";
            return Err((at, reason));
        }
        let entry = symbols_at + index.0 * size_of::<Elf::Sym>();
        let entry = out.get_mut(entry..entry + size_of::<Elf::Sym>());
        clear(entry.ok_or(DAMAGED)?, symbol, machine);
        if table.shndx_section().0 != 0 {
            let word = offset(&sections, endian, table.shndx_section())? + index.0 * 4;
            out.get_mut(word..word + 4).ok_or(DAMAGED)?.fill(0);
        }
        // Linkers keep one group of a signature. That of the variant, which lacks the definition, could
        // replace that of the earlier layer.
        for section in sections.iter() {
            let signature = section.sh_type(endian) == elf::SHT_GROUP
                && section.sh_info(endian) as usize == index.0;
            if signature {
                let at = section.sh_offset(endian).into();
                let at = usize::try_from(at).ok().and_then(|at| out.get_mut(at..));
                let last = if endian == Endianness::Big { 3 } else { 0 };
                let flags = at.and_then(|group| group.get_mut(last)).ok_or(DAMAGED)?;
                // GRP_COMDAT.
                *flags &= !1;
            }
        }
    }
    match found.iter().position(|&found| !found) {
        Some(at) => Err((at, "the object does not define it")),
        None => Ok(out),
    }
}

/// Whether a section has constants. Those with relocations are in `.data.rel.ro`, which is writable until the program
/// starts.
fn is_read_only<Elf: FileHeader<Endian = Endianness>>(
    sections: &SectionTable<'_, Elf>,
    endian: Endianness,
    index: Option<SectionIndex>,
) -> Result<bool, Refused> {
    let Some(index) = index else {
        return Ok(false);
    };
    let section = sections.section(index).map_err(|_| DAMAGED)?;
    let name = (sections.section_name(endian, section)).map_err(|_| DAMAGED)?;
    let is_writable = section.sh_flags(endian).contains(elf::SHF_WRITE);
    Ok(!is_writable || name.starts_with(b".data.rel.ro"))
}

/// The value of a constant that is not relocated.
pub fn constant<'d>(data: &'d [u8], name: &[u8]) -> Option<&'d [u8]> {
    if is_64(data).ok()? {
        read::<elf::FileHeader64<Endianness>>(data, name)
    } else {
        read::<elf::FileHeader32<Endianness>>(data, name)
    }
}

fn read<'d, Elf: FileHeader<Endian = Endianness>>(data: &'d [u8], name: &[u8]) -> Option<&'d [u8]> {
    let header: &Elf = data.read_at(0).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, data).ok()?;
    let table = sections.symbols(endian, data, elf::SHT_SYMTAB).ok()?;
    let (index, symbol) = table.enumerate().find(|(_, symbol)| {
        let is_name = symbol.name(endian, table.strings()) == Ok(name);
        is_name && !symbol.is_local() && symbol.st_type() == elf::STT_OBJECT
    })?;
    let section = table.symbol_section(endian, symbol, index).ok()??;
    let relocates = |other: &Elf::SectionHeader| {
        let kind = other.sh_type(endian);
        let of = other.sh_info(endian) as usize == section.0;
        of && matches!(kind, elf::SHT_REL | elf::SHT_RELA)
    };
    if sections.iter().any(relocates) {
        return None;
    }
    let section = sections.section(section).ok()?;
    if section.sh_flags(endian).contains(elf::SHF_WRITE) {
        return None;
    }
    let bytes = section.data(endian, data).ok()?;
    let at = usize::try_from(symbol.st_value(endian).into()).ok()?;
    let size = usize::try_from(symbol.st_size(endian).into()).ok()?;
    bytes.get(at..at.checked_add(size)?)
}

/// Makes the entry of a symbol undefined: no section, value or size.
fn clear<S: Sym>(entry: &mut [u8], symbol: &S, machine: u16) {
    let kind = match symbol.st_type() {
        elf::STT_TLS => elf::STT_TLS.0,
        _ => elf::STT_NOTYPE.0,
    };
    let info = elf::STB_GLOBAL.0 << 4 | kind;
    // Visibility, and whether the function needs another calling convention of vectors.
    let vectors = [elf::EM_AARCH64.0, elf::EM_RISCV.0].contains(&machine);
    let other = symbol.st_other().0 & if vectors { 0x83 } else { 3 };
    // `Elf64_Sym` and `Elf32_Sym` after the name.
    let at = if entry.len() == 24 { 4 } else { 12 };
    entry[4..].fill(0);
    entry[at] = info;
    entry[at + 1] = other;
}

fn offset<Elf: FileHeader<Endian = Endianness>>(
    sections: &SectionTable<'_, Elf>,
    endian: Endianness,
    index: SectionIndex,
) -> Result<usize, Refused> {
    let section = sections.section(index).map_err(|_| DAMAGED)?;
    usize::try_from(section.sh_offset(endian).into()).map_err(|_| DAMAGED)
}
