//! The tables: `FORMAT.md` specifies the offset of each field.

use gpustub_archive::hash::hash_bytes;
use gpustub_archive::{MAGIC, MAJOR};

use crate::dedup::StoredMembers;
use crate::ids::{IndexVec, MemberId, NameId, ViewId};
use crate::names::{Name, Names};
use crate::request::{Request, View};
use crate::resolver::ResolvedView;

const HEADER_SIZE: usize = 96;
const MEMBER_SIZE: usize = 40;
const VIEW_SIZE: usize = 40;
const SLOT_SIZE: usize = 16;

/// Limit of the length of a symbol name that many views share: `FORMAT.md`, "Names".
const MAX_SHARED_NAME: u64 = 4096;

/// The alignment of the tables, and of each hidden member, from the beginning of the archive.
pub const ALIGN: u64 = 16;

/// Location of the contents of a member.
#[derive(Debug, Clone, Copy)]
pub enum MemberLocation {
    /// In the archive, as an ordinary member with this header.
    Ordinary { at: u64, header: [u8; 60] },
    /// After the tables, at this offset from their beginning.
    Hidden { at: u64 },
}

/// The tables without the locations of members, which depend on the size of the tables.
pub struct Tables {
    bytes: Vec<u8>,
    members: usize,
}

/// A number exceeds the width of its field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLarge;

impl Tables {
    /// The tables of these members and views.
    pub fn new<'r>(
        request: &'r Request<'_>,
        stored: &mut StoredMembers<'r, '_>,
        resolved: &IndexVec<ViewId, ResolvedView<'r>>,
    ) -> Result<Self, TooLarge> {
        let mut texts = Texts::new(&mut stored.names);
        let mut bytes = vec![0; HEADER_SIZE];

        let members = bytes.len();
        for (member, hash) in stored.inputs.iter().zip(stored.content_hashes.iter()) {
            let mut entry = [0; MEMBER_SIZE];
            put(&mut entry, 8, &(member.data.len() as u64).to_le_bytes());
            put(&mut entry, 16, &hash.to_le_bytes());
            put(&mut entry, 24, &texts.add(&member.name)?);
            bytes.extend(entry);
        }

        let views = bytes.len();
        bytes.resize(views + request.views.len() * VIEW_SIZE, 0);
        let (directory, directory_bits) = (bytes.len(), bits(request.views.len()));
        write_directory(&request.views, directory_bits, &mut bytes);
        for (at, (view, found)) in request.views.iter().zip(resolved.iter()).enumerate() {
            let mut entry = [0; VIEW_SIZE];
            put(&mut entry, 0, &texts.add(view.name.as_bytes())?);
            let (slots, slot_bits) = (bytes.len(), bits(found.symbols.len()));
            write_slots(found, slot_bits, &mut texts, &mut bytes)?;
            put(&mut entry, 8, &pair(slots, slot_bits as usize)?);
            put(&mut entry, 16, &number(found.symbols.len())?);
            put(&mut entry, 20, &pair(bytes.len(), found.members.len())?);
            for one in &found.members {
                bytes.extend(pair(one.member.0, one.layer.0)?);
            }
            put(&mut entry, 28, &pair(bytes.len(), view.layers.len())?);
            for &layer in &view.layers {
                bytes.extend(texts.add(request.layers[layer.0].name.as_bytes())?);
            }
            put(&mut bytes, views + at * VIEW_SIZE, &entry);
        }

        let symbols = || resolved.iter().flat_map(|view| &view.symbols);
        let names: u64 = symbols()
            .map(|symbol| texts.names[symbol.name].bytes.len() as u64)
            .sum();
        if names > texts.bytes.len() as u64 + symbols().count() as u64 * MAX_SHARED_NAME {
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
        put(&mut bytes, 40, &pair(members, stored.inputs.len())?);
        put(&mut bytes, 48, &pair(views, request.views.len())?);
        put(&mut bytes, 56, &pair(directory, directory_bits as usize)?);
        put(&mut bytes, 64, &pair(text, texts.bytes.len())?);
        let default = request.default.map_or(0, |view| view.0 + 1);
        put(&mut bytes, 72, &number(default)?);
        put(&mut bytes, 80, &(size as u64).to_le_bytes());
        Ok(Self { bytes, members })
    }

    /// Size of the tables.
    pub fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// The tables, with the locations of members.
    pub fn finish(
        mut self,
        locations: &IndexVec<MemberId, MemberLocation>,
        blob_size: u64,
        archive_size: u64,
    ) -> Vec<u8> {
        for (index, location) in locations.iter().enumerate() {
            let entry = self.members + index * MEMBER_SIZE;
            let (at, flags, header) = match location {
                MemberLocation::Ordinary { at, header } => (at, 0_u32, hash_bytes(header) as u32),
                MemberLocation::Hidden { at } => (at, 1, 0),
            };
            put(&mut self.bytes, entry, &at.to_le_bytes());
            put(&mut self.bytes, entry + 32, &flags.to_le_bytes());
            put(&mut self.bytes, entry + 36, &header.to_le_bytes());
        }
        put(&mut self.bytes, 24, &blob_size.to_le_bytes());
        put(&mut self.bytes, 32, &archive_size.to_le_bytes());
        let (header, tables) = self.bytes.split_at(HEADER_SIZE);
        let hash = hash_bytes(&header[..HEADER_SIZE - 8]) ^ hash_bytes(tables);
        put(&mut self.bytes, HEADER_SIZE - 8, &hash.to_le_bytes());
        self.bytes
    }
}

