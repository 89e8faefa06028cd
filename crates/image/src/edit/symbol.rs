//! A dynamic symbol.

use object::elf::{
    SHN_LORESERVE, SHN_UNDEF, STB_LOCAL, STB_WEAK, STT_GNU_IFUNC, STT_TLS, STV_HIDDEN,
    STV_INTERNAL, SymbolBind, SymbolType, SymbolVisibility,
};

use super::image::Image;
use super::problem::Problem;
use super::relocations::Relocations;
use super::source::{u16_at, u32_at, u64_at};

/// Size of a symbol.
pub(super) const SYMBOL: u64 = 24;

/// A dynamic symbol.
pub(super) struct Symbol {
    pub(super) index: u32,
    pub(super) name: u32,
    pub(super) kind: SymbolType,
    pub(super) bind: SymbolBind,
    pub(super) is_undefined: bool,
    /// Whether the image defines the symbol at an address of its own.
    is_placed: bool,
    visibility: SymbolVisibility,
    pub(super) value: u64,
    size: u64,
    /// Entry of the version table: an index, and bit 15 for a hidden version.
    pub(super) version: Option<u16>,
}

impl Symbol {
    /// Reads an entry of the table, which has [`SYMBOL`] bytes.
    pub(super) fn read(index: u32, bytes: &[u8], version: Option<u16>) -> Self {
        let section = u16_at(bytes, 6);
        let is_undefined = section == SHN_UNDEF.0;
        Self {
            index,
            name: u32_at(bytes, 0),
            kind: SymbolType(bytes[4] & 0xf),
            bind: SymbolBind(bytes[4] >> 4),
            is_undefined,
            is_placed: !is_undefined && section < SHN_LORESERVE,
            visibility: SymbolVisibility(bytes[5] & 3),
            value: u64_at(bytes, 8),
            size: u64_at(bytes, 16),
            version,
        }
    }

    pub(super) fn is_weak(&self) -> bool {
        self.bind == STB_WEAK
    }

    /// Checks the symbol by what the loader does with it.
    pub(super) fn check(
        &self,
        image: &Image<'_>,
        relocations: &Relocations,
    ) -> Result<(), Problem> {
        // The loader looks such a symbol up in the image itself only.
        let is_local =
            self.bind == STB_LOCAL || matches!(self.visibility, STV_HIDDEN | STV_INTERNAL);
        if self.is_undefined && is_local && relocations.is_referenced(self.index) {
            return Err(Problem::Malformed("relocation against a missing symbol"));
        }
        // Only a program may define the address of an imported function (psABI, "Function Addresses").
        if self.is_undefined && self.value != 0 && !image.is_program() {
            return Err(Problem::Malformed("undefined symbol has an address"));
        }
        if self.is_placed {
            let is_function = self.kind == STT_GNU_IFUNC;
            if is_function && !image.is_code(self.value) {
                return Err(Problem::Malformed(
                    "function that selects another is no code",
                ));
            }
            let is_inside = match self.kind {
                STT_TLS => image.has_thread_local(self.value),
                _ => image.has_range(self.value, self.size),
            };
            if !is_inside {
                return Err(Problem::Malformed("symbol is outside of all segments"));
            }
        }
        let is_thread_local = relocations.is_thread_local(self.index);
        if is_thread_local && !self.is_undefined && self.kind != STT_TLS {
            return Err(Problem::Malformed("symbol is not thread-local"));
        }
        Ok(())
    }

    /// Index of the version; `None` without one (`VER_NDX_LOCAL`, `VER_NDX_GLOBAL`).
    pub(super) fn version_index(&self) -> Option<u16> {
        self.version.map(|v| v & 0x7fff).filter(|&index| index > 1)
    }
}
