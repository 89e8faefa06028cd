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
/// let [norm, other] = [gfx900, gfx1100].map(|view| view.find_symbol("norm"));
/// assert_eq!(norm?.map(|m| m.contents().index()), other?.map(|m| m.contents().index()));
/// let [scale, other] = [gfx900, gfx1100].map(|view| view.find_symbol("scale"));
/// assert_ne!(scale?.map(|m| m.contents().index()), other?.map(|m| m.contents().index()));
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
///     let found = view.find_symbol(symbol.name)?.map(|member| member.position());
///     assert_eq!(found, Some(symbol.member.position()));
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
            let full = || {
                let slot = Slot::read(view.store, view.slots.offset(slot)?)?;
                Some((slot.class != 0).then_some(slot))
            };
            let slot = match full() {
                None => return Some(Err(Error::Malformed(Part::Symbols))),
                Some(slot) => slot?,
            };
            let symbol = slot.name(view.store).and_then(|name| {
                let member = view.member_of(slot.class)?;
                Ok(member.map(|member| Symbol { name, member }))
            });
            symbol.transpose()
        })
    }
}

/// A slot of a dictionary.
#[derive(Clone, Copy)]
pub(crate) struct Slot {
    /// Lower half of the hash of the name.
    pub hash: u32,
    text: (u32, u32),
    /// Class plus one; 0: the slot is empty.
    pub class: u32,
}

impl Slot {
    pub fn read(store: Store<'_>, at: u64) -> Option<Self> {
        let slot: &[u8; 16] = store.blob.array(at)?;
        Some(Self {
            hash: word(slot, 0),
            text: (word(slot, 4), word(slot, 8)),
            class: word(slot, 12),
        })
    }

    pub fn name<'a>(&self, store: Store<'a>) -> Result<&'a [u8], Error> {
        let name = store.text_of(self.text.0, self.text.1);
        name.ok_or(Error::Malformed(Part::Symbols))
    }

    pub fn is_zero(&self) -> bool {
        (self.hash, self.text, self.class) == (0, (0, 0), 0)
    }
}

impl<'a> View<'a> {
    pub(crate) fn read(store: Store<'a>, header: &Header, index: u32) -> Option<Self> {
        let blob = store.blob;
        let at = header.views.get(index)?;
        let dictionary = Dictionary::read(store, header, blob.u32(at + 8)?)?;
        let list = header.lists.get(blob.u32(at + 16)?)?;
        let layers = header.layer_lists.get(blob.u32(at + 20)?)?;
        let records = |part: Records, at| part.range(blob.u32(at)?, blob.u32(at + 4)?.into());
        Some(Self {
            store,
            name: store.text(at)?,
            slots: dictionary.slots,
            row: dictionary.row(blob.u32(at + 12)?)?,
            members: records(header.entries, list)?,
            layers: records(header.layers, layers)?,
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
        self.find(symbol.as_ref())
    }

    fn find(&self, name: &[u8]) -> Result<Option<Member<'a>>, Error> {
        let hash = hash_bytes(name);
        for at in self.slots.walk(hash) {
            let slot = Slot::read(self.store, at).ok_or(Error::Malformed(Part::Symbols))?;
            if slot.class == 0 {
                break;
            }
            if slot.hash == hash as u32 && slot.name(self.store)? == name {
                return self.member_of(slot.class);
            }
        }
        Ok(None)
    }

    /// The member that defines the symbols of a class.
    fn member_of(&self, class: u32) -> Result<Option<Member<'a>>, Error> {
        let word = || self.store.blob.u32(self.row.get(class)?);
        match word()
            .ok_or(Error::Malformed(Part::Symbols))?
            .checked_sub(1)
        {
            None => Ok(None),
            Some(position) => self.member(position).map(Some),
        }
    }

    fn member(&self, position: u32) -> Result<Member<'a>, Error> {
        let malformed = Error::Malformed(Part::Members);
        let at = self.members.get(position).ok_or(malformed)?;
        let entry: &[u8; 16] = self.store.blob.array(at).ok_or(malformed)?;
        let (contents, layer) = (word(entry, 0), word(entry, 12));
        let name = self.store.text_of(word(entry, 4), word(entry, 8));
        let name = name.ok_or(malformed)?;
        if layer >= self.layers.count {
            return Err(malformed);
        }
        Ok(Member {
            name,
            position,
            layer,
            contents: Contents::read(self.store, contents)?,
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
        let name = || self.store.text(self.layers.get(index as u32)?);
        let name = name().ok_or(Error::Malformed(Part::Views))?;
        Ok(Some(Layer { name }))
    }

    /// All layers, in search order.
    pub fn layers(&self) -> impl Iterator<Item = Result<Layer<'a>, Error>> + use<'a> {
        let view = *self;
        (0..view.layer_count()).filter_map(move |index| view.layer_at(index).transpose())
    }

    /// Whether no class has a position outside the list, according to the row.
    pub(crate) fn row_fits(&self) -> bool {
        let largest = self.row.get(0).and_then(|at| self.store.blob.u32(at));
        largest.is_some_and(|largest| largest <= self.members.count)
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
        let at = header.dictionaries.get(index)?;
        let field = |number: u64| store.blob.u32(at + 4 * number);
        let (homes, longest, classes) = (field(1)?, field(2)?, field(5)?);
        let slots = u64::from(homes) + u64::from(longest);
        let slots = Slots::new(header.slots.range(field(0)?, slots)?, longest)?;
        let words = u64::from(field(6)?) * (u64::from(classes) + 1);
        Some(Self {
            slots,
            symbols: field(3)?,
            rows: header.rows.range(field(4)?, words)?,
            classes,
        })
    }

    /// The words of a row.
    pub fn row(&self, row: u32) -> Option<Records> {
        let words = u64::from(self.classes) + 1;
        let first = u64::from(row).checked_mul(words)?;
        self.rows.range(u32::try_from(first).ok()?, words)
    }
}
