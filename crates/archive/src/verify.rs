//! Verification of all tables and contents.

use crate::error::{Error, Part};
use crate::format::{COMPRESSED, Extension, HEADER_SIZE};
use crate::hash::hash_bytes;
use crate::slots::Slots;
use crate::super_archive::SuperArchive;
use crate::view::{Dictionary, Slot, View};

fn need(sound: bool, part: Part) -> Result<(), Error> {
    if sound {
        Ok(())
    } else {
        Err(Error::Malformed(part))
    }
}

impl<'a> SuperArchive<'a> {
    /// Checks the tables and all contents against their hashes, that each symbol of each view is
    /// found, and that ordinary tools see the default view. For any bytes, the time is proportional to
    /// the size of the archive. Contents that are compressed are checked when they are decompressed.
    ///
    /// # Errors
    ///
    /// The first of these: [`Error::Malformed`] for a part of the tables, [`Error::MemberMoved`] and
    /// [`Error::HashMismatch`] for contents, [`Error::OrdinaryMembers`], [`Error::IndexChanged`] and
    /// [`Error::IndexIncomplete`] for what ordinary tools see; [`Error::UnsupportedContents`].
    pub fn verify(&self) -> Result<(), Error> {
        self.verify_hash()?;
        // Bounds the work: names share texts.
        let mut names = self.tables.header.texts.count.into();
        self.verify_contents()?;
        self.verify_dictionaries(&mut names)?;
        self.verify_lists()?;
        self.verify_views(&mut names)?;
        self.verify_ordinary()
    }

    fn verify_hash(&self) -> Result<(), Error> {
        let (blob, header) = (self.tables.store.blob, &self.tables.header);
        let hash = || {
            let size = header.tables_size.checked_sub(HEADER_SIZE)?;
            let known = blob.get(0, HEADER_SIZE - 8)?;
            let rest = blob.get(HEADER_SIZE, size)?;
            let end = header.texts.end();
            let padding = blob.get(end, header.tables_size - end)?;
            let sound = padding.0.iter().all(|&byte| byte == 0)
                && header.tables_size == end.next_multiple_of(16)
                && blob.u64(104)? == 0
                && blob.u64(HEADER_SIZE - 8)? == hash_bytes(known.0) ^ hash_bytes(rest.0);
            Some(sound)
        };
        need(hash() == Some(true), Part::Header)
    }

    /// Checks each contents, and that hidden ones and extensions follow one another.
    fn verify_contents(&self) -> Result<(), Error> {
        let (blob, header) = (self.tables.store.blob, &self.tables.header);
        let mut ordinary = self.tables.store.archive.len();
        let mut end = header.tables_size;
        let mut follow = |at: u64, size: u64, part| {
            let gap = at.checked_sub(end).and_then(|gap| blob.get(end, gap));
            let zero = gap.is_some_and(|gap| gap.0.iter().all(|&byte| byte == 0));
            end = at.saturating_add(size);
            need(zero, part)
        };
        for contents in self.contents() {
            let contents = contents?;
            match contents.hidden() {
                Some((at, bytes)) => follow(at, bytes.len(), Part::Contents)?,
                None => {
                    let left = ordinary.checked_sub(contents.stored_size());
                    need(left.is_some(), Part::Contents)?;
                    ordinary = left.unwrap_or(0);
                }
            }
            contents.verify(header.features & COMPRESSED != 0)?;
        }
        for index in 0..header.extensions.count {
            let extension = Extension::read(blob, header, index)?;
            follow(extension.at, extension.data.len(), Part::Extensions)?;
            let sound = hash_bytes(extension.data.0) == extension.hash;
            need(sound, Part::Extensions)?;
        }
        need(end == header.blob_size, Part::Contents)
    }

    fn verify_dictionaries(&self, names: &mut u64) -> Result<(), Error> {
        let (store, header) = (self.tables.store, &self.tables.header);
        let malformed = Error::Malformed(Part::Symbols);
        let (mut slots, mut rows) = (header.slots.at, header.rows.at);
        for index in 0..header.dictionaries.count {
            let one = Dictionary::read(store, header, index).ok_or(malformed)?;
            let reserved = || store.blob.u32(header.dictionaries.get(index)? + 28);
            let follows = one.slots.start() == slots && one.rows.at == rows;
            need(follows && reserved() == Some(0), Part::Symbols)?;
            (slots, rows) = (one.slots.end(), one.rows.end());
            let symbols = verify_slots(one.slots, names, |at| {
                let slot = Slot::read(store, at).ok_or(malformed)?;
                if slot.class == 0 {
                    need(slot.is_zero(), Part::Symbols)?;
                    return Ok(None);
                }
                need(slot.class <= one.classes, Part::Symbols)?;
                Ok(Some((slot.name(store)?, slot.hash)))
            })?;
            need(symbols == one.symbols, Part::Symbols)?;
            // Each row begins with its largest word.
            let (mut stated, mut largest) = (0, 0);
            for word in 0..one.rows.count {
                let at = one.rows.get(word).ok_or(malformed)?;
                let value = store.blob.u32(at).ok_or(malformed)?;
                if u64::from(word) % (u64::from(one.classes) + 1) == 0 {
                    need(stated == largest, Part::Symbols)?;
                    (stated, largest) = (value, 0);
                } else {
                    largest = largest.max(value);
                }
            }
            need(stated == largest, Part::Symbols)?;
        }
        let complete = slots == header.slots.end() && rows == header.rows.end();
        need(complete, Part::Symbols)
    }

