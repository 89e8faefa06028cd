//! The tables: `FORMAT.md` specifies the offset of each field.

use std::collections::HashMap;
use std::hash::Hash;

use gpustub_archive::hash::hash_bytes;
use gpustub_archive::{MAGIC, MAJOR};

use crate::dictionaries::{self, Group, RowId, home};
use crate::ids::{IndexVec, MemberId, NameId, ViewId};
use crate::names::FastHash;
use crate::pool::Pool;
use crate::request::Request;
use crate::resolver::ResolvedView;

const HEADER_SIZE: usize = 120;
/// Offset of the numbers of records in the header.
const COUNTS_AT: usize = 56;
const CONTENTS_SIZE: usize = 48;

/// Binary logarithm of the alignment of the tables, and of hidden contents, from the beginning of the
/// archive.
const ALIGN_BITS: u8 = 4;
pub const ALIGN: u64 = 1 << ALIGN_BITS;

/// Flags of contents.
const HIDDEN: u32 = 1;
const VARIANT: u32 = 2;

/// Location of contents.
#[derive(Debug, Clone, Copy)]
pub enum Location {
    /// In the archive, of an ordinary member with this header.
    Ordinary { at: u64, header: [u8; 60] },
    /// After the tables, at this offset from their beginning.
    Hidden { at: u64 },
}

/// The tables without the locations of contents, which depend on the size of the tables.
pub struct Tables {
    bytes: Vec<u8>,
}

/// A number exceeds the width of its field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLarge;

impl Tables {
    /// The tables of these contents and views.
    pub fn new<'r>(
        request: &'r Request<'_>,
        pool: &Pool<'r>,
        views: &IndexVec<ViewId, ResolvedView<'r>>,
    ) -> Result<Self, TooLarge> {
        let mut parts = Parts::default();
        for contents in pool.contents.iter() {
            let size = contents.data.len() as u64;
            parts.contents.words([0, size, size, contents.hash]);
            let base = contents.original.map_or(0, |original| original.0 + 1);
            parts.contents.numbers([0, 0, base, 0])?;
        }
        let (groups, row_ids) = dictionaries::group(views, &pool.names);
        parts.add_views(request, views, &row_ids)?;
        let mut scratch = IndexVec::from_elem(0, pool.names.count());
        for group in &groups {
            parts.add_dictionary(group, pool, &mut scratch)?;
        }
        parts.finish(request.default)
    }

    /// Size of the tables.
    pub fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// The tables, with the locations of contents.
    pub fn finish(mut self, locations: &IndexVec<MemberId, Location>, blob_size: u64) -> Vec<u8> {
        for (index, location) in locations.iter().enumerate() {
            let record = &mut self.bytes[HEADER_SIZE + index * CONTENTS_SIZE..][..CONTENTS_SIZE];
            let (at, flags, align, header) = match location {
                Location::Ordinary { at, header } => (at, 0, 1, hash_bytes(header) as u32),
                Location::Hidden { at } => (at, HIDDEN, ALIGN_BITS, 0),
            };
            let is_variant = record[40..44] != [0; 4];
            let flags = flags | if is_variant { VARIANT } else { 0 };
            put(record, 0, &at.to_le_bytes());
            put(record, 32, &flags.to_le_bytes());
            put(record, 37, &[align]);
            put(record, 44, &header.to_le_bytes());
        }
        put(&mut self.bytes, 32, &blob_size.to_le_bytes());
        seal(&mut self.bytes);
        self.bytes
    }
}

/// Writes the hash of the tables into their header.
pub fn seal(tables: &mut [u8]) {
    let (header, rest) = tables.split_at(HEADER_SIZE);
    let hash = hash_bytes(&header[..HEADER_SIZE - 8]) ^ hash_bytes(rest);
    put(tables, HEADER_SIZE - 8, &hash.to_le_bytes());
}

/// Bytes of the records of one kind.
#[derive(Default)]
struct RecordBytes {
    bytes: Vec<u8>,
}

impl RecordBytes {
    fn words<const N: usize>(&mut self, words: [u64; N]) {
        let words = words.map(u64::to_le_bytes);
        self.bytes.extend_from_slice(words.as_flattened());
    }

