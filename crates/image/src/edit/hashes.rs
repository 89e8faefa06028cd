//! Hash tables of symbols. The loader finds the symbols of an image by them, so that each symbol of a table has
//! to be where its name leads (`do_lookup_x` of glibc).

use std::ops::Range;

use object::elf;

use super::problem::EditProblem;
use super::relocations::Relocations;
use super::words::{SYMBOL, u32_at, u64_at};
use crate::elf::{ElfImage, Symbol, SymbolTable};
use crate::strings::Strings;

/// Number of symbols: as `DT_HASH` has it, or up to the last symbol that `DT_GNU_HASH`, which has no
/// imports, a relocation or the section header knows. `address` is that of the symbol table.
pub(super) fn count(
    image: &ElfImage<'_>,
    address: u64,
    relocations: &Relocations,
) -> Result<u32, EditProblem> {
    let sysv_count = SysvHash::read(image)?.map(|table| table.chain_count);
    let gnu_count = match GnuHash::read(image)? {
        Some(table) => Some(table.count(image)?),
        None => None,
    };
    let count = match sysv_count {
        Some(count) => {
            if gnu_count.is_some_and(|gnu_count| gnu_count > count) {
                return Err(EditProblem::Malformed("hash tables have different symbols"));
            }
            count
        }
        None => {
            let section_count = image
                .counted_sections()
                .iter()
                .find(|s| s.kind == elf::SHT_DYNSYM && s.addr == address)
                .map_or(0, |section| section.size / SYMBOL);
            gnu_count
                .unwrap_or(1)
                .max(relocations.symbols)
                .max(u32::try_from(section_count).unwrap_or(u32::MAX))
        }
    };
    if count < relocations.symbols {
        return Err(EditProblem::Malformed(
            "relocation against an unknown symbol",
        ));
    }
    Ok(count)
}

/// Checks that each symbol of the tables is in the list of its name's hash. `symbols` is the table that
/// [`count`] counts.
pub(super) fn check(
    image: &ElfImage<'_>,
    strings: &[u8],
    symbols: SymbolTable<'_>,
) -> Result<(), EditProblem> {
    if let Some(table) = GnuHash::read(image)? {
        table.check(image, &Strings::new(strings), symbols)?;
    }
    if let Some(table) = SysvHash::read(image)? {
        table.check(image, &Strings::new(strings), symbols)?;
    }
    Ok(())
}

/// Addresses of the tables.
pub(super) fn ranges(image: &ElfImage<'_>) -> Result<Vec<Range<u64>>, EditProblem> {
    let mut ranges = Vec::new();
    if let Some(table) = GnuHash::read(image)? {
        let symbols = table.count(image)?.saturating_sub(table.base);
        let end = table.hashes_address() + 4 * u64::from(symbols);
        ranges.push(table.address - 16..end);
    }
    if let Some(table) = SysvHash::read(image)? {
        let word_count = u64::from(table.bucket_count) + u64::from(table.chain_count);
        ranges.push(table.buckets_address - 8..table.buckets_address + 4 * word_count);
    }
    Ok(ranges)
}

fn name<'s>(strings: &Strings<'s>, symbol: &Symbol) -> Result<&'s [u8], EditProblem> {
    strings
        .bytes(symbol.name.into())
        .map_err(|_| EditProblem::Malformed("name of a symbol is outside the string table"))
}

/// `DT_HASH` (gABI, "Hash Table").
struct SysvHash {
    /// Address of the buckets, which the chains follow.
    buckets_address: u64,
    bucket_count: u32,
    chain_count: u32,
}

impl SysvHash {
    fn read(image: &ElfImage<'_>) -> Result<Option<Self>, EditProblem> {
        let Some(table_address) = image.tag(elf::DT_HASH) else {
            return Ok(None);
        };
        let header = image.bytes_at(table_address, 8)?;
        let (bucket_count, chain_count) = (u32_at(header, 0), u32_at(header, 4));
        let word_count = 2 + u64::from(bucket_count) + u64::from(chain_count);
        image.offset_of(table_address, 4 * word_count)?;
        Ok(Some(Self {
            buckets_address: table_address + 8,
            bucket_count,
            chain_count,
        }))
    }

    fn check(
        &self,
        image: &ElfImage<'_>,
        strings: &Strings<'_>,
        symbols: SymbolTable<'_>,
    ) -> Result<(), EditProblem> {
        let wrong = EditProblem::Malformed("hash table does not lead to its symbols");
        let word_count = u64::from(self.bucket_count) + u64::from(self.chain_count);
        let table = image.bytes_at(self.buckets_address, 4 * word_count)?;
        let mut symbols_left = self.chain_count;
        for bucket in 0..self.bucket_count {
            let mut index = u32_at(table, 4 * bucket as usize);
            while index != 0 {
                // A symbol has one hash, so that lists with more symbols than the table have a circle.
                symbols_left = symbols_left.checked_sub(1).ok_or(wrong.clone())?;
                let symbol = symbols
                    .get(index as usize)
                    .filter(|_| index < self.chain_count)
                    .ok_or(wrong.clone())?;
                if elf::hash(name(strings, &symbol)?) % self.bucket_count != bucket {
                    return Err(wrong);
                }
                index = u32_at(table, 4 * (self.bucket_count as usize + index as usize));
            }
        }
        Ok(())
    }
}

