//! Views: ordered layers, flattened.

use crate::error::{Error, Part};
use crate::format::{ENTRY_SIZE, LAYER_SIZE, SLOT_SIZE, Slots, Table};
use crate::{Member, SuperArchive, hash};

/// One of the archives in a super-archive. It was declared as a list of layers, which are searched
/// in their order for each symbol; what that search finds stands in one table.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    of: SuperArchive<'a>,
    name: &'a [u8],
    slots: Slots,
    symbols: u32,
    members: Table,
    layers: Table,
}

/// A layer of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layer<'a> {
    /// Its name.
    pub name: &'a [u8],
}

/// A symbol of a view.
#[derive(Clone, Copy, Debug)]
pub struct Symbol<'a> {
    /// Its name, as linkers know it.
    pub name: &'a [u8],
    /// The member that defines it for this view.
    pub member: Member<'a>,
}

impl<'a> View<'a> {
    pub(crate) fn read(of: SuperArchive<'a>, at: u64) -> Option<Self> {
        let within = of.header.tables_size;
        let table = |at, size| Table::read(of.blob, at, size, within);
        Some(Self {
            of,
            name: of.text(at)?,
            slots: Slots::read(of.blob, at + 8, SLOT_SIZE, within)?,
            symbols: of.blob.u32(at + 16)?,
            members: table(at + 20, ENTRY_SIZE)?,
            layers: table(at + 28, LAYER_SIZE)?,
        })
    }

    /// Its name.
    pub fn name(&self) -> &'a [u8] {
        self.name
    }

    /// The number of its symbols.
    pub fn symbol_count(&self) -> usize {
        self.symbols as usize
    }

    /// The member that defines a symbol; `None` if none does. For each symbol the layers are
    /// searched from the top, whoever asks for it.
    ///
    /// # Errors
    ///
    /// If what is looked at of the tables is damaged.
    pub fn find(&self, symbol: impl AsRef<[u8]>) -> Result<Option<Member<'a>>, Error> {
        let name = symbol.as_ref();
        let hash = hash::of(name);
        let mut slot = hash as u32;
        for _ in 0..self.slots.slots() {
            let Some((word, at)) = self.slot(slot & self.slots.mask())? else {
                return Ok(None);
            };
            if word == (hash >> 32) as u32 {
                let symbol = self.symbol(at)?;
                if symbol.0 == name {
                    return Member::read(self.of, symbol.1).map(Some);
                }
            }
            slot = slot.wrapping_add(1);
        }
        Ok(None)
    }

    /// All symbols, in no order that means something.
    pub fn symbols(&self) -> impl Iterator<Item = Result<Symbol<'a>, Error>> + use<'a> {
        let view = *self;
        (0..view.slots.slots()).filter_map(move |slot| {
            let full = view.slot(slot).transpose()?;
            Some(full.and_then(|(_, at)| {
                let (name, member) = view.symbol(at)?;
                let member = Member::read(view.of, member)?;
                Ok(Symbol { name, member })
            }))
        })
    }

    /// Its members in the order of its layers, each with the index of its layer. Members all of
    /// whose symbols an earlier layer defines are left out.
    pub fn members(&self) -> impl Iterator<Item = Result<(Member<'a>, usize), Error>> + use<'a> {
        let view = *self;
        (0..view.members.count).map(move |index| {
            let at = view.members.at + u64::from(index) * ENTRY_SIZE;
            let damaged = Error::Damaged(Part::Members);
            let member = view.of.blob.u32(at).ok_or(damaged)?;
            let layer = view.of.blob.u32(at + 4).ok_or(damaged)?;
            Ok((Member::read(view.of, member)?, layer as usize))
        })
    }

    /// Its layers, in the order in which they are searched.
    pub fn layers(&self) -> impl Iterator<Item = Result<Layer<'a>, Error>> + use<'a> {
        let view = *self;
        (0..view.layers.count).map(move |index| {
            let at = view.layers.at + u64::from(index) * LAYER_SIZE;
            let name = view.of.text(at).ok_or(Error::Damaged(Part::Views))?;
            Ok(Layer { name })
        })
    }

    /// What stands in a slot, unless it is empty: the upper half of the hash, and where the rest is.
    fn slot(&self, slot: u32) -> Result<Option<(u32, u64)>, Error> {
        let at = self.slots.at + u64::from(slot) * SLOT_SIZE;
        let entry = || {
            let hash = self.of.blob.u32(at)?;
            let member = self.of.blob.u32(at + 12)?;
            Some((member != 0).then_some((hash, at)))
        };
        entry().ok_or(Error::Damaged(Part::Symbols))
    }

    /// The name in a slot that is not empty, and the index of the member.
    fn symbol(&self, at: u64) -> Result<(&'a [u8], u32), Error> {
        let entry = || {
            let member = self.of.blob.u32(at + 12)?.checked_sub(1)?;
            Some((self.of.text(at + 4)?, member))
        };
        entry().ok_or(Error::Damaged(Part::Symbols))
    }
}
