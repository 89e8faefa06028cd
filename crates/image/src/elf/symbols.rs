//! Tables of symbols.

use object::elf::{
    SHN_ABS, SHN_UNDEF, STB_LOCAL, STB_WEAK, STV_DEFAULT, STV_PROTECTED, Sym32, Sym64, SymbolBind,
    SymbolSection, SymbolType, SymbolVisibility,
};
use object::read::elf::Sym;
use object::{Endianness, ReadRef};

/// A table of symbols.
#[derive(Clone, Copy)]
pub(crate) struct SymbolTable<'d> {
    bytes: &'d [u8],
    is_64: bool,
    endian: Endianness,
}

/// A symbol.
#[derive(Clone, Copy)]
pub(crate) struct Symbol {
    pub(crate) name: u32,
    pub(crate) kind: SymbolType,
    pub(crate) bind: SymbolBind,
    pub(crate) visibility: SymbolVisibility,
    pub(crate) section: SymbolSection,
    pub(crate) value: u64,
    pub(crate) size: u64,
}

impl<'d> SymbolTable<'d> {
    /// A table in whole symbols; further bytes are ignored.
    pub(super) fn new(bytes: &'d [u8], is_64: bool, endian: Endianness) -> Self {
        Self {
            bytes,
            is_64,
            endian,
        }
    }

    /// Size of a symbol of this class.
    pub(super) fn entry_size(is_64: bool) -> usize {
        if is_64 {
            size_of::<Sym64<Endianness>>()
        } else {
            size_of::<Sym32<Endianness>>()
        }
    }

    pub(crate) fn bytes(&self) -> &'d [u8] {
        self.bytes
    }

    /// Number of symbols, with the null symbol at index 0.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() / Self::entry_size(self.is_64)
    }

    /// Size of a number of symbols in bytes.
    pub(crate) fn size_of(&self, count: usize) -> usize {
        count * Self::entry_size(self.is_64)
    }

    pub(crate) fn get(&self, index: usize) -> Option<Symbol> {
        let offset = index.checked_mul(Self::entry_size(self.is_64))? as u64;
        let endian = self.endian;
        if self.is_64 {
            let symbol: &Sym64<Endianness> = self.bytes.read_at(offset).ok()?;
            Some(Symbol::read(symbol, endian))
        } else {
            let symbol: &Sym32<Endianness> = self.bytes.read_at(offset).ok()?;
            Some(Symbol::read(symbol, endian))
        }
    }

    /// The symbols with their indices, with the null symbol.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, Symbol)> {
        self.range(0, self.len())
    }

    /// At most `count` symbols from an index on, with their indices.
    pub(crate) fn range(
        &self,
        start: usize,
        count: usize,
    ) -> impl Iterator<Item = (usize, Symbol)> {
        let end = start.saturating_add(count).min(self.len());
        (start..end).filter_map(|index| Some((index, self.get(index)?)))
    }
}

impl Symbol {
    #[inline]
    fn read<S: Sym<Endian = Endianness>>(symbol: &S, endian: Endianness) -> Self {
        Self {
            name: symbol.st_name(endian),
            kind: symbol.st_type(),
            bind: symbol.st_bind(),
            visibility: symbol.st_visibility(),
            section: symbol.st_shndx(endian),
            value: symbol.st_value(endian).into(),
            size: symbol.st_size(endian).into(),
        }
    }

    pub(crate) fn is_local(&self) -> bool {
        self.bind == STB_LOCAL
    }

    pub(crate) fn is_weak(&self) -> bool {
        self.bind == STB_WEAK
    }

    pub(crate) fn is_undefined(&self) -> bool {
        self.section == SHN_UNDEF
    }

    pub(crate) fn is_absolute(&self) -> bool {
        self.section == SHN_ABS
    }

    /// Whether other images, or other objects, may see the symbol.
    pub(crate) fn is_visible(&self) -> bool {
        matches!(self.visibility, STV_DEFAULT | STV_PROTECTED)
    }
}
