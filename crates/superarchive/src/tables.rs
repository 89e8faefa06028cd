//! The tables: `FORMAT.md` specifies the offset of each field.

use std::collections::HashMap;
use std::hash::Hash;

use gpustub_archive::hash::hash_bytes;
use gpustub_archive::{MAGIC, MAJOR, ZSTD};

use crate::dictionaries::{self, Group, RowId, home};
use crate::ids::{IndexVec, MemberId, NameId, ViewId};
use crate::names::{FastHash, Hashed};
use crate::pool::Pool;
use crate::request::{Request, View};
use crate::resolver::{ResolvedView, ViewMember};

const HEADER_SIZE: usize = 120;
/// Offset of the numbers of records in the header.
const COUNTS_OFFSET: usize = 56;
const CONTENTS_SIZE: usize = 48;

/// Binary logarithm of the alignment of the tables, and of hidden contents, from the beginning of the
/// archive.
const ALIGN_BITS: u8 = 4;
pub const ALIGN: u64 = 1 << ALIGN_BITS;

/// Flags of contents.
const HIDDEN: u8 = 1;
const VARIANT: u8 = 2;
/// Required feature: contents may be compressed.
const COMPRESSED: usize = 1;

/// Location of contents.
#[derive(Debug, Clone, Copy)]
pub enum Location {
    /// In the archive, of an ordinary member with this header.
    Ordinary { offset: u64, header: [u8; 60] },
    /// After the tables, at this offset from their beginning.
    Hidden { offset: u64 },
}

