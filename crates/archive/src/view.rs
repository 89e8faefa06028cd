//! Resolved views of ordered layers.

use core::ops::Range;

use crate::bytes::word;
use crate::contents::Contents;
use crate::error::{Error, Part};
use crate::format::{Header, Records};
use crate::hash::hash_bytes;
use crate::member::Member;
use crate::slots::Slots;
use crate::tables::Store;

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
/// for (symbol, is_shared) in [("norm", true), ("scale", false)] {
///     let gfx900_member = gfx900.find_symbol(symbol)?.expect("a symbol");
///     let gfx1100_member = gfx1100.find_symbol(symbol)?.expect("a symbol");
///     let is_same = gfx900_member.contents().index() == gfx1100_member.contents().index();
///     assert_eq!(is_same, is_shared, "{symbol}");
/// }
/// # Ok::<(), gpustub_archive::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    store: Store<'a>,
    name: &'a [u8],
    slots: Slots,
    /// Words of the row: the largest one, then the position of each class.
    row: Records,
    members: Records,
    layers: Records,
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
///     let member = view.find_symbol(symbol.name)?.expect("a symbol");
///     assert_eq!(member.position(), symbol.member.position());
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
        self.slots.find_map(|slot| view.symbol_at(slot).transpose())
    }
}

/// A slot of a dictionary.
#[derive(Clone, Copy)]
pub(crate) struct Slot {
    /// Lower half of the hash of the name.
    pub hash: u32,
    text: (u32, u32),
    /// 0: the slot is empty.
    pub class_plus_one: u32,
}

impl Slot {
    pub fn read(store: Store<'_>, offset: u64) -> Option<Self> {
        let record: &[u8; 16] = store.blob.array(offset)?;
        Some(Self {
            hash: word(record, 0),
            text: (word(record, 4), word(record, 8)),
            class_plus_one: word(record, 12),
        })
    }

    pub fn name<'a>(&self, store: Store<'a>) -> Result<&'a [u8], Error> {
        store
            .text_of(self.text.0, self.text.1)
            .ok_or(Error::Malformed(Part::Symbols))
    }

    pub fn is_zero(&self) -> bool {
        (self.hash, self.text, self.class_plus_one) == (0, (0, 0), 0)
    }
}

impl<'a> View<'a> {
    pub(crate) fn read(store: Store<'a>, header: &Header, index: u32) -> Option<Self> {
        let blob = store.blob;
        let record = header.views.get(index)?;
        let dictionary = Dictionary::read(store, header, blob.u32(record + 8)?)?;
        let list = header.lists.get(blob.u32(record + 16)?)?;
        let layer_list = header.layer_lists.get(blob.u32(record + 20)?)?;
        Some(Self {
            store,
            name: store.text(record)?,
            slots: dictionary.slots,
            row: dictionary.row(blob.u32(record + 12)?)?,
            members: header
                .entries
                .range(blob.u32(list)?, blob.u32(list + 4)?.into())?,
            layers: header
                .layers
                .range(blob.u32(layer_list)?, blob.u32(layer_list + 4)?.into())?,
        })
    }

