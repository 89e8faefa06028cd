//! Resolved views of ordered layers.

use core::ops::Range;

use crate::error::{Error, Part};
use crate::format::{ENTRY_SIZE, LAYER_SIZE, SLOT_SIZE, Slots, Table};
use crate::hash::hash_bytes;
use crate::member::Member;
use crate::tables::Tables;

/// One of the archives in a super-archive. Declared as a list of layers, which are searched in order
/// for each symbol; one table has the results of that search.
///
/// ```
/// # use gpustub_archive::SuperArchive;
/// # let bytes = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sample.a"));
/// # let archive = SuperArchive::parse(bytes)?;
/// let gfx900 = archive.view("gfx900")?.expect("a view");
/// let gfx1100 = archive.view("gfx1100")?.expect("a view");
/// // Both views share the member of `norm`; that of `scale` is overridden.
/// let [norm, other] = [gfx900, gfx1100].map(|view| view.find_symbol("norm"));
/// assert_eq!(norm?.map(|m| m.index()), other?.map(|m| m.index()));
/// let [scale, other] = [gfx900, gfx1100].map(|view| view.find_symbol("scale"));
/// assert_ne!(scale?.map(|m| m.index()), other?.map(|m| m.index()));
/// # Ok::<(), gpustub_archive::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    tables: Tables<'a>,
    name: &'a [u8],
    slots: Slots,
    symbols: u32,
    members: Table,
    layers: Table,
}

/// A layer of a view.
///
/// ```
/// # use gpustub_archive::{Layer, SuperArchive};
/// # let bytes = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sample.a"));
/// # let archive = SuperArchive::parse(bytes)?;
/// let view = archive.view("gfx1100")?.expect("a view");
/// let layers: Vec<Layer<'_>> = view.layers().collect::<Result<_, _>>()?;
/// assert_eq!(layers, [Layer { name: b"gfx11" }, Layer { name: b"common" }]);
/// # Ok::<(), gpustub_archive::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layer<'a> {
    /// Name of the layer.
    pub name: &'a [u8],
}

/// A symbol of a view.
///
/// ```
/// # use gpustub_archive::SuperArchive;
/// # let bytes = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sample.a"));
/// # let archive = SuperArchive::parse(bytes)?;
/// let view = archive.view("gfx1100")?.expect("a view");
/// for symbol in view.symbols() {
///     let symbol = symbol?;
///     let found = view.find_symbol(symbol.name)?.map(|member| member.index());
///     assert_eq!(found, Some(symbol.member.index()));
/// }
/// # Ok::<(), gpustub_archive::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Symbol<'a> {
    /// Name as in object files.
    pub name: &'a [u8],
    /// The member that defines it for this view.
    pub member: Member<'a>,
}

/// All symbols of a view: see [`View::symbols`].
///
/// ```
/// # use gpustub_archive::SuperArchive;
/// # let bytes = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sample.a"));
/// # let archive = SuperArchive::parse(bytes)?;
/// let view = archive.view("gfx900")?.expect("a view");
/// let mut names: Vec<&[u8]> = Vec::new();
/// for symbol in view.symbols() {
///     names.push(symbol?.name);
/// }
/// names.sort();
/// assert_eq!(names, [&b"norm"[..], b"scale"]);
/// # Ok::<(), gpustub_archive::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Symbols<'a> {
    view: View<'a>,
    slots: Range<u32>,
}

impl<'a> Iterator for Symbols<'a> {
    type Item = Result<Symbol<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let view = self.view;
        self.slots.find_map(|slot| {
            let full = view.slot(slot).transpose()?;
            Some(full.and_then(|(_, at)| {
                let (name, member) = view.symbol(at)?;
                let member = Member::read(view.tables, member)?;
                Ok(Symbol { name, member })
            }))
        })
    }
}

impl<'a> View<'a> {
    pub(crate) fn read(tables: Tables<'a>, at: u64) -> Option<Self> {
        let within = tables.header.tables_size;
        let table = |at, size| Table::read(tables.blob, at, size, within);
        Some(Self {
            tables,
            name: tables.text(at)?,
            slots: Slots::read(tables.blob, at + 8, SLOT_SIZE, within)?,
            symbols: tables.blob.u32(at + 16)?,
            members: table(at + 20, ENTRY_SIZE)?,
            layers: table(at + 28, LAYER_SIZE)?,
        })
    }