    fn verify_lists(&self) -> Result<(), Error> {
        let (store, header) = (self.tables.store, &self.tables.header);
        let blob = store.blob;
        let mut next = 0;
        for list in 0..header.lists.count {
            let fields = || {
                let at = header.lists.get(list)?;
                let (first, count) = (blob.u32(at)?, blob.u32(at + 4)?);
                let entries = header.entries.range(first, count.into())?;
                let mut top = 0;
                for entry in 0..count {
                    let at = entries.get(entry)?;
                    store.text(at + 4)?;
                    header.contents.get(blob.u32(at)?)?;
                    top = top.max(u64::from(blob.u32(at + 12)?) + 1);
                }
                let sound = first == next && u64::from(blob.u32(at + 8)?) == top;
                next = first.checked_add(count)?;
                Some(sound)
            };
            need(fields_of(fields), Part::Members)?;
        }
        need(next == header.entries.count, Part::Members)?;
        let mut next = 0;
        for list in 0..header.layer_lists.count {
            let fields = || {
                let at = header.layer_lists.get(list)?;
                let (first, count) = (blob.u32(at)?, blob.u32(at + 4)?);
                let names = header.layers.range(first, count.into())?;
                for name in 0..count {
                    store.text(names.get(name)?)?;
                }
                let sound = first == next;
                next = first.checked_add(count)?;
                Some(sound)
            };
            need(fields_of(fields), Part::Views)?;
        }
        need(next == header.layers.count, Part::Views)
    }

    fn verify_views(&self, names: &mut u64) -> Result<(), Error> {
        let (store, header) = (self.tables.store, &self.tables.header);
        for index in 0..header.views.count {
            let fields = || {
                let at = header.views.get(index)?;
                let view = View::read(store, header, index)?;
                let list = header.lists.get(store.blob.u32(at + 16)?)?;
                let top = store.blob.u32(list + 8)?;
                let layers = u32::try_from(view.layer_count()).ok()?;
                Some(view.row_fits() && top <= layers && store.blob.u64(at + 24)? == 0)
            };
            need(fields_of(fields), Part::Views)?;
        }
        let malformed = Error::Malformed(Part::Views);
        let directory = Slots::new(header.directory, header.longest).ok_or(malformed)?;
        let count = verify_slots(directory, names, |at| {
            let word = store.blob.u32(at).ok_or(malformed)?;
            let Some(index) = word.checked_sub(1) else {
                return Ok(None);
            };
            let at = header.views.get(index).ok_or(malformed)?;
            let name = store.text(at).ok_or(malformed)?;
            Ok(Some((name, hash_bytes(name) as u32)))
        })?;
        need(count == header.views.count, Part::Views)
    }
}

fn fields_of(mut fields: impl FnMut() -> Option<bool>) -> bool {
    fields() == Some(true)
}

/// Checks that a lookup reaches each full slot, and that no two have one name; returns their number.
/// `name` returns the name in a slot, and the lower half of its hash. Subtracts the lengths of names from
/// `left`.
fn verify_slots<'a>(
    slots: Slots,
    left: &mut u64,
    name: impl Fn(u64) -> Result<Option<(&'a [u8], u32)>, Error>,
) -> Result<u32, Error> {
    let malformed = Error::Malformed(Part::Symbols);
    let (mut full, mut run, mut longest) = (0, 0, 0);
    let mut previous: Option<(u64, &[u8])> = None;
    for slot in 0..slots.count() {
        let at = slots.offset(slot).ok_or(malformed)?;
        let Some((name, half)) = name(at)? else {
            run = 0;
            continue;
        };
        *left = left.checked_sub(name.len() as u64).ok_or(malformed)?;
        let hash = hash_bytes(name);
        let distance = slot.checked_sub(slots.home(hash)).ok_or(malformed)?;
        // An empty slot would end the search.
        let sound = half == hash as u32 && distance <= run && previous < Some((hash, name));
        need(sound, Part::Symbols)?;
        previous = Some((hash, name));
        longest = longest.max(distance);
        (full, run) = (full + 1, run + 1);
    }
    need(longest == slots.longest(), Part::Symbols)?;
    Ok(full)
}
