//! The dynamic symbol table. The dynamic section has its address, and nothing has its size.

use std::borrow::Cow;

use object::elf;

use super::hashes;
use super::image::Image;
use super::problem::Problem;
use super::relocations::Relocations;
use super::source::u16_at;
use super::symbol::{SYMBOL, Symbol};

/// A table of symbols and their versions.
pub(super) struct Symbols<'s> {
    bytes: Cow<'s, [u8]>,
    /// Version table, as large as the symbol table; empty in an image without versions.
    versions: Cow<'s, [u8]>,
    /// Offset of the version table in the file.
    pub(super) versions_offset: u64,
}

impl<'s> Symbols<'s> {
    pub(super) fn read(image: &Image<'s>, relocations: &Relocations) -> Result<Self, Problem> {
        let address = image.required(elf::DT_SYMTAB, "no symbol table")?;
        if image.tag(elf::DT_SYMENT).is_some_and(|size| size != SYMBOL) {
            return Err(Problem::Malformed("unexpected size of symbols"));
        }
        let count = u64::from(hashes::count(image, address, relocations)?);
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

    /// The symbol of an index.
    pub(super) fn get(&self, index: u32) -> Option<Symbol> {
        let start = usize::try_from(u64::from(index) * SYMBOL).ok()?;
        let bytes = self.bytes.get(start..)?.get(..SYMBOL as usize)?;
        let version = 2 * index as usize;
        let version = (!self.versions.is_empty()).then(|| u16_at(&self.versions, version));
        Some(Symbol::read(index, bytes, version))
    }

    /// The symbols after the null symbol.
    pub(super) fn iter(&self) -> impl Iterator<Item = Symbol> {
        let count = self.bytes.len() as u64 / SYMBOL;
        (1..count as u32).filter_map(|index| self.get(index))
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
