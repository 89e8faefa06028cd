//! Places of the parts of an edited image: the old ones where they fit, else new bytes.

use object::elf::{self, SHT_GNU_VERNEED, SHT_STRTAB};

use super::dynamic::Dynamic;
use super::evict::{Evicted, MOVABLE};
use super::image::DYN;
use super::inspect::Details;
use super::layout::{Layout, PlacedRange, Room};
use super::patch::{Patch, Piece};
use super::problem::EditProblem;
use super::strings::NewStrings;
use super::symtab::moved_symbols;
use crate::elf::ElfImage;

/// The parts of an edited image that may need new bytes.
pub(super) struct Parts<'t> {
    pub(super) dynamic: Dynamic,
    pub(super) strings: NewStrings<'t>,
    /// Number of libraries of the version needs.
    pub(super) need_count: usize,
    /// Table of the version needs; empty in an image without versions.
    pub(super) needs: Vec<u8>,
    /// Edits in the original's places.
    pub(super) replaced: Vec<(u64, Vec<u8>)>,
}

/// Puts the parts into their old places where they fit, and the others into new bytes.
pub(super) fn place(
    image: &ElfImage<'_>,
    before: &Details<'_>,
    mut parts: Parts<'_>,
) -> Result<Patch, EditProblem> {
    let mut layout = Layout::new(image);
    let mut block = Block::default();
    let mut replaced = parts.replaced;

    let segment = image.own_dynamic_segment()?;
    let dynamic_moves = parts.dynamic.size() > segment.filesz;
    let evicted = if layout.can_grow(image, dynamic_moves) {
        None
    } else {
        let evicted = Evicted::find(image, before.symbols.len() as u64)?;
        Some((block.push_evicted(&evicted), evicted))
    };
    let strings_size = parts.strings.size();
    let strings_start = push_strings(image, parts.strings, &mut block)?;
    let needs_size = parts.needs.len() as u64;
    let needs_start = place_needs(before, parts.needs, &mut block, &mut replaced);
    // Spare entries, as linkers leave them for such edits.
    let dynamic_size = if dynamic_moves {
        parts.dynamic.size() + 3 * DYN
    } else {
        segment.filesz
    };
    let dynamic_start = dynamic_moves.then(|| block.reserve(dynamic_size));

    let dynamic = &mut parts.dynamic;
    let room = match evicted {
        _ if strings_start.or(needs_start).or(dynamic_start).is_none() => None,
        Some((start, evicted)) => {
            let room = layout.add_segment(image, block.size, dynamic_moves, &evicted, start)?;
            move_evicted(image, &evicted, room.address + start, dynamic);
            Some(room)
        }
        None => Some(layout.grow(image, block.size)?),
    };
    if let (Some(room), Some(start)) = (&room, strings_start) {
        move_strings(image, &mut layout, dynamic, room.range(start, strings_size))?;
    }
    let needs_range = room
        .as_ref()
        .zip(needs_start)
        .map(|(room, start)| room.range(start, needs_size));
    update_needs(image, &mut layout, dynamic, parts.need_count, needs_range);
    if let (Some(room), Some(start)) = (&room, dynamic_start) {
        layout.move_dynamic(image, room.range(start, dynamic_size))?;
        block.fill(start, vec![Piece::New(dynamic.write(dynamic_size))]);
    } else {
        replaced.push((segment.offset, dynamic.write(dynamic_size)));
    }
    replaced.extend(moved_symbols(image, &layout.sections));
    replaced.extend(layout.write(image));
    let inserted = match room {
        Some(room) => (room.insert_at, block.finish(&room)),
        None => (image.source.len(), Vec::new()),
    };
    Patch::new(image.source.len(), replaced, inserted)
}

/// Adds the string table to the block if it has new strings, and returns where it starts.
fn push_strings(
    image: &ElfImage<'_>,
    strings: NewStrings<'_>,
    block: &mut Block,
) -> Result<Option<u64>, EditProblem> {
    if strings.added.is_empty() {
        return Ok(None);
    }
    let (address, bytes) = image.string_table()?;
    let size = bytes.len() as u64;
    let offset = image.offset_of(address, size)?;
    let pieces = vec![
        Piece::Copy(offset..offset + size),
        Piece::New(strings.added),
    ];
    Ok(Some(block.push(pieces)))
}