    fn numbers<const N: usize>(&mut self, all: [usize; N]) -> Result<(), TooLarge> {
        self.bytes.extend_from_slice(numbers(all)?.as_flattened());
        Ok(())
    }

    /// Number of records of this size.
    fn count(&self, size: usize) -> usize {
        self.bytes.len() / size
    }
}

/// Ranges of records, each stored once.
struct Ranges<K> {
    ids: HashMap<K, usize, FastHash>,
}

impl<K: Eq + Hash> Ranges<K> {
    fn new() -> Self {
        Self {
            ids: HashMap::default(),
        }
    }

    /// The index of a range, and whether it is new.
    fn id(&mut self, key: K) -> (usize, bool) {
        let next = self.ids.len();
        let id = *self.ids.entry(key).or_insert(next);
        (id, id == next)
    }
}

/// All parts, in the order of the file, except that texts follow.
#[derive(Default)]
struct Parts<'n> {
    contents: RecordBytes,
    views: RecordBytes,
    directory: RecordBytes,
    dictionaries: RecordBytes,
    slots: RecordBytes,
    rows: RecordBytes,
    lists: RecordBytes,
    entries: RecordBytes,
    layer_lists: RecordBytes,
    layers: RecordBytes,
    extensions: RecordBytes,
    texts: RecordBytes,
    /// Texts that members and layers share.
    shared: HashMap<&'n [u8], [usize; 2], FastHash>,
    /// Longest displacement of the directory.
    longest: usize,
}

impl<'n> Parts<'n> {
    /// A text that nothing else has: reading all names is then limited by the size of the texts.
    fn own_text(&mut self, name: &[u8]) -> [usize; 2] {
        let at = self.texts.bytes.len();
        self.texts.bytes.extend(name);
        [at, name.len()]
    }

    fn text(&mut self, name: &'n [u8]) -> [usize; 2] {
        if let Some(&text) = self.shared.get(name) {
            return text;
        }
        let text = self.own_text(name);
        self.shared.insert(name, text);
        text
    }

    fn add_views(
        &mut self,
        request: &'n Request<'_>,
        views: &IndexVec<ViewId, ResolvedView<'n>>,
        row_ids: &[RowId],
    ) -> Result<(), TooLarge> {
        let (mut lists, mut layer_lists) = (Ranges::new(), Ranges::new());
        for ((view, found), row_id) in request.views.iter().zip(views.iter()).zip(row_ids) {
            let (list, new) = lists.id(&found.members[..]);
            if new {
                let last = found.members.iter().map(|one| one.layer.0 + 1).max();
                let (first, count) = (self.entries.count(16), found.members.len());
                self.lists.numbers([first, count, last.unwrap_or(0)])?;
                for one in &found.members {
                    let [at, length] = self.text(one.name);
                    let entry = [one.member.0, at, length, one.layer.0];
                    self.entries.numbers(entry)?;
                }
            }
            let (layers, new) = layer_lists.id(&view.layers[..]);
            if new {
                let (first, count) = (self.layers.count(8), view.layers.len());
                self.layer_lists.numbers([first, count])?;
                for &layer in &view.layers {
                    let text = self.text(request.layers[layer.0].name.as_bytes());
                    self.layers.numbers(text)?;
                }
            }
            let [at, length] = self.own_text(view.name.as_bytes());
            let record = [at, length, row_id.group, row_id.row, list, layers, 0, 0];
            self.views.numbers(record)?;
        }
        let hash = |view: usize| hash_bytes(request.views[view].name.as_bytes());
        let mut order: Vec<usize> = (0..request.views.len()).collect();
        order.sort_unstable_by_key(|&view| (hash(view), request.views[view].name.as_bytes()));
        let table = Table::new(order.iter().map(|&view| hash(view)));
        self.longest = table.longest;
        self.directory.bytes.resize(4 * table.slots(), 0);
        for (view, slot) in order.into_iter().zip(&table.places) {
            put(&mut self.directory.bytes, 4 * slot, &number(view + 1)?);
        }
        Ok(())
    }

