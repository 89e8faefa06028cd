//! The dynamic symbol table. The dynamic section has its address, and nothing has its size.

use std::borrow::Cow;

use object::elf::{
    self, SHN_LORESERVE, STB_LOCAL, STB_WEAK, STT_GNU_IFUNC, STT_TLS, STV_HIDDEN, STV_INTERNAL,
    SymbolBind, SymbolType, SymbolVisibility,
};

use super::hashes;
use super::image::Image;
use super::problem::Problem;
use super::relocations::Relocations;
use super::source::{u16_at, u32_at, u64_at};

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
    /// Whether the image defines the symbol at an address of its own.
    is_placed: bool,
    visibility: SymbolVisibility,
    pub(super) value: u64,
    size: u64,
    /// Entry of the version table: an index, and bit 15 for a hidden version.
    pub(super) version: Option<u16>,
}

impl Symbol {
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
        let section = u16_at(bytes, 6);
        let is_undefined = section == elf::SHN_UNDEF.0;
        let version = 2 * index as usize;
        Some(Symbol {
            index,
            name: u32_at(bytes, 0),
            kind: SymbolType(bytes[4] & 0xf),
            bind: SymbolBind(bytes[4] >> 4),
            is_undefined,
            is_placed: !is_undefined && section < SHN_LORESERVE,
            visibility: SymbolVisibility(bytes[5] & 3),
            value: u64_at(bytes, 8),
            size: u64_at(bytes, 16),
            version: (!self.versions.is_empty()).then(|| u16_at(&self.versions, version)),
        })
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
