//! The dynamic symbols. The dynamic section has their address, and nothing has their number.

use object::elf;
use object::read::elf::{FileHeader, GnuHashTable};
use object::{Endianness, ReadRef};

use super::{ElfImage, Section, SymbolTable};
use crate::error::Problem;

impl<'d> ElfImage<'d> {
    /// The dynamic symbols, the null symbol at index 0 included.
    pub(crate) fn symbols(&self) -> Result<SymbolTable<'d>, Problem> {
        let empty = SymbolTable::new(&[], self.is_64, self.endian);
        let Some(address) = self.tag(elf::DT_SYMTAB) else {
            return Ok(empty);
        };
        let count = self.symbol_count()?;
        if count == 0 {
            return Ok(empty);
        }
        let bytes = self.at_address(address)?;
        let symbols = count
            .checked_mul(SymbolTable::entry_size(self.is_64))
            .and_then(|size| bytes.get(..size))
            .ok_or(Problem::Malformed(
                "symbol table reaches beyond its segment",
            ))?;
        Ok(SymbolTable::new(symbols, self.is_64, self.endian))
    }

    /// A table at an offset of the file, with a number of symbols.
    pub(crate) fn symbols_at(&self, offset: u64, count: u64) -> Option<SymbolTable<'d>> {
        let size = count.checked_mul(SymbolTable::entry_size(self.is_64) as u64)?;
        let bytes = self.source.bytes(offset, size)?;
        Some(SymbolTable::new(bytes, self.is_64, self.endian))
    }

    /// The version of each of `symbols` symbols; empty for an image without versions.
    pub(crate) fn symbol_versions(
        &self,
        symbols: usize,
    ) -> Result<&'d [elf::Versym<Endianness>], Problem> {
        let Some(address) = self.tag(elf::DT_VERSYM) else {
            return Ok(&[]);
        };
        self.at_address(address)?
            .read_slice_at(0, symbols)
            .map_err(|()| Problem::Malformed("version table is shorter than the symbol table"))
    }

    /// Number of symbols. The dynamic section does not contain it, but the loader's hash tables reach
    /// every symbol that can be found.
    fn symbol_count(&self) -> Result<usize, Problem> {
        if let Some(address) = self.tag(elf::DT_HASH) {
            // gABI: nbucket, nchain, in words; nchain is the number of symbols. The word has 64
            // bits in the psABIs of s390x and alpha.
            let is_wide = self.is_64 && matches!(self.header.machine, elf::EM_S390 | elf::EM_ALPHA);
            let table = self.at_address(address)?;
            let count = if is_wide {
                table
                    .read_at::<object::U64<Endianness>>(8)
                    .map(|word| word.get(self.endian))
            } else {
                table
                    .read_at::<object::U32<Endianness>>(4)
                    .map(|word| word.get(self.endian).into())
            };
            return match count {
                Ok(count) => Ok(usize::try_from(count).unwrap_or(usize::MAX)),
                Err(()) => Err(Problem::Malformed("hash table is too short")),
            };
        }
        let Some(address) = self.tag(elf::DT_GNU_HASH) else {
            return self
                .section_count(self.sections_to_load())
                .ok_or(Problem::Malformed("no hash table of symbols"));
        };
        let table = self.at_address(address)?;
        let count = if self.is_64 {
            self.gnu_count::<elf::FileHeader64<Endianness>>(table)?
        } else {
            self.gnu_count::<elf::FileHeader32<Endianness>>(table)?
        };
        match count {
            GnuCount::Symbols(count) => Ok(usize::try_from(count).unwrap_or(usize::MAX)),
            // All symbols are imports, which are not in it. GNU ld writes 1 as the number of these.
            GnuCount::Imports(count) => Ok(self
                .section_count(self.sections())
                .unwrap_or(count as usize)),
        }
    }

    /// Number of symbols in the section of dynamic symbols.
    fn section_count(&self, sections: &[Section]) -> Option<usize> {
        let entry_size = SymbolTable::entry_size(self.is_64) as u64;
        let mut sections = sections.iter();
        let table = sections.find(|section| section.kind == elf::SHT_DYNSYM)?;
        usize::try_from(table.size / entry_size).ok()
    }

    fn gnu_count<Elf: FileHeader<Endian = Endianness>>(
        &self,
        table: &[u8],
    ) -> Result<GnuCount, Problem> {
        let table = GnuHashTable::<Elf>::parse(self.endian, table)
            .map_err(|_| Problem::Malformed("GNU hash table is too short"))?;
        let count = table.symbol_table_length(self.endian);
        Ok(count.map_or(GnuCount::Imports(table.symbol_base()), GnuCount::Symbols))
    }
}

/// Number of symbols by a GNU hash table.
enum GnuCount {
    /// Number of all symbols.
    Symbols(u32),
    /// Number of symbols before those of an empty table.
    Imports(u32),
}