    fn add_dictionary(
        &mut self,
        group: &Group,
        pool: &Pool<'_>,
        scratch: &mut IndexVec<NameId, u32>,
    ) -> Result<(), TooLarge> {
        let symbols = group.slots(&pool.names);
        let rows = group.rows(scratch);
        let classes = rows.first().map_or(0, Vec::len);
        let table = Table::new(symbols.iter().map(|(name, _)| name.hash));
        let (slot, word) = (self.slots.count(16), self.rows.count(4));
        self.dictionaries.numbers([
            slot,
            table.homes,
            table.longest,
            symbols.len(),
            word,
            classes,
            rows.len(),
            0,
        ])?;
        (self.slots.bytes).resize(16 * (slot + table.slots()), 0);
        let texts = symbols.iter().map(|(name, _)| name.bytes.len());
        self.texts.bytes.reserve(texts.sum());
        for ((name, class), place) in symbols.into_iter().zip(&table.places) {
            let [text, length] = self.own_text(name.bytes);
            let half = name.hash as u32 as usize;
            let record = numbers([half, text, length, class + 1])?;
            let at = 16 * (slot + place);
            put(&mut self.slots.bytes, at, record.as_flattened());
        }
        for row in rows {
            let largest = row.iter().copied().max().unwrap_or(0);
            for word in std::iter::once(largest).chain(row) {
                self.rows.bytes.extend(word.to_le_bytes());
            }
        }
        Ok(())
    }

    fn finish(self, default: Option<ViewId>) -> Result<Tables, TooLarge> {
        let parts = [
            (self.contents, CONTENTS_SIZE),
            (self.views, 32),
            (self.directory, 4),
            (self.dictionaries, 32),
            (self.slots, 16),
            (self.rows, 4),
            (self.lists, 12),
            (self.entries, 16),
            (self.layer_lists, 8),
            (self.layers, 8),
            (self.extensions, 32),
            (self.texts, 1),
        ];
        let size = parts
            .iter()
            .map(|(part, _)| part.bytes.len())
            .sum::<usize>();
        let size = (HEADER_SIZE + size).next_multiple_of(ALIGN as usize);
        let mut bytes = Vec::with_capacity(size);
        bytes.resize(HEADER_SIZE, 0);
        for (at, (part, record)) in (COUNTS_AT..).step_by(4).zip(parts) {
            put(&mut bytes, at, &number(part.count(record))?);
            bytes.extend(part.bytes);
        }
        bytes.resize(size, 0);
        put(&mut bytes, 0, &MAGIC);
        put(&mut bytes, 16, &MAJOR.to_le_bytes());
        put(&mut bytes, 20, &number(HEADER_SIZE)?);
        put(&mut bytes, 40, &(size as u64).to_le_bytes());
        put(
            &mut bytes,
            48,
            &number(default.map_or(0, |view| view.0 + 1))?,
        );
        put(&mut bytes, 52, &number(self.longest)?);
        Ok(Tables { bytes })
    }
}

/// A hash table: the slot of each entry. Entries are in the order of their hashes.
struct Table {
    homes: usize,
    longest: usize,
    places: Vec<usize>,
}

impl Table {
    /// A table with at most 0.6 entries for each home.
    fn new(hashes: impl ExactSizeIterator<Item = u64>) -> Self {
        let homes = (hashes.len() * 5).div_ceil(3);
        let (mut next, mut longest) = (0, 0);
        let places = hashes.map(|hash| {
            let home = home(hash, homes);
            let slot = home.max(next);
            longest = longest.max(slot - home);
            next = slot + 1;
            slot
        });
        Self {
            places: places.collect(),
            homes,
            longest,
        }
    }

    /// Number of slots.
    fn slots(&self) -> usize {
        self.homes + self.longest
    }
}

fn numbers<const N: usize>(all: [usize; N]) -> Result<[[u8; 4]; N], TooLarge> {
    let mut bytes = [[0; 4]; N];
    for (bytes, one) in bytes.iter_mut().zip(all) {
        *bytes = number(one)?;
    }
    Ok(bytes)
}

fn number(number: usize) -> Result<[u8; 4], TooLarge> {
    let number = u32::try_from(number).map_err(|_| TooLarge)?;
    Ok(number.to_le_bytes())
}

pub fn put(bytes: &mut [u8], at: usize, part: &[u8]) {
    bytes[at..at + part.len()].copy_from_slice(part);
}
