//! Verification of all tables and contents.

use crate::bytes::Bytes;
use crate::error::{Error, Part};
use crate::format::{COMPRESSED, Extension, HEADER_SIZE};
use crate::hash::hash_bytes;
use crate::slots::Slots;
use crate::super_archive::SuperArchive;
use crate::view::{Dictionary, Slot, View};

impl SuperArchive<'_> {
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
        ensure(self.is_header_valid() == Some(true), Part::Header)?;
        // Bounds the work: names share texts.
        let mut remaining_name_bytes = self.tables.header.texts.count.into();
        self.verify_contents()?;
        self.verify_dictionaries(&mut remaining_name_bytes)?;
        self.verify_lists()?;
        self.verify_layer_lists()?;
        self.verify_views()?;
        self.verify_directory(&mut remaining_name_bytes)?;
        self.verify_ordinary()
    }

    /// Checks the hash of the tables, and the padding after them.
    fn is_header_valid(&self) -> Option<bool> {
        let (blob, header) = (self.tables.store.blob, &self.tables.header);
        let fields = blob.get(0, HEADER_SIZE - 8)?;
        let parts_size = header.tables_size.checked_sub(HEADER_SIZE)?;
        let parts = blob.get(HEADER_SIZE, parts_size)?;
        let end = header.texts.end();
        Some(
            is_zero(blob, end, header.tables_size)
                && header.tables_size == end.next_multiple_of(16)
                && blob.u64(104)? == 0
                && blob.u64(HEADER_SIZE - 8)? == hash_bytes(fields.0) ^ hash_bytes(parts.0),
        )
    }

    /// Checks each contents, and that hidden ones and extensions follow one another.
    fn verify_contents(&self) -> Result<(), Error> {
        let (blob, header) = (self.tables.store.blob, &self.tables.header);
        let mut remaining_bytes = self.tables.store.archive.len();
        let mut end = header.tables_size;
        for contents in self.contents() {
            let contents = contents?;
            match contents.hidden() {
                Some((offset, bytes)) => {
                    ensure(is_zero(blob, end, offset), Part::Contents)?;
                    end = offset.saturating_add(bytes.len());
                }
                None => {
                    remaining_bytes = remaining_bytes
                        .checked_sub(contents.stored_size())
                        .ok_or(Error::Malformed(Part::Contents))?;
                }
            }
            contents.verify(header.features & COMPRESSED != 0)?;
        }
        for index in 0..header.extensions.count {
            let extension = Extension::read(blob, header, index)?;
            ensure(is_zero(blob, end, extension.offset), Part::Extensions)?;
            end = extension.offset.saturating_add(extension.data.len());
            let is_unchanged = hash_bytes(extension.data.0) == extension.hash;
            ensure(is_unchanged, Part::Extensions)?;
        }
        ensure(end == header.blob_size, Part::Contents)
    }

    fn verify_dictionaries(&self, remaining_name_bytes: &mut u64) -> Result<(), Error> {
        let (store, header) = (self.tables.store, &self.tables.header);
        let malformed = Error::Malformed(Part::Symbols);
        let (mut slots_end, mut rows_end) = (header.slots.offset, header.rows.offset);
        for index in 0..header.dictionaries.count {
            let dictionary = Dictionary::read(store, header, index).ok_or(malformed)?;
            let record = header.dictionaries.get(index).ok_or(malformed)?;
            let is_valid = dictionary.slots.start() == slots_end
                && dictionary.rows.offset == rows_end
                && store.blob.u32(record + 28) == Some(0);
            ensure(is_valid, Part::Symbols)?;
            (slots_end, rows_end) = (dictionary.slots.end(), dictionary.rows.end());
            self.verify_symbols(&dictionary, remaining_name_bytes)?;
            self.verify_rows(&dictionary)?;
        }
        let is_complete = slots_end == header.slots.end() && rows_end == header.rows.end();
        ensure(is_complete, Part::Symbols)
    }

    fn verify_symbols(
        &self,
        dictionary: &Dictionary,
        remaining_name_bytes: &mut u64,
    ) -> Result<(), Error> {
        let store = self.tables.store;
        let symbols = verify_slots(dictionary.slots, remaining_name_bytes, |offset| {
            let slot = Slot::read(store, offset).ok_or(Error::Malformed(Part::Symbols))?;
            if slot.class_plus_one == 0 {
                ensure(slot.is_zero(), Part::Symbols)?;
                return Ok(None);
            }
            ensure(slot.class_plus_one <= dictionary.classes, Part::Symbols)?;
            Ok(Some((slot.name(store)?, slot.hash)))
        })?;
        ensure(symbols == dictionary.symbols, Part::Symbols)
    }

    /// Checks that each row begins with its largest word.
    fn verify_rows(&self, dictionary: &Dictionary) -> Result<(), Error> {
        let malformed = Error::Malformed(Part::Symbols);
        let row_words = u64::from(dictionary.classes) + 1;
        let (mut stated_largest, mut largest) = (0, 0);
        for index in 0..dictionary.rows.count {
            let offset = dictionary.rows.get(index).ok_or(malformed)?;
            let word = self.tables.store.blob.u32(offset).ok_or(malformed)?;
            if u64::from(index) % row_words == 0 {
                ensure(stated_largest == largest, Part::Symbols)?;
                (stated_largest, largest) = (word, 0);
            } else {
                largest = largest.max(word);
            }
        }
        ensure(stated_largest == largest, Part::Symbols)
    }

    fn verify_lists(&self) -> Result<(), Error> {
        let header = &self.tables.header;
        let mut end = 0;
        for list in 0..header.lists.count {
            end = self
                .verify_list(list, end)
                .ok_or(Error::Malformed(Part::Members))?;
        }
        ensure(end == header.entries.count, Part::Members)
    }

    /// Checks that a list begins at an entry, and returns the end of its entries.
    fn verify_list(&self, list: u32, expected_first: u32) -> Option<u32> {
        let (store, header) = (self.tables.store, &self.tables.header);
        let record = header.lists.get(list)?;
        let (first, count) = (store.blob.u32(record)?, store.blob.u32(record + 4)?);
        let entries = header.entries.range(first, count.into())?;
        let mut layer_count = 0;
        for index in 0..count {
            let entry = entries.get(index)?;
            store.text(entry + 4)?;
            header.contents.get(store.blob.u32(entry)?)?;
            layer_count = layer_count.max(u64::from(store.blob.u32(entry + 12)?) + 1);
        }
        if first != expected_first || u64::from(store.blob.u32(record + 8)?) != layer_count {
            return None;
        }
        first.checked_add(count)
    }

    fn verify_layer_lists(&self) -> Result<(), Error> {
        let header = &self.tables.header;
        let mut end = 0;
        for list in 0..header.layer_lists.count {
            end = self
                .verify_layer_list(list, end)
                .ok_or(Error::Malformed(Part::Views))?;
        }
        ensure(end == header.layers.count, Part::Views)
    }

    /// Checks that a list begins at a layer name, and returns the end of its layer names.
    fn verify_layer_list(&self, list: u32, expected_first: u32) -> Option<u32> {
        let (store, header) = (self.tables.store, &self.tables.header);
        let record = header.layer_lists.get(list)?;
        let (first, count) = (store.blob.u32(record)?, store.blob.u32(record + 4)?);
        let names = header.layers.range(first, count.into())?;
        for index in 0..count {
            store.text(names.get(index)?)?;
        }
        if first != expected_first {
            return None;
        }
        first.checked_add(count)
    }

    fn verify_views(&self) -> Result<(), Error> {
        for index in 0..self.tables.header.views.count {
            ensure(self.is_view_valid(index) == Some(true), Part::Views)?;
        }
        Ok(())
    }

    fn is_view_valid(&self, index: u32) -> Option<bool> {
        let (store, header) = (self.tables.store, &self.tables.header);
        let record = header.views.get(index)?;
        let view = View::read(store, header, index)?;
        let list = header.lists.get(store.blob.u32(record + 16)?)?;
        let needed_layers = store.blob.u32(list + 8)?;
        let layers = u32::try_from(view.layer_count()).ok()?;
        Some(view.row_fits() && needed_layers <= layers && store.blob.u64(record + 24)? == 0)
    }

    fn verify_directory(&self, remaining_name_bytes: &mut u64) -> Result<(), Error> {
        let (store, header) = (self.tables.store, &self.tables.header);
        let malformed = Error::Malformed(Part::Views);
        let directory = Slots::new(header.directory, header.longest).ok_or(malformed)?;
        let views = verify_slots(directory, remaining_name_bytes, |offset| {
            let index_plus_one = store.blob.u32(offset).ok_or(malformed)?;
            let Some(index) = index_plus_one.checked_sub(1) else {
                return Ok(None);
            };
            let record = header.views.get(index).ok_or(malformed)?;
            let name = store.text(record).ok_or(malformed)?;
            Ok(Some((name, hash_bytes(name) as u32)))
        })?;
        ensure(views == header.views.count, Part::Views)
    }
}