/// The tables. The locations of contents depend on their size, and are written last.
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
        for member in pool.contents.ids() {
            let contents = &pool.contents[member];
            let (size, stored_size) = (contents.data.len(), pool.stored(member).len());
            let sizes = [stored_size as u64, size as u64];
            parts.contents.words([0, sizes[0], sizes[1], contents.hash]);
            let flags = contents.original.map_or(0, |_| VARIANT as usize);
            let frame = pool.frame(member);
            let codec = frame.map_or(0, |_| usize::from(ZSTD));
            let base = match frame {
                Some(frame) => frame.base,
                None => contents.original,
            };
            let base = base.map_or(0, |base| base.0 + 1);
            parts.contents.numbers([flags, codec, base, 0])?;
        }
        let (groups, row_ids) = dictionaries::group(views, &pool.names);
        parts.add_views(request, views, &row_ids)?;
        let mut scratch = IndexVec::from_elem(0, pool.names.count());
        for group in &groups {
            parts.add_dictionary(group, pool, &mut scratch)?;
        }
        let has_frames = pool.frames.iter().any(Option::is_some);
        parts.finish(request.default, if has_frames { COMPRESSED } else { 0 })
    }

    /// Size of the tables.
    pub fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Writes the locations of contents.
    pub fn set_locations(&mut self, locations: &IndexVec<MemberId, Location>, blob_size: u64) {
        for (index, location) in locations.iter().enumerate() {
            let record = &mut self.bytes[HEADER_SIZE + index * CONTENTS_SIZE..][..CONTENTS_SIZE];
            let (offset, flags, align, header_hash) = match location {
                Location::Ordinary { offset, header } => (offset, 0, 1, hash_bytes(header) as u32),
                Location::Hidden { offset } => (offset, HIDDEN, ALIGN_BITS, 0),
            };
            put(record, 0, &offset.to_le_bytes());
            record[32] |= flags;
            put(record, 37, &[align]);
            put(record, 44, &header_hash.to_le_bytes());
        }
        put(&mut self.bytes, 32, &blob_size.to_le_bytes());
        seal(&mut self.bytes);
    }

    /// The bytes of the tables.
    pub fn into_bytes(self) -> Vec<u8> {
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
        self.bytes
            .extend_from_slice(words.map(u64::to_le_bytes).as_flattened());
    }

    fn numbers<const N: usize>(&mut self, numbers: [usize; N]) -> Result<(), TooLarge> {
        self.bytes
            .extend_from_slice(le_words(numbers)?.as_flattened());
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
    /// The offset and the length of a text that nothing else has: reading all names is then limited by the
    /// size of the texts.
    fn unshared_text(&mut self, name: &[u8]) -> [usize; 2] {
        let offset = self.texts.bytes.len();
        self.texts.bytes.extend(name);
        [offset, name.len()]
    }

    /// The offset and the length of a text.
    fn shared_text(&mut self, name: &'n [u8]) -> [usize; 2] {
        if let Some(&text) = self.shared.get(name) {
            return text;
        }
        let text = self.unshared_text(name);
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
        for ((view, resolved), row_id) in request.views.iter().zip(views.iter()).zip(row_ids) {
            let (list, is_new) = lists.id(&resolved.members[..]);
            if is_new {
                self.add_list(&resolved.members)?;
            }
            let (layer_list, is_new) = layer_lists.id(&view.layers[..]);
            if is_new {
                let (first, count) = (self.layers.count(8), view.layers.len());
                self.layer_lists.numbers([first, count])?;
                for &layer in &view.layers {
                    let text = self.shared_text(request.layers[layer.0].name.as_bytes());
                    self.layers.numbers(text)?;
                }
            }
            let [text, length] = self.unshared_text(view.name.as_bytes());
            let RowId { group, row } = *row_id;
            self.views
                .numbers([text, length, group, row, list, layer_list, 0, 0])?;
        }
        self.add_directory(&request.views)
    }

    fn add_list(&mut self, members: &[ViewMember<'n>]) -> Result<(), TooLarge> {
        let (first, count) = (self.entries.count(16), members.len());
        let layer_count = members.iter().map(|member| member.layer.0 + 1).max();
        self.lists
            .numbers([first, count, layer_count.unwrap_or(0)])?;
        for member in members {
            let [text, length] = self.shared_text(member.name);
            self.entries
                .numbers([member.member.0, text, length, member.layer.0])?;
        }
        Ok(())
    }

    /// Adds the hash table of the names of views.
    fn add_directory(&mut self, views: &[View]) -> Result<(), TooLarge> {
        let mut names: Vec<(Hashed<'_>, usize)> = views
            .iter()
            .enumerate()
            .map(|(index, view)| (Hashed::new(view.name.as_bytes()), index))
            .collect();
        names.sort_unstable_by_key(|(name, _)| (name.hash, name.bytes));
        let table = SlotTable::new(names.iter().map(|(name, _)| name.hash));
        self.longest = table.longest;
        self.directory.bytes.resize(4 * table.slot_count(), 0);
        for ((_, index), slot) in names.into_iter().zip(&table.slots) {
            put(&mut self.directory.bytes, 4 * slot, &le_bytes(index + 1)?);
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
        let table = SlotTable::new(symbols.iter().map(|(name, _)| name.hash));
        let (first_slot, first_word) = (self.slots.count(16), self.rows.count(4));
        self.dictionaries.numbers([
            first_slot,
            table.homes,
            table.longest,
            symbols.len(),
            first_word,
            classes,
            rows.len(),
            0,
        ])?;
        self.slots
            .bytes
            .resize(16 * (first_slot + table.slot_count()), 0);
        self.texts
            .bytes
            .reserve(symbols.iter().map(|(name, _)| name.bytes.len()).sum());
        for ((name, class), slot) in symbols.into_iter().zip(&table.slots) {
            let [text, length] = self.unshared_text(name.bytes);
            let half = name.hash as u32 as usize;
            let record = le_words([half, text, length, class + 1])?;
            put(
                &mut self.slots.bytes,
                16 * (first_slot + slot),
                record.as_flattened(),
            );
        }
        for row in rows {
            let largest = row.iter().copied().max().unwrap_or(0);
            for word in std::iter::once(largest).chain(row) {
                self.rows.bytes.extend(word.to_le_bytes());
            }
        }
        Ok(())
    }

    fn finish(self, default: Option<ViewId>, features: usize) -> Result<Tables, TooLarge> {
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
        let parts_size: usize = parts.iter().map(|(part, _)| part.bytes.len()).sum();
        let size = (HEADER_SIZE + parts_size).next_multiple_of(ALIGN as usize);
        let mut bytes = Vec::with_capacity(size);
        bytes.resize(HEADER_SIZE, 0);
        for (offset, (part, record_size)) in (COUNTS_OFFSET..).step_by(4).zip(parts) {
            put(&mut bytes, offset, &le_bytes(part.count(record_size))?);
            bytes.extend(part.bytes);
        }
        bytes.resize(size, 0);
        put(&mut bytes, 0, &MAGIC);
        put(&mut bytes, 16, &MAJOR.to_le_bytes());
        put(&mut bytes, 20, &le_bytes(HEADER_SIZE)?);
        put(&mut bytes, 24, &le_bytes(features)?);
        put(&mut bytes, 40, &(size as u64).to_le_bytes());
        let default = default.map_or(0, |view| view.0 + 1);
        put(&mut bytes, 48, &le_bytes(default)?);
        put(&mut bytes, 52, &le_bytes(self.longest)?);
        Ok(Tables { bytes })
    }
}

/// A hash table: the slot of each entry. Entries are in the order of their hashes.
struct SlotTable {
    homes: usize,
    /// Longest distance of an entry's slot from its home.
    longest: usize,
    slots: Vec<usize>,
}

impl SlotTable {
    /// A table with at most 0.6 entries for each home.
    fn new(hashes: impl ExactSizeIterator<Item = u64>) -> Self {
        let homes = (hashes.len() * 5).div_ceil(3);
        let mut slots = Vec::with_capacity(hashes.len());
        let (mut next_slot, mut longest) = (0, 0);
        for hash in hashes {
            let home = home(hash, homes);
            let slot = home.max(next_slot);
            longest = longest.max(slot - home);
            next_slot = slot + 1;
            slots.push(slot);
        }
        Self {
            homes,
            longest,
            slots,
        }
    }

    /// Number of slots, with those that are empty.
    fn slot_count(&self) -> usize {
        self.homes + self.longest
    }
}

fn le_words<const N: usize>(numbers: [usize; N]) -> Result<[[u8; 4]; N], TooLarge> {
    let mut words = [[0; 4]; N];
    for (word, number) in words.iter_mut().zip(numbers) {
        *word = le_bytes(number)?;
    }
    Ok(words)
}

fn le_bytes(number: usize) -> Result<[u8; 4], TooLarge> {
    let number = u32::try_from(number).map_err(|_| TooLarge)?;
    Ok(number.to_le_bytes())
}

/// Overwrites a field of a record.
pub fn put(record: &mut [u8], offset: usize, field: &[u8]) {
    record[offset..offset + field.len()].copy_from_slice(field);
}