/// Names in the tables, each once.
struct Texts<'a, 'n> {
    names: &'a mut Names<'n>,
    bytes: Vec<u8>,
    /// Offset of each name that was added.
    offsets: IndexVec<NameId, Option<usize>>,
}

impl<'a, 'n> Texts<'a, 'n> {
    fn new(names: &'a mut Names<'n>) -> Self {
        Self {
            bytes: Vec::new(),
            offsets: IndexVec::from_elem(None, names.count()),
            names,
        }
    }

    /// Offset and length of a name.
    fn add(&mut self, name: &'n [u8]) -> Result<[u8; 8], TooLarge> {
        let name = self.names.intern(name);
        self.offsets.resize(self.names.count(), None);
        self.add_interned(name).map(|(_, text)| text)
    }

    /// A name, with its offset and length.
    fn add_interned(&mut self, id: NameId) -> Result<(Name<'n>, [u8; 8]), TooLarge> {
        let name = self.names[id];
        let at = *self.offsets[id].get_or_insert_with(|| {
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

/// Exponent of the number of slots for so many entries, of which at most half are full.
fn bits(entries: usize) -> u32 {
    (entries.max(1) * 2).next_power_of_two().ilog2()
}

/// Adds empty slots of this size, and returns them.
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

fn write_directory(views: &[View], bits: u32, bytes: &mut Vec<u8>) {
    let slots = add_slots(bits, 4, bytes);
    for (view, index) in views.iter().zip(1_u32..) {
        let slot = free::<4>(slots, hash_bytes(view.name.as_bytes()));
        put(slot, 0, &index.to_le_bytes());
    }
}

fn write_slots(
    view: &ResolvedView<'_>,
    bits: u32,
    texts: &mut Texts<'_, '_>,
    bytes: &mut Vec<u8>,
) -> Result<(), TooLarge> {
    let slots = add_slots(bits, SLOT_SIZE, bytes);
    for symbol in &view.symbols {
        let (name, text) = texts.add_interned(symbol.name)?;
        let slot = free::<SLOT_SIZE>(slots, name.hash);
        put(slot, 0, &((name.hash >> 32) as u32).to_le_bytes());
        put(slot, 4, &text);
        put(slot, 12, &number(symbol.member.0 + 1)?);
    }
    Ok(())
}