fn ensure(is_valid: bool, part: Part) -> Result<(), Error> {
    if is_valid {
        Ok(())
    } else {
        Err(Error::Malformed(part))
    }
}

/// Whether a range of the blob is in it, and has only zeros.
fn is_zero(blob: Bytes<'_>, start: u64, end: u64) -> bool {
    end.checked_sub(start)
        .and_then(|size| blob.get(start, size))
        .is_some_and(|padding| padding.0.iter().all(|&byte| byte == 0))
}

/// Checks that a lookup reaches each full slot, and that no two have one name; returns their number.
/// `read_slot` returns the name in the slot at an offset, and the lower half of the name's hash. Subtracts
/// the lengths of names from `remaining_name_bytes`.
fn verify_slots<'a>(
    slots: Slots,
    remaining_name_bytes: &mut u64,
    read_slot: impl Fn(u64) -> Result<Option<(&'a [u8], u32)>, Error>,
) -> Result<u32, Error> {
    let malformed = Error::Malformed(Part::Symbols);
    let (mut full_slots, mut adjacent_slots, mut longest) = (0, 0, 0);
    let mut previous: Option<(u64, &[u8])> = None;
    for slot in 0..slots.count() {
        let offset = slots.offset(slot).ok_or(malformed)?;
        let Some((name, lower_half)) = read_slot(offset)? else {
            adjacent_slots = 0;
            continue;
        };
        *remaining_name_bytes = remaining_name_bytes
            .checked_sub(name.len() as u64)
            .ok_or(malformed)?;
        let hash = hash_bytes(name);
        let displacement = slot.checked_sub(slots.home(hash)).ok_or(malformed)?;
        // An empty slot would end the search.
        let is_reached = lower_half == hash as u32 && displacement <= adjacent_slots;
        ensure(is_reached && previous < Some((hash, name)), Part::Symbols)?;
        previous = Some((hash, name));
        longest = longest.max(displacement);
        full_slots += 1;
        adjacent_slots += 1;
    }
    ensure(longest == slots.longest(), Part::Symbols)?;
    Ok(full_slots)
}
