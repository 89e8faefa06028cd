//! Undefined symbols in ELF objects.

use std::mem::size_of;

use object::read::elf::{FileHeader, SectionHeader, SectionTable, Sym, SymbolTable};
use object::read::{SectionIndex, SymbolIndex};
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
        undefine_symbols::<elf::FileHeader64<Endianness>>(data, names)
    } else {
        undefine_symbols::<elf::FileHeader32<Endianness>>(data, names)
    }
}

fn undefine_symbols<Elf: FileHeader<Endian = Endianness>>(
    data: &[u8],
    names: &[&[u8]],
) -> Result<Vec<u8>, Refused> {
    let object = RelocatableObject::<Elf>::read(data)?;
    check_machine(object.machine)?;
    object.check_sections()?;
    let symbols_offset = object.offset(object.symbols.section())?;
    let mut is_defined = vec![false; names.len()];
    let mut out = data.to_vec();
    for (index, symbol) in object.symbols.enumerate() {
        if symbol.is_local() || symbol.is_undefined(object.endian) {
            continue;
        }
        let symbol_name = symbol
            .name(object.endian, object.symbols.strings())
            .map_err(|_| DAMAGED)?;
        let Some(position) = names.iter().position(|&name| name == symbol_name) else {
            continue;
        };
        is_defined[position] = true;
        if let Some(reason) = object.refusal(index, symbol)? {
            return Err((position, reason));
        }
        let offset = symbols_offset + index.0 * size_of::<Elf::Sym>();
        let entry = out
            .get_mut(offset..offset + size_of::<Elf::Sym>())
            .ok_or(DAMAGED)?;
        clear(entry, symbol, object.machine);
        if object.symbols.shndx_section().0 != 0 {
            let offset = object.offset(object.symbols.shndx_section())? + index.0 * 4;
            out.get_mut(offset..offset + 4).ok_or(DAMAGED)?.fill(0);
        }
        object.clear_comdat(index, &mut out)?;
    }
    match is_defined.iter().position(|is_defined| !is_defined) {
        Some(position) => Err((position, "the object does not define it")),
        None => Ok(out),
    }
}

/// Rejects machines whose variants are wrong, or untested.
fn check_machine(machine: u16) -> Result<(), Refused> {
    if GPUS.contains(&machine) {
        return Err((
            0,
            "resources of GPU code depend on the functions that it calls",
        ));
    }
    if !TESTED.contains(&machine) {
        return Err((0, "objects for this machine are not tested"));
    }
    Ok(())
}

/// An object file.
struct RelocatableObject<'d, Elf: FileHeader> {
    endian: Endianness,
    machine: u16,
    sections: SectionTable<'d, Elf>,
    symbols: SymbolTable<'d, Elf>,
}

impl<'d, Elf: FileHeader<Endian = Endianness>> RelocatableObject<'d, Elf> {
    fn read(data: &'d [u8]) -> Result<Self, Refused> {
        let header: &Elf = data.read_at(0).map_err(|()| DAMAGED)?;
        let endian = header.endian().map_err(|_| DAMAGED)?;
        let sections = header.sections(endian, data).map_err(|_| DAMAGED)?;
        let symbols = sections
            .symbols(endian, data, elf::SHT_SYMTAB)
            .map_err(|_| DAMAGED)?;
        Ok(Self {
            endian,
            machine: header.e_machine(endian).0,
            sections,
            symbols,
        })
    }

    /// Rejects code for link-time optimization.
    fn check_sections(&self) -> Result<(), Refused> {
        for section in self.sections.iter() {
            let name = self
                .sections
                .section_name(self.endian, section)
                .map_err(|_| DAMAGED)?;
            if LTO_NAMES.iter().any(|prefix| name.starts_with(prefix))
                || LTO_TYPES.contains(&section.sh_type(self.endian).0)
            {
                return Err((0, "the object contains code for link-time optimization"));
            }
        }
        Ok(())
    }