    /// Name of the view.
    pub fn name(&self) -> &'a [u8] {
        self.name
    }

    /// The number of symbols. Counts them: takes as long as reading [`View::symbols`].
    pub fn symbol_count(&self) -> usize {
        self.symbols().filter(Result::is_ok).count()
    }

    /// The member that defines a symbol, or `None`. For each symbol the layers are searched from the
    /// first one, regardless of the layer of the reference.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] if the tables are corrupt, [`Error::UnsupportedContents`] if the member's
    /// contents have an unknown form.
    pub fn find_symbol(&self, symbol: impl AsRef<[u8]>) -> Result<Option<Member<'a>>, Error> {
        self.find_name(symbol.as_ref())
    }

    fn find_name(&self, name: &[u8]) -> Result<Option<Member<'a>>, Error> {
        let hash = hash_bytes(name);
        for offset in self.slots.walk(hash) {
            let slot = Slot::read(self.store, offset).ok_or(Error::Malformed(Part::Symbols))?;
            if slot.class_plus_one == 0 {
                break;
            }
            if slot.hash == hash as u32 && slot.name(self.store)? == name {
                return self.member_of(slot.class_plus_one);
            }
        }
        Ok(None)
    }

    /// The symbol in a slot; `None` if the slot is empty, or the view does not have the symbol.
    fn symbol_at(&self, slot: u32) -> Result<Option<Symbol<'a>>, Error> {
        let malformed = Error::Malformed(Part::Symbols);
        let offset = self.slots.offset(slot).ok_or(malformed)?;
        let slot = Slot::read(self.store, offset).ok_or(malformed)?;
        if slot.class_plus_one == 0 {
            return Ok(None);
        }
        let name = slot.name(self.store)?;
        let member = self.member_of(slot.class_plus_one)?;
        Ok(member.map(|member| Symbol { name, member }))
    }

    /// The member that defines the symbols of a class.
    fn member_of(&self, class_plus_one: u32) -> Result<Option<Member<'a>>, Error> {
        let malformed = Error::Malformed(Part::Symbols);
        // The words of the classes follow the largest word.
        let offset = self.row.get(class_plus_one).ok_or(malformed)?;
        let position_plus_one = self.store.blob.u32(offset).ok_or(malformed)?;
        match position_plus_one.checked_sub(1) {
            None => Ok(None),
            Some(position) => self.member(position).map(Some),
        }
    }

    fn member(&self, position: u32) -> Result<Member<'a>, Error> {
        let malformed = Error::Malformed(Part::Members);
        let offset = self.members.get(position).ok_or(malformed)?;
        let entry: &[u8; 16] = self.store.blob.array(offset).ok_or(malformed)?;
        let name = self
            .store
            .text_of(word(entry, 4), word(entry, 8))
            .ok_or(malformed)?;
        let layer = word(entry, 12);
        if layer >= self.layers.count {
            return Err(malformed);
        }
        Ok(Member {
            name,
            position,
            layer,
            contents: Contents::read(self.store, word(entry, 0))?,
        })
    }

    /// All symbols, in unspecified order.
    pub fn symbols(&self) -> Symbols<'a> {
        Symbols {
            view: *self,
            slots: 0..self.slots.count(),
        }
    }

    /// The number of members.
    pub fn member_count(&self) -> usize {
        self.members.count as usize
    }

    /// The member at that position in the order of the layers; `None` if it is out of range. Members of
    /// later layers all of whose symbols earlier ones define are omitted.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] if the tables are corrupt, [`Error::UnsupportedContents`] if the member's
    /// contents have an unknown form.
    pub fn member_at(&self, position: usize) -> Result<Option<Member<'a>>, Error> {
        if position >= self.member_count() {
            return Ok(None);
        }
        self.member(position as u32).map(Some)
    }

    /// All members: see [`View::member_at`].
    pub fn members(&self) -> impl Iterator<Item = Result<Member<'a>, Error>> + use<'a> {
        let view = *self;
        (0..view.members.count).map(move |position| view.member(position))
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
        let name = self
            .layers
            .get(index as u32)
            .and_then(|record| self.store.text(record))
            .ok_or(Error::Malformed(Part::Views))?;
        Ok(Some(Layer { name }))
    }

    /// All layers, in search order.
    pub fn layers(&self) -> impl Iterator<Item = Result<Layer<'a>, Error>> + use<'a> {
        let view = *self;
        (0..view.layer_count()).filter_map(move |index| view.layer_at(index).transpose())
    }

    /// Whether no class has a position outside the list, according to the row.
    pub(crate) fn row_fits(&self) -> bool {
        self.row
            .get(0)
            .and_then(|offset| self.store.blob.u32(offset))
            .is_some_and(|largest| largest <= self.members.count)
    }
}

/// The symbol names of views.
pub(crate) struct Dictionary {
    pub slots: Slots,
    /// Number of slots that are not empty.
    pub symbols: u32,
    /// Words of all rows.
    pub rows: Records,
    pub classes: u32,
}

impl Dictionary {
    pub fn read(store: Store<'_>, header: &Header, index: u32) -> Option<Self> {
        let record: &[u8; 32] = store.blob.array(header.dictionaries.get(index)?)?;
        let (first_slot, homes, longest) = (word(record, 0), word(record, 4), word(record, 8));
        let slot_count = u64::from(homes) + u64::from(longest);
        let (first_word, classes, rows) = (word(record, 16), word(record, 20), word(record, 24));
        let word_count = u64::from(rows) * (u64::from(classes) + 1);
        Some(Self {
            slots: Slots::new(header.slots.range(first_slot, slot_count)?, longest)?,
            symbols: word(record, 12),
            rows: header.rows.range(first_word, word_count)?,
            classes,
        })
    }

    /// The words of a row.
    pub fn row(&self, row: u32) -> Option<Records> {
        let words = u64::from(self.classes) + 1;
        let first_word = u64::from(row).checked_mul(words)?;
        self.rows.range(u32::try_from(first_word).ok()?, words)
    }
}
