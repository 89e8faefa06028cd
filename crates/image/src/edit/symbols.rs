//! The dynamic symbol table. The dynamic section has its address, and nothing has its size.

use std::borrow::Cow;

use object::elf::{self, STB_WEAK, SymbolBind, SymbolType};

use super::image::Image;
use super::problem::Problem;
use super::relocations::Relocations;
use super::source::{u16_at, u32_at};

/// Size of a symbol.
pub(super) const SYMBOL: u64 = 24;

/// A table of symbols and their versions.
pub(super) struct Symbols<'s> {
    bytes: Cow<'s, [u8]>,
    /// Version table, as large as the symbol table; empty in an image without versions.
    versions: Cow<'s, [u8]>,
    /// Offset of the version table in the file.
    pub(super) versions_offset: u64,
}

/// A dynamic symbol.
pub(super) struct Symbol {
    pub(super) index: u32,
    pub(super) name: u32,
    pub(super) kind: SymbolType,
    pub(super) bind: SymbolBind,
    pub(super) is_undefined: bool,
    /// Entry of the version table: an index, and bit 15 for a hidden version.
    pub(super) version: Option<u16>,
}

impl Symbol {
    pub(super) fn is_weak(&self) -> bool {
        self.bind == STB_WEAK
    }

    /// Index of the version; `None` without one (`VER_NDX_LOCAL`, `VER_NDX_GLOBAL`).
    pub(super) fn version_index(&self) -> Option<u16> {
        self.version.map(|v| v & 0x7fff).filter(|&index| index > 1)
    }
}

impl<'s> Symbols<'s> {
    pub(super) fn read(image: &Image<'s>, relocations: &Relocations) -> Result<Self, Problem> {
        let address = image.required(elf::DT_SYMTAB, "no symbol table")?;
        if image.tag(elf::DT_SYMENT).is_some_and(|size| size != SYMBOL) {
            return Err(Problem::Malformed("unexpected size of symbols"));
        }
        let count = u64::from(count(image, address, relocations)?);
        let bytes = image.bytes_at(address, count * SYMBOL)?;
        let (versions_offset, versions) = match image.tag(elf::DT_VERSYM) {
            Some(address) => {
                let offset = image.offset_of(address, count * 2)?;
                (offset, image.bytes_at(address, count * 2)?)
            }
            None => (0, Cow::Borrowed(&[][..])),
        };
        Ok(Self {
            bytes,
            versions,
            versions_offset,
        })
    }

    /// The symbols after the null symbol.
    pub(super) fn iter(&self) -> impl Iterator<Item = Symbol> {
        let symbols = self.bytes.chunks_exact(SYMBOL as usize).enumerate().skip(1);
        symbols.map(|(index, bytes)| Symbol {
            index: index as u32,
            name: u32_at(bytes, 0),
            kind: SymbolType(bytes[4] & 0xf),
            bind: SymbolBind(bytes[4] >> 4),
            is_undefined: u16_at(bytes, 6) == elf::SHN_UNDEF.0,
            version: (!self.versions.is_empty()).then(|| u16_at(&self.versions, 2 * index)),
        })
    }

    /// The symbol table.
    pub(super) fn into_bytes(self) -> Cow<'s, [u8]> {
        self.bytes
    }

    /// The version table.
    pub(super) fn versions(&self) -> &[u8] {
        &self.versions
    }
}

/// Number of symbols: as `DT_HASH` has it, or up to the last symbol that `DT_GNU_HASH`, which has no
/// imports, a relocation or the section header knows.
fn count(image: &Image<'_>, address: u64, relocations: &Relocations) -> Result<u32, Problem> {
    let hashed = image.tag(elf::DT_HASH).map(|address| {
        let head = image.bytes_at(address, 8)?;
        let (buckets, chains) = (u32_at(&head, 0), u32_at(&head, 4));
        let words = 2 + u64::from(buckets) + u64::from(chains);
        image.offset_of(address, 4 * words)?;
        Ok(chains)
    });
    let gnu = image.tag(elf::DT_GNU_HASH);
    let gnu = gnu.map(|address| gnu_hash_count(image, address));
    let count = match (hashed.transpose()?, gnu.transpose()?) {
        (Some(count), gnu) => {
            if gnu.is_some_and(|gnu| gnu > count) {
                return Err(Problem::Malformed("hash tables have different symbols"));
            }
            count
        }
        (None, gnu) => {
            let mut sections = image.sections.iter();
            let section = sections.find(|s| s.kind == elf::SHT_DYNSYM && s.addr == address);
            let section = section.map_or(0, |section| section.size / SYMBOL);
            let section = u32::try_from(section).unwrap_or(u32::MAX);
            gnu.unwrap_or(1).max(relocations.symbols).max(section)
        }
    };
    if count < relocations.symbols {
        return Err(Problem::Malformed("relocation against an unknown symbol"));
    }
    Ok(count)
}

/// Number of symbols up to the last one in `DT_GNU_HASH` (glibc's `_dl_setup_hash`, `do_lookup_x`).
fn gnu_hash_count(image: &Image<'_>, address: u64) -> Result<u32, Problem> {
    let head = image.bytes_at(address, 16)?;
    let (buckets, base, bloom) = (u32_at(&head, 0), u32_at(&head, 4), u32_at(&head, 8));
    if !bloom.is_power_of_two() {
        return Err(Problem::Malformed("GNU hash table is invalid"));
    }
    let first = address + 16 + 8 * u64::from(bloom);
    let table = image.bytes_at(first, 4 * u64::from(buckets))?;
    let last = table.chunks_exact(4).map(|bucket| u32_at(bucket, 0)).max();
    let Some(mut last) = last.filter(|&last| last != 0) else {
        return Ok(base);
    };
    let cut = Problem::Malformed("GNU hash table is cut off");
    let skipped = last.checked_sub(base).ok_or(cut)?;
    let mut chain = first + 4 * (u64::from(buckets) + u64::from(skipped));
    // The lowest bit marks the end of a chain.
    while u32_at(&image.bytes_at(chain, 4)?, 0) & 1 == 0 {
        chain += 4;
        last = last.saturating_add(1);
    }
    Ok(last.saturating_add(1))
}