    /// Reason why a definition cannot become undefined.
    fn refusal(
        &self,
        index: SymbolIndex,
        symbol: &Elf::Sym,
    ) -> Result<Option<&'static str>, Refused> {
        if symbol.st_type() == elf::STT_GNU_IFUNC {
            return Ok(Some("the definition is an indirect function (IFUNC)"));
        }
        // With this the compiler calls the definition itself, whatever the symbol becomes.
        if symbol.st_bind() == elf::STB_GLOBAL && self.has_local_alias(symbol) {
            return Ok(Some(
                "a local alias of the definition shows that it is not interposable",
            ));
        }
        let section = self
            .symbols
            .symbol_section(self.endian, symbol, index)
            .map_err(|_| DAMAGED)?;
        // gcc 12 and clang 14 also do so if it is weak.
        if symbol.st_type() == elf::STT_OBJECT
            && is_read_only(&self.sections, self.endian, section)?
        {
            return Ok(Some(
                "the definition is a constant: compilers insert its value",
            ));
        }
        Ok(None)
    }

    /// Whether a local symbol is the same function.
    fn has_local_alias(&self, symbol: &Elf::Sym) -> bool {
        self.symbols.iter().any(|local| {
            local.is_local()
                && local.st_type() == elf::STT_FUNC
                && local.st_shndx(self.endian) == symbol.st_shndx(self.endian)
                && local.st_value(self.endian).into() == symbol.st_value(self.endian).into()
        })
    }

    /// Makes the groups of which a symbol is the signature ordinary ones. Linkers keep one group of a signature:
    /// that of the variant, which lacks the definition, could replace that of the earlier layer.
    fn clear_comdat(&self, signature: SymbolIndex, out: &mut [u8]) -> Result<(), Refused> {
        for section in self.sections.iter() {
            if section.sh_type(self.endian) != elf::SHT_GROUP
                || section.sh_info(self.endian) as usize != signature.0
            {
                continue;
            }
            let low_byte = if self.endian == Endianness::Big { 3 } else { 0 };
            let flags = usize::try_from(section.sh_offset(self.endian).into())
                .ok()
                .and_then(|offset| out.get_mut(offset..)?.get_mut(low_byte))
                .ok_or(DAMAGED)?;
            // GRP_COMDAT.
            *flags &= !1;
        }
        Ok(())
    }

    /// Offset of a section.
    fn offset(&self, index: SectionIndex) -> Result<usize, Refused> {
        let section = self.sections.section(index).map_err(|_| DAMAGED)?;
        usize::try_from(section.sh_offset(self.endian).into()).map_err(|_| DAMAGED)
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
    let name = sections
        .section_name(endian, section)
        .map_err(|_| DAMAGED)?;
    let is_writable = section.sh_flags(endian).contains(elf::SHF_WRITE);
    Ok(!is_writable || name.starts_with(b".data.rel.ro"))
}

/// The value of a constant that is not relocated.
pub fn constant<'d>(data: &'d [u8], name: &[u8]) -> Option<&'d [u8]> {
    if is_64(data).ok()? {
        read_constant::<elf::FileHeader64<Endianness>>(data, name)
    } else {
        read_constant::<elf::FileHeader32<Endianness>>(data, name)
    }
}

fn read_constant<'d, Elf: FileHeader<Endian = Endianness>>(
    data: &'d [u8],
    name: &[u8],
) -> Option<&'d [u8]> {
    let header: &Elf = data.read_at(0).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, data).ok()?;
    let table = sections.symbols(endian, data, elf::SHT_SYMTAB).ok()?;
    let (index, symbol) = table.enumerate().find(|(_, symbol)| {
        symbol.name(endian, table.strings()) == Ok(name)
            && !symbol.is_local()
            && symbol.st_type() == elf::STT_OBJECT
    })?;
    let section_index = table.symbol_section(endian, symbol, index).ok()??;
    let is_relocated = sections.iter().any(|relocations| {
        relocations.sh_info(endian) as usize == section_index.0
            && matches!(relocations.sh_type(endian), elf::SHT_REL | elf::SHT_RELA)
    });
    if is_relocated {
        return None;
    }
    let section = sections.section(section_index).ok()?;
    if section.sh_flags(endian).contains(elf::SHF_WRITE) {
        return None;
    }
    let bytes = section.data(endian, data).ok()?;
    let offset = usize::try_from(symbol.st_value(endian).into()).ok()?;
    let size = usize::try_from(symbol.st_size(endian).into()).ok()?;
    bytes.get(offset..offset.checked_add(size)?)
}

/// Makes the entry of a symbol undefined: no section, value or size.
fn clear<S: Sym>(entry: &mut [u8], symbol: &S, machine: u16) {
    let kind = match symbol.st_type() {
        elf::STT_TLS => elf::STT_TLS.0,
        _ => elf::STT_NOTYPE.0,
    };
    // Visibility, and whether the function needs another calling convention of vectors.
    let has_vectors = [elf::EM_AARCH64.0, elf::EM_RISCV.0].contains(&machine);
    let visibility = symbol.st_other().0 & if has_vectors { 0x83 } else { 3 };
    // `st_info` of `Elf64_Sym` and `Elf32_Sym`; `st_other` follows.
    let info_offset = if entry.len() == 24 { 4 } else { 12 };
    entry[4..].fill(0);
    entry[info_offset] = elf::STB_GLOBAL.0 << 4 | kind;
    entry[info_offset + 1] = visibility;
}
