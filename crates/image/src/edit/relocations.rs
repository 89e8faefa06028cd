//! Relocations against symbols: the imports that an image uses, and copies of data.

use object::elf::{
    self, DynamicTag, EM_AARCH64, EM_LOONGARCH, EM_PPC64, EM_RISCV, EM_X86_64, PF_W, RelocationType,
};

use super::image::Image;
use super::problem::Problem;
use super::source::u64_at;

/// Size of an entry.
const RELA: u64 = 24;

/// Number of entries read at a time.
const CHUNK: u64 = 4096;

/// Symbols that relocations refer to, by index.
#[derive(Default)]
pub(super) struct Relocations {
    /// One more than the highest index.
    pub(super) symbols: u32,
    /// Whether any relocation refers to a symbol.
    referenced: Vec<bool>,
    /// Symbols with a copy relocation.
    copied: Vec<u32>,
}

impl Relocations {
    pub(super) fn is_referenced(&self, symbol: u32) -> bool {
        self.referenced
            .get(symbol as usize)
            .copied()
            .unwrap_or(false)
    }

    pub(super) fn is_copied(&self, symbol: u32) -> bool {
        self.copied.contains(&symbol)
    }

    /// Reads the tables, and rejects those that end the process in glibc (`assert` in
    /// `elf_get_dynamic_info`, writes outside of writable segments).
    pub(super) fn read(image: &Image<'_>) -> Result<Self, Problem> {
        let mut found = Self::default();
        let is = |tag: DynamicTag, expected: u64, why: &'static str| match image.tag(tag) {
            Some(value) if value == expected => Ok(()),
            _ => Err(Problem::Malformed(why)),
        };
        if let Some(address) = image.tag(elf::DT_RELA) {
            is(elf::DT_RELAENT, RELA, "unexpected size of relocations")?;
            let size = image.required(elf::DT_RELASZ, "no size of the relocations")?;
            found.read_table(image, address, size)?;
            check_relative(image, address, size)?;
        }
        if let Some(address) = image.tag(elf::DT_JMPREL) {
            is(
                elf::DT_PLTREL,
                elf::DT_RELA.0 as u64,
                "unexpected kind of PLT relocations",
            )?;
            let size = image.required(elf::DT_PLTRELSZ, "no size of the PLT relocations")?;
            found.read_table(image, address, size)?;
        }
        if let Some(address) = image.tag(elf::DT_RELR) {
            is(
                elf::DT_RELRENT,
                8,
                "unexpected size of relative relocations",
            )?;
            let size = image.required(elf::DT_RELRSZ, "no size of the relative relocations")?;
            if size != 0 {
                image.offset_of(address, size)?;
            }
        }
        Ok(found)
    }

    fn read_table(&mut self, image: &Image<'_>, address: u64, size: u64) -> Result<(), Problem> {
        // The whole table first, so that no work is done for a size that a small file only claims.
        // mold leaves the address of an empty table unset.
        if size == 0 {
            return Ok(());
        }
        image.offset_of(address, size)?;
        if size % RELA != 0 {
            return Err(Problem::Malformed(
                "size of the relocations is no multiple of one",
            ));
        }
        let copy = copy_relocation(image);
        let text = has_text_relocations(image);
        let writable: Vec<_> = image
            .loads()
            .filter(|s| text || s.flags & PF_W.0 != 0)
            .collect();
        // An edit fills spare entries of the dynamic section.
        let dynamic = &image.segments[image.dynamic_segment];
        let dynamic = dynamic.vaddr.saturating_sub(7)..dynamic.vaddr + dynamic.filesz;
        let mut last = 0;
        for start in (0..size).step_by((CHUNK * RELA) as usize) {
            let part = image.bytes_at(address + start, (size - start).min(CHUNK * RELA))?;
            for entry in part.chunks_exact(RELA as usize) {
                let (target, info) = (u64_at(entry, 0), u64_at(entry, 8));
                let (symbol, kind) = ((info >> 32) as u32, RelocationType(info as u32));
                if kind.0 == 0 {
                    continue;
                }
                // Most relocations follow each other in one segment.
                let contains = |i: &usize| writable.get(*i).is_some_and(|s| s.contains(target, 4));
                last = Some(last)
                    .filter(contains)
                    .or_else(|| (0..writable.len()).find(contains))
                    .ok_or(Problem::Malformed(
                        "relocation outside of writable segments",
                    ))?;
                if dynamic.contains(&target) {
                    return Err(Problem::Malformed("relocation of the dynamic section"));
                }
                if symbol != 0 {
                    self.refer(image, symbol)?;
                    if kind == copy && !self.copied.contains(&symbol) {
                        self.copied.push(symbol);
                    }
                }
            }
        }
        Ok(())
    }

    fn refer(&mut self, image: &Image<'_>, symbol: u32) -> Result<(), Problem> {
        let index = symbol as usize;
        if index >= self.referenced.len() {
            // A symbol has 24 bytes, which bounds the indices by the size of the file.
            if u64::from(symbol) > image.source.len() / 24 {
                return Err(Problem::Malformed("relocation against an unknown symbol"));
            }
            self.referenced.resize(index + 1, false);
            self.symbols = symbol + 1;
        }
        self.referenced[index] = true;
        Ok(())
    }
}

/// Checks the relocations that `DT_RELACOUNT` declares to be relative, and glibc asserts to be
/// (`elf_machine_rela_relative`).
fn check_relative(image: &Image<'_>, address: u64, size: u64) -> Result<(), Problem> {
    let count = image.tag(elf::DT_RELACOUNT).unwrap_or(0);
    if count > size / RELA {
        return Err(Problem::Malformed(
            "more relative relocations than relocations",
        ));
    }
    let relative = relative_relocation(image);
    for start in (0..count).step_by(CHUNK as usize) {
        let part = (count - start).min(CHUNK) * RELA;
        let part = image.bytes_at(address + start * RELA, part)?;
        let mut entries = part.chunks_exact(RELA as usize);
        if entries.any(|entry| u64_at(entry, 8) as u32 != relative.0) {
            return Err(Problem::Malformed("relocation is not relative as declared"));
        }
    }
    Ok(())
}

/// Type of the relative relocation of the image's machine.
fn relative_relocation(image: &Image<'_>) -> RelocationType {
    match image.header.machine {
        EM_X86_64 => elf::R_X86_64_RELATIVE,
        EM_AARCH64 => elf::R_AARCH64_RELATIVE,
        EM_RISCV => elf::R_RISCV_RELATIVE,
        EM_PPC64 => elf::R_PPC64_RELATIVE,
        EM_LOONGARCH => elf::R_LARCH_RELATIVE,
        _ => RelocationType(u32::MAX),
    }
}

fn has_text_relocations(image: &Image<'_>) -> bool {
    let flags = image.tag(elf::DT_FLAGS).unwrap_or(0);
    image.tag(elf::DT_TEXTREL).is_some() || flags & elf::DF_TEXTREL.0 != 0
}

/// Type of the copy relocation of the image's machine.
fn copy_relocation(image: &Image<'_>) -> RelocationType {
    match image.header.machine {
        EM_X86_64 => elf::R_X86_64_COPY,
        EM_AARCH64 => elf::R_AARCH64_COPY,
        EM_RISCV => elf::R_RISCV_COPY,
        EM_PPC64 => elf::R_PPC64_COPY,
        EM_LOONGARCH => elf::R_LARCH_COPY,
        // `Image::read` rejects other machines.
        _ => RelocationType(u32::MAX),
    }
}