/// `DT_GNU_HASH` (glibc's `_dl_setup_hash`).
struct GnuHash {
    buckets: u32,
    /// Index of the first symbol of the table.
    base: u32,
    /// Number of words of the Bloom filter.
    bloom: u32,
    shift: u32,
    /// Address of the Bloom filter.
    address: u64,
}

impl GnuHash {
    fn read(image: &ElfImage<'_>) -> Result<Option<Self>, EditProblem> {
        let Some(address) = image.tag(elf::DT_GNU_HASH) else {
            return Ok(None);
        };
        let head = image.bytes_at(address, 16)?;
        let word = |index: usize| u32_at(head, 4 * index);
        if !word(2).is_power_of_two() {
            return Err(EditProblem::Malformed("GNU hash table is invalid"));
        }
        Ok(Some(Self {
            buckets: word(0),
            base: word(1),
            bloom: word(2),
            shift: word(3),
            address: address + 16,
        }))
    }

    /// Address of the buckets, which the hashes of the symbols follow.
    fn buckets_address(&self) -> u64 {
        self.address + 8 * u64::from(self.bloom)
    }

    fn hashes_address(&self) -> u64 {
        self.buckets_address() + 4 * u64::from(self.buckets)
    }

    fn buckets<'s>(&self, image: &ElfImage<'s>) -> Result<&'s [u8], EditProblem> {
        image.bytes_at(self.buckets_address(), 4 * u64::from(self.buckets))
    }

    /// Number of symbols up to the last one in the table.
    fn count(&self, image: &ElfImage<'_>) -> Result<u32, EditProblem> {
        let firsts = self.buckets(image)?.chunks_exact(4);
        let mut index = firsts.map(|first| u32_at(first, 0)).max().unwrap_or(0);
        if index == 0 {
            return Ok(self.base);
        }
        let cut = EditProblem::Malformed("GNU hash table is cut off");
        let skipped = index.checked_sub(self.base).ok_or(cut)?;
        let mut hash_address = self.hashes_address() + 4 * u64::from(skipped);
        // The lowest bit marks the end of a chain.
        while u32_at(image.bytes_at(hash_address, 4)?, 0) & 1 == 0 {
            hash_address += 4;
            index = index.saturating_add(1);
        }
        Ok(index.saturating_add(1))
    }

    fn check(
        &self,
        image: &ElfImage<'_>,
        strings: &Strings<'_>,
        symbols: SymbolTable<'_>,
    ) -> Result<(), EditProblem> {
        let wrong = EditProblem::Malformed("GNU hash table does not lead to its symbols");
        let filter = image.bytes_at(self.address, 8 * u64::from(self.bloom))?;
        let buckets = self.buckets(image)?;
        let listed_symbols = self.count(image)?.saturating_sub(self.base);
        let hashes = image.bytes_at(self.hashes_address(), 4 * u64::from(listed_symbols))?;
        for (bucket, first) in buckets.chunks_exact(4).enumerate() {
            let mut index = u32_at(first, 0);
            if index == 0 {
                continue;
            }
            loop {
                let position = index
                    .checked_sub(self.base)
                    .filter(|&position| position < listed_symbols)
                    .ok_or(wrong.clone())?;
                let symbol = symbols.get(index as usize).ok_or(wrong.clone())?;
                let hash = elf::gnu_hash(name(strings, &symbol)?);
                let listed_hash = u32_at(hashes, 4 * position as usize);
                // bfd also lists some imports.
                if hash | 1 != listed_hash | 1
                    || hash as usize % (buckets.len() / 4) != bucket
                    || !self.bloom_contains(filter, hash)
                {
                    return Err(wrong);
                }
                if listed_hash & 1 != 0 {
                    break;
                }
                index = index.checked_add(1).ok_or(wrong.clone())?;
            }
        }
        Ok(())
    }

    /// Whether the Bloom filter has both bits of a hash.
    fn bloom_contains(&self, filter: &[u8], hash: u32) -> bool {
        let index = (hash / 64) & (self.bloom - 1);
        let word = u64_at(filter, 8 * index as usize);
        let second = hash.checked_shr(self.shift).unwrap_or(0);
        word >> (hash % 64) & word >> (second % 64) & 1 != 0
    }
}