/// Adds the table of the version needs to the block, unless it fits into its old place, and returns where it starts.
fn place_needs(
    before: &Details<'_>,
    table: Vec<u8>,
    block: &mut Block,
    replaced: &mut Vec<(u64, Vec<u8>)>,
) -> Option<u64> {
    let old_needs = before.needs.as_ref()?;
    if table.len() > old_needs.size() {
        return Some(block.push(vec![Piece::New(table)]));
    }
    replaced.push((old_needs.offset, table));
    None
}

/// Sets the addresses of the tables in the evicted range, which moves to `address`.
fn move_evicted(image: &ElfImage<'_>, evicted: &Evicted, address: u64, dynamic: &mut Dynamic) {
    for tag in MOVABLE {
        let old_address = image.tag(tag);
        if let Some(new_address) = old_address.and_then(|old| evicted.moved(old, address)) {
            dynamic.set(tag, new_address);
        }
    }
}

/// Records the new place of the string table.
fn move_strings(
    image: &ElfImage<'_>,
    layout: &mut Layout,
    dynamic: &mut Dynamic,
    range: PlacedRange,
) -> Result<(), EditProblem> {
    let (old_address, _) = image.string_table()?;
    dynamic.set(elf::DT_STRTAB, range.address);
    dynamic.set(elf::DT_STRSZ, range.size);
    layout.move_section(image, SHT_STRTAB, old_address, range);
    Ok(())
}

/// Records the number of version needs, and the new place of their table if it moves.
fn update_needs(
    image: &ElfImage<'_>,
    layout: &mut Layout,
    dynamic: &mut Dynamic,
    count: usize,
    range: Option<PlacedRange>,
) {
    let old_address = image.tag(elf::DT_VERNEED).unwrap_or(0);
    layout.update(image, SHT_GNU_VERNEED, old_address, |section| {
        section.info = count as u32
    });
    if let Some(range) = range {
        dynamic.set(elf::DT_VERNEED, range.address);
        layout.move_section(image, SHT_GNU_VERNEED, old_address, range);
    }
}

/// New bytes: parts in the order of their offsets.
#[derive(Default)]
struct Block {
    size: u64,
    parts: Vec<(u64, Vec<Piece>)>,
}

impl Block {
    /// Adds a part, and returns its offset.
    fn push(&mut self, pieces: Vec<Piece>) -> u64 {
        let offset = self.reserve(pieces.iter().map(Piece::len).sum());
        self.fill(offset, pieces);
        offset
    }

    /// Adds an evicted range as the first part, and returns its offset.
    fn push_evicted(&mut self, evicted: &Evicted) -> u64 {
        // Tables keep their alignment, which is 16 at most. Not at the segment's start: llvm-strip 14 places
        // one of two segments of the same offset by the other, and aligns it to no page.
        let offset = 16 + evicted.range.start % 16;
        self.size = offset + evicted.size();
        self.fill(offset, vec![Piece::Copy(evicted.range.clone())]);
        offset
    }

    /// Offset of a new part, which [`fill`](Self::fill) adds.
    fn reserve(&mut self, size: u64) -> u64 {
        let offset = self.size.next_multiple_of(16);
        self.size = offset + size;
        offset
    }

    fn fill(&mut self, offset: u64, pieces: Vec<Piece>) {
        self.parts.push((offset, pieces));
    }

    /// The bytes to insert.
    fn finish(self, room: &Room) -> Vec<Piece> {
        let mut pieces = vec![zeros(room.zeros)];
        let mut end = 0;
        for (offset, part) in self.parts {
            pieces.push(zeros(offset - end));
            end = offset + part.iter().map(Piece::len).sum::<u64>();
            pieces.extend(part);
        }
        pieces.push(zeros(room.inserted - room.zeros - end));
        pieces
    }
}

fn zeros(count: u64) -> Piece {
    Piece::New(vec![0; count as usize])
}
