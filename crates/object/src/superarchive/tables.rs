//! The tables: `FORMAT.md` gives each field its place.

use gpustub_archive::{MAGIC, MAJOR, SHARED_NAME, hash};

use super::layers::Flat;
use super::names::{Name, Names};
use super::unique::Unique;
use super::{Request, View};

const HEADER_SIZE: usize = 96;
const MEMBER_SIZE: usize = 40;
const VIEW_SIZE: usize = 40;
const SLOT_SIZE: usize = 16;

/// The alignment of the tables, and of each hidden member, from the beginning of the archive.
pub const ALIGN: u64 = 16;

/// Where the contents of a member are.
#[derive(Debug, Clone, Copy)]
pub enum Place {
    /// In the archive, as an ordinary member with this header.
    Ordinary { at: u64, header: [u8; 60] },
    /// Behind the tables, from where these begin.
    Hidden { at: u64 },
}

/// The tables, but for the places of members, which follow from how long the tables are.
pub struct Tables {
    bytes: Vec<u8>,
    members: usize,
}

/// More than the format's numbers can say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLarge;

impl Tables {
    pub fn of<'r>(
        request: &'r Request<'_>,
        unique: &mut Unique<'r, '_>,
        flat: &[Flat<'r>],
    ) -> Result<Self, TooLarge> {
        let mut texts = Texts::of(&mut unique.names);
        let mut bytes = vec![0; HEADER_SIZE];

        let members = bytes.len();
        for (member, hash) in unique.members.iter().zip(&unique.hashes) {
            let mut entry = [0; MEMBER_SIZE];
            put(&mut entry, 8, &(member.data.len() as u64).to_le_bytes());
            put(&mut entry, 16, &hash.to_le_bytes());
            put(&mut entry, 24, &texts.add(&member.name)?);
            bytes.extend(entry);
        }

        let views = bytes.len();
        bytes.resize(views + request.views.len() * VIEW_SIZE, 0);
        let (directory, directory_bits) = (bytes.len(), bits(request.views.len()));
        directory_of(&request.views, directory_bits, &mut bytes);
        for (at, (view, flat)) in request.views.iter().zip(flat).enumerate() {
            let mut entry = [0; VIEW_SIZE];
            put(&mut entry, 0, &texts.add(view.name.as_bytes())?);
            let (slots, slot_bits) = (bytes.len(), bits(flat.symbols.len()));
            slots_of(flat, slot_bits, &mut texts, &mut bytes)?;
            put(&mut entry, 8, &pair(slots, slot_bits as usize)?);
            put(&mut entry, 16, &number(flat.symbols.len())?);
            put(&mut entry, 20, &pair(bytes.len(), flat.members.len())?);
            for &(member, layer) in &flat.members {
                bytes.extend(pair(member, layer)?);
            }
            put(&mut entry, 28, &pair(bytes.len(), view.layers.len())?);
            for &layer in &view.layers {
                bytes.extend(texts.add(request.layers[layer].name.as_bytes())?);
            }
            put(&mut bytes, views + at * VIEW_SIZE, &entry);
        }

        let symbols = || flat.iter().flat_map(|flat| &flat.symbols);
        let names: u64 = symbols()
            .map(|(name, _)| texts.names.get(*name).bytes.len() as u64)
            .sum();
        if names > texts.bytes.len() as u64 + symbols().count() as u64 * SHARED_NAME {
            return Err(TooLarge);
        }

        let text = bytes.len();
        let size = (text + texts.bytes.len()).next_multiple_of(ALIGN as usize);
        bytes.reserve_exact(size - text);
        bytes.extend(&texts.bytes);
        bytes.resize(size, 0);

        put(&mut bytes, 0, &MAGIC);
        put(&mut bytes, 16, &MAJOR.to_le_bytes());
        put(&mut bytes, 20, &number(HEADER_SIZE)?);
        put(&mut bytes, 40, &pair(members, unique.members.len())?);
        put(&mut bytes, 48, &pair(views, request.views.len())?);
        put(&mut bytes, 56, &pair(directory, directory_bits as usize)?);
        put(&mut bytes, 64, &pair(text, texts.bytes.len())?);
        let default = request.default.map_or(0, |index| index + 1);
        put(&mut bytes, 72, &number(default)?);
        put(&mut bytes, 80, &(size as u64).to_le_bytes());
        Ok(Self { bytes, members })
    }