    /// Name of the view.
    pub fn name(&self) -> &'a [u8] {
        self.name
    }

    /// The number of symbols.
    pub fn symbol_count(&self) -> usize {
        self.symbols as usize
    }

    /// The member that defines a symbol, or `None`. For each symbol the layers are searched from the
    /// first one, regardless of the layer of the reference.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] if the tables are corrupt.
    pub fn find_symbol(&self, symbol: impl AsRef<[u8]>) -> Result<Option<Member<'a>>, Error> {
        let name = symbol.as_ref();
        let hash = hash_bytes(name);
        let mut slot = hash as u32;
        for _ in 0..self.slots.slots() {
            let Some((word, at)) = self.slot(slot & self.slots.mask())? else {
                return Ok(None);
            };
            if word == (hash >> 32) as u32 {
                let symbol = self.symbol(at)?;
                if symbol.0 == name {
                    return Member::read(self.tables, symbol.1).map(Some);
                }
            }
            slot = slot.wrapping_add(1);
        }
        Ok(None)
    }

    /// All symbols, in unspecified order.
    pub fn symbols(&self) -> Symbols<'a> {
        Symbols {
            view: *self,
            slots: 0..self.slots.slots(),
        }
    }

    /// The number of members.
    pub fn member_count(&self) -> usize {
        self.members.count as usize
    }

    /// The member at that index in the order of the layers, with the index of its layer; `None` if the
    /// index is out of range. Members all of whose symbols an earlier layer defines are omitted.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] if the tables are corrupt.
    pub fn member_at(&self, index: usize) -> Result<Option<(Member<'a>, usize)>, Error> {
        if index >= self.member_count() {
            return Ok(None);
        }
        let at = self.members.at + index as u64 * ENTRY_SIZE;
        let malformed = Error::Malformed(Part::Members);
        let member = self.tables.blob.u32(at).ok_or(malformed)?;
        let layer = self.tables.blob.u32(at + 4).ok_or(malformed)?;
        if layer >= self.layers.count {
            return Err(malformed);
        }
        Ok(Some((Member::read(self.tables, member)?, layer as usize)))
    }

    /// All members: see [`View::member_at`].
    pub fn members(&self) -> impl Iterator<Item = Result<(Member<'a>, usize), Error>> + use<'a> {
        let view = *self;
        (0..view.member_count()).filter_map(move |index| view.member_at(index).transpose())
    }

    /// The number of layers.
    pub fn layer_count(&self) -> usize {
        self.layers.count as usize
    }

    /// The layer of that index, in search order; `None` if the index is out of range.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] if the tables are corrupt.
    pub fn layer_at(&self, index: usize) -> Result<Option<Layer<'a>>, Error> {
        if index >= self.layer_count() {
            return Ok(None);
        }
        let at = self.layers.at + index as u64 * LAYER_SIZE;
        let name = self.tables.text(at).ok_or(Error::Malformed(Part::Views))?;
        Ok(Some(Layer { name }))
    }

    /// All layers, in search order.
    pub fn layers(&self) -> impl Iterator<Item = Result<Layer<'a>, Error>> + use<'a> {
        let view = *self;
        (0..view.layer_count()).filter_map(move |index| view.layer_at(index).transpose())
    }

    /// Size of the view's tables in bytes.
    pub(crate) fn tables_size(&self) -> u64 {
        u64::from(self.slots.slots()) * SLOT_SIZE
            + u64::from(self.members.count) * ENTRY_SIZE
            + u64::from(self.layers.count) * LAYER_SIZE
    }

    /// Upper bound of the number of symbols: the stated number, or that of the slots.
    pub(crate) fn max_symbols(&self) -> u64 {
        self.symbols.min(self.slots.slots() / 2).into()
    }

    /// Checks that [`View::find_symbol`] reaches each full slot, that their number is as written, and that
    /// each has a member. Subtracts the size of all names from `names`, which limits it.
    pub(crate) fn verify_symbols(&self, names: &mut u64) -> Result<(), Error> {
        let malformed = Error::Malformed(Part::Symbols);
        let (slots, mask) = (self.slots.slots(), self.slots.mask());
        // The first slot may belong to full ones at the end.
        let mut run = 0;
        for slot in (0..slots).rev() {
            if self.slot(slot)?.is_none() {
                break;
            }
            run += 1;
        }
        let mut full = 0;
        for slot in 0..slots {
            let Some((word, at)) = self.slot(slot)? else {
                run = 0;
                continue;
            };
            let (name, member) = self.symbol(at)?;
            Member::read(self.tables, member)?;
            *names = names.checked_sub(name.len() as u64).ok_or(malformed)?;
            let hash = hash_bytes(name);
            let distance = slot.wrapping_sub(hash as u32) & mask;
            if (hash >> 32) as u32 != word || distance > run {
                return Err(malformed);
            }
            run += 1;
            full += 1;
        }
        // An empty slot ends the search for a missing symbol.
        if full != self.symbols || full > slots / 2 {
            return Err(malformed);
        }
        Ok(())
    }

    /// Contents of a slot, unless empty: the upper half of the hash, and the offset of the rest.
    fn slot(&self, slot: u32) -> Result<Option<(u32, u64)>, Error> {
        let at = self.slots.at + u64::from(slot) * SLOT_SIZE;
        let entry = || {
            let hash = self.tables.blob.u32(at)?;
            let member = self.tables.blob.u32(at + 12)?;
            Some((member != 0).then_some((hash, at)))
        };
        entry().ok_or(Error::Malformed(Part::Symbols))
    }

    /// The name in a slot that is not empty, and the index of the member.
    fn symbol(&self, at: u64) -> Result<(&'a [u8], u32), Error> {
        let entry = || {
            let member = self.tables.blob.u32(at + 12)?.checked_sub(1)?;
            Some((self.tables.text(at + 4)?, member))
        };
        entry().ok_or(Error::Malformed(Part::Symbols))
    }
}
