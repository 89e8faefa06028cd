//! The dynamic symbol table, with the version of each symbol.

use object::elf::{self, SHN_LORESERVE, STT_GNU_IFUNC, STT_TLS, STV_HIDDEN, STV_INTERNAL};

use super::hashes;
use super::problem::EditProblem;
use super::relocations::Relocations;
use super::words::{SYMBOL, u16_at};
use crate::elf::{ElfImage, Symbol, SymbolTable};

/// A table of symbols and their versions.
pub(super) struct Symbols<'d> {
    pub(super) table: SymbolTable<'d>,
    /// Version table, as large as the symbol table; empty in an image without versions.
    pub(super) versions: &'d [u8],
    /// Offset of the version table in the file.
    pub(super) versions_offset: u64,
}

impl<'d> Symbols<'d> {
    pub(super) fn read(
        image: &ElfImage<'d>,
        relocations: &Relocations,
    ) -> Result<Self, EditProblem> {
        let address = image.required(elf::DT_SYMTAB, "no symbol table")?;
        if image.tag(elf::DT_SYMENT).is_some_and(|size| size != SYMBOL) {
            return Err(EditProblem::Malformed("unexpected size of symbols"));
        }
        let count = u64::from(hashes::count(image, address, relocations)?);
        let offset = image.offset_of(address, count * SYMBOL)?;
        let table = image
            .symbols_at(offset, count)
            .ok_or(EditProblem::Truncated("last segment"))?;
        let (versions_offset, versions) = match image.tag(elf::DT_VERSYM) {
            Some(address) => {
                let offset = image.offset_of(address, count * 2)?;
                (offset, image.bytes_at(address, count * 2)?)
            }
            None => (0, &[][..]),
        };
        Ok(Self {
            table,
            versions,
            versions_offset,
        })
    }

    /// Entry of the version table: an index, and bit 15 for a hidden version.
    fn version(&self, index: u32) -> Option<u16> {
        (!self.versions.is_empty()).then(|| u16_at(self.versions, 2 * index as usize))
    }

    /// Index of the version of a symbol; `None` without one (`VER_NDX_LOCAL`, `VER_NDX_GLOBAL`).
    pub(super) fn version_index(&self, index: u32) -> Option<u16> {
        self.version(index)
            .map(|version| version & 0x7fff)
            .filter(|&version_index| version_index > 1)
    }

    /// The symbols after the null symbol, with their indices.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, Symbol)> {
        self.table
            .iter()
            .skip(1)
            .map(|(index, symbol)| (index as u32, symbol))
    }
}

impl Symbol {
    /// Checks the symbol of an index by what the loader does with it.
    pub(super) fn check(
        &self,
        index: u32,
        image: &ElfImage<'_>,
        relocations: &Relocations,
    ) -> Result<(), EditProblem> {
        // The loader looks such a symbol up in the image itself only.
        let is_local = self.is_local() || matches!(self.visibility, STV_HIDDEN | STV_INTERNAL);
        if self.is_undefined() && is_local && relocations.is_referenced(index) {
            return Err(EditProblem::Malformed(
                "relocation against a missing symbol",
            ));
        }
        // Only a program may define the address of an imported function (psABI, "Function Addresses").
        if self.is_undefined() && self.value != 0 && !image.is_program() {
            return Err(EditProblem::Malformed("undefined symbol has an address"));
        }
        // The image defines such a symbol at an address of its own.
        if !self.is_undefined() && self.section.0 < SHN_LORESERVE {
            if self.kind == STT_GNU_IFUNC && !image.is_code(self.value) {
                return Err(EditProblem::Malformed(
                    "function that selects another is no code",
                ));
            }
            let is_inside = match self.kind {
                STT_TLS => image.has_thread_local(self.value),
                _ => image.has_range(self.value, self.size),
            };
            if !is_inside {
                return Err(EditProblem::Malformed("symbol is outside of all segments"));
            }
        }
        if relocations.is_thread_local(index) && !self.is_undefined() && self.kind != STT_TLS {
            return Err(EditProblem::Malformed("symbol is not thread-local"));
        }
        Ok(())
    }
}