    pub fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// The tables, where members have these places.
    pub fn finish(mut self, places: &[Place], blob_size: u64, archive_size: u64) -> Vec<u8> {
        for (index, place) in places.iter().enumerate() {
            let entry = self.members + index * MEMBER_SIZE;
            let (at, flags, header) = match place {
                Place::Ordinary { at, header } => (at, 0_u32, hash::of(header) as u32),
                Place::Hidden { at } => (at, 1, 0),
            };
            put(&mut self.bytes, entry, &at.to_le_bytes());
            put(&mut self.bytes, entry + 32, &flags.to_le_bytes());
            put(&mut self.bytes, entry + 36, &header.to_le_bytes());
        }
        put(&mut self.bytes, 24, &blob_size.to_le_bytes());
        put(&mut self.bytes, 32, &archive_size.to_le_bytes());
        let (header, tables) = self.bytes.split_at(HEADER_SIZE);
        let hash = hash::of(&header[..HEADER_SIZE - 8]) ^ hash::of(tables);
        put(&mut self.bytes, HEADER_SIZE - 8, &hash.to_le_bytes());
        self.bytes
    }
}

/// Texts, each once.
struct Texts<'a, 'n> {
    names: &'a mut Names<'n>,
    bytes: Vec<u8>,
    /// Where each name is, by its number.
    at: Vec<Option<usize>>,
}

impl<'a, 'n> Texts<'a, 'n> {
    fn of(names: &'a mut Names<'n>) -> Self {
        Self {
            bytes: Vec::new(),
            at: vec![None; names.count()],
            names,
        }
    }

    /// Where a name is, and how long.
    fn add(&mut self, name: &'n [u8]) -> Result<[u8; 8], TooLarge> {
        let number = self.names.number(name);
        self.at.resize(self.names.count(), None);
        self.add_number(number).map(|(_, text)| text)
    }

    /// The name of that number, with where it is.
    fn add_number(&mut self, number: usize) -> Result<(Name<'n>, [u8; 8]), TooLarge> {
        let name = self.names.get(number);
        let at = *self.at[number].get_or_insert_with(|| {
            self.bytes.extend(name.bytes);
            self.bytes.len() - name.bytes.len()
        });
        Ok((name, pair(at, name.bytes.len())?))
    }
}

fn number(number: usize) -> Result<[u8; 4], TooLarge> {
    let number = u32::try_from(number).map_err(|_| TooLarge)?;
    Ok(number.to_le_bytes())
}

fn pair(first: usize, second: usize) -> Result<[u8; 8], TooLarge> {
    let mut pair = [0; 8];
    put(&mut pair, 0, &number(first)?);
    put(&mut pair, 4, &number(second)?);
    Ok(pair)
}

fn put(bytes: &mut [u8], at: usize, part: &[u8]) {
    bytes[at..at + part.len()].copy_from_slice(part);
}

/// The power of two of slots for so many entries: at most half of them are full.
fn bits(entries: usize) -> u32 {
    (entries.max(1) * 2).next_power_of_two().ilog2()
}

/// Adds empty slots of this size; gives them.
fn add_slots(bits: u32, size: usize, bytes: &mut Vec<u8>) -> &mut [u8] {
    let at = bytes.len();
    bytes.resize(at + (size << bits), 0);
    &mut bytes[at..]
}

/// The first free slot of a hash. The last four bytes of a slot are zero while it is empty.
fn free<const SIZE: usize>(slots: &mut [u8], hash: u64) -> &mut [u8] {
    let mask = slots.len() / SIZE - 1;
    let mut slot = hash as usize & mask;
    while slots[slot * SIZE..][SIZE - 4..SIZE] != [0; 4] {
        slot = (slot + 1) & mask;
    }
    &mut slots[slot * SIZE..][..SIZE]
}

fn directory_of(views: &[View], bits: u32, bytes: &mut Vec<u8>) {
    let slots = add_slots(bits, 4, bytes);
    for (view, index) in views.iter().zip(1_u32..) {
        let slot = free::<4>(slots, hash::of(view.name.as_bytes()));
        put(slot, 0, &index.to_le_bytes());
    }
}

fn slots_of(
    flat: &Flat<'_>,
    bits: u32,
    texts: &mut Texts<'_, '_>,
    bytes: &mut Vec<u8>,
) -> Result<(), TooLarge> {
    let slots = add_slots(bits, SLOT_SIZE, bytes);
    for &(name, member) in &flat.symbols {
        let (name, text) = texts.add_number(name)?;
        let slot = free::<SLOT_SIZE>(slots, name.hash);
        put(slot, 0, &((name.hash >> 32) as u32).to_le_bytes());
        put(slot, 4, &text);
        put(slot, 12, &number(member + 1)?);
    }
    Ok(())
}
