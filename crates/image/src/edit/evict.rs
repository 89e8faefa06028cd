//! Second layout, for images with much zero-initialised data: a segment of its own for new bytes. Its
//! program header needs a place directly behind the others, so that what was there moves into the new
//! segment, as patchelf does it. GNU strip crashes if the whole table of program headers moves instead.

use std::ops::Range;

use object::elf::{
    self, PT_GNU_PROPERTY, PT_INTERP, PT_LOAD, PT_NOTE, PT_PHDR, SHF_ALLOC, SHT_NOBITS,
};

use super::headers::SEGMENT;
use super::image::PAGE;
use super::layout::{Layout, Room};
use super::problem::EditProblem;
use super::words::SYMBOL;
use super::words::u32_at;
use crate::elf::{ElfImage, Section, Segment};

/// Tags whose tables may move: no other table and no code refers to them.
pub(super) const MOVABLE: [elf::DynamicTag; 3] = [elf::DT_GNU_HASH, elf::DT_HASH, elf::DT_SYMTAB];

/// Tags with addresses of tables.
const TABLES: [elf::DynamicTag; 14] = [
    elf::DT_GNU_HASH,
    elf::DT_HASH,
    elf::DT_SYMTAB,
    elf::DT_STRTAB,
    elf::DT_RELA,
    elf::DT_JMPREL,
    elf::DT_RELR,
    elf::DT_VERSYM,
    elf::DT_VERNEED,
    elf::DT_VERDEF,
    elf::DT_PLTGOT,
    elf::DT_PREINIT_ARRAY,
    elf::DT_INIT_ARRAY,
    elf::DT_FINI_ARRAY,
];

/// A range of the original that moves into the new segment.
#[derive(Debug, Clone)]
pub(super) struct Evicted {
    pub(super) range: Range<u64>,
    /// Address of the range.
    address: u64,
}

impl Evicted {
    /// Finds the range behind the program headers; it ends where no section or segment is cut. `symbols` is
    /// the number of symbols of the image.
    pub(super) fn find(image: &ElfImage<'_>, symbols: u64) -> Result<Self, EditProblem> {
        let no_place = EditProblem::Layout("no place for a program header");
        let start = image.header.phoff + image.segments.len() as u64 * SEGMENT;
        let load = image
            .loads()
            .find(|s| s.offset <= image.header.phoff && start <= s.offset + s.filesz)
            .ok_or(no_place.clone())?;
        let parts = FileRange::find(image, symbols).ok_or(no_place.clone())?;
        let mut end = start + SEGMENT;
        let mut is_empty = true;
        for part in parts {
            if part.end <= start || part.start >= end {
                continue;
            }
            if part.start < start || !part.may_move {
                return Err(no_place);
            }
            is_empty = false;
            end = end.max(part.end);
        }
        if end > load.offset + load.filesz {
            return Err(no_place);
        }
        // Section headers may be incomplete, too: other bytes than zeros belong to a section.
        if is_empty && !is_zero(image, start, end) {
            return Err(no_place);
        }
        let evicted = Self {
            range: start..if is_empty { start } else { end },
            address: load.vaddr + (start - load.offset),
        };
        if tables_may_move(image, evicted.address..evicted.address + (end - start)) {
            Ok(evicted)
        } else {
            Err(no_place)
        }
    }

    /// Number of bytes.
    pub(super) fn size(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// New address of a table that starts in the range, if the range moves to `new`.
    pub(super) fn moved(&self, address: u64, new: u64) -> Option<u64> {
        let offset = address.checked_sub(self.address)?;
        (offset < self.size()).then(|| new + offset)
    }
}

/// Range in the file of a section or segment.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct FileRange {
    start: u64,
    end: u64,
    may_move: bool,
}

impl FileRange {
    /// The sections and the segments inside of others, in the order of their offsets; `None` if nothing says where
    /// a table ends.
    fn find(image: &ElfImage<'_>, symbols: u64) -> Option<Vec<Self>> {
        if image.counted_sections().is_empty() {
            return None;
        }
        let mut parts = Vec::new();
        for section in image.counted_sections() {
            if !is_loaded(section) {
                continue;
            }
            // Section headers may lie.
            if image.offset_of(section.addr, section.size) != Ok(section.offset) {
                return None;
            }
            parts.push(Self {
                start: section.offset,
                end: section.offset.saturating_add(section.size),
                may_move: may_move(image, symbols, section),
            });
        }
        for segment in &image.segments {
            if segment.kind != PT_LOAD && segment.kind != PT_PHDR && segment.filesz != 0 {
                parts.push(Self {
                    start: segment.offset,
                    end: segment.offset + segment.filesz,
                    may_move: matches!(segment.kind, PT_INTERP | PT_NOTE | PT_GNU_PROPERTY),
                });
            }
        }
        parts.sort();
        Some(parts)
    }
}

/// Whether the file has only zeros in a range.
fn is_zero(image: &ElfImage<'_>, start: u64, end: u64) -> bool {
    let gap = image.source.bytes(start, end - start);
    gap.is_some_and(|bytes| bytes.iter().all(|&byte| byte == 0))
}

/// Whether all tables of the dynamic section in a range of addresses may move. The dynamic section has the tables
/// that the loader reads.
fn tables_may_move(image: &ElfImage<'_>, addresses: Range<u64>) -> bool {
    image
        .dynamic()
        .filter(|(tag, address)| TABLES.contains(tag) && addresses.contains(address))
        .all(|(tag, address)| {
            let mut sections = image.counted_sections().iter();
            MOVABLE.contains(&tag) && sections.any(|s| s.addr == address && is_loaded(s))
        })
}

fn is_loaded(section: &Section) -> bool {
    section.flags & SHF_ALLOC.0 != 0 && section.kind != SHT_NOBITS && section.size != 0
}

/// Whether a section may move: it is a note, the interpreter, or a whole table of the dynamic section, of an
/// image with this number of symbols.
fn may_move(image: &ElfImage<'_>, symbols: u64, section: &Section) -> bool {
    let is_table = |tag: elf::DynamicTag| image.tag(tag) == Some(section.addr);
    let word = |offset: u64| table_word(image, section.addr, offset).unwrap_or(0);
    match section.kind {
        elf::SHT_NOTE => true,
        elf::SHT_GNU_HASH if is_table(elf::DT_GNU_HASH) => {
            let chains = symbols.saturating_sub(word(4));
            section.size >= 16 + 8 * word(8) + 4 * (word(0) + chains)
        }
        elf::SHT_HASH if is_table(elf::DT_HASH) => section.size >= 4 * (2 + word(0) + word(4)),
        elf::SHT_DYNSYM if is_table(elf::DT_SYMTAB) => section.size >= symbols * SYMBOL,
        _ => (image.segments.iter()).any(|s| s.kind == PT_INTERP && s.vaddr == section.addr),
    }
}

/// The word at an offset of a table.
fn table_word(image: &ElfImage<'_>, table: u64, offset: u64) -> Option<u64> {
    let word = image.bytes_at(table.checked_add(offset)?, 4).ok()?;
    Some(u32_at(word, 0).into())
}

impl Layout {
    /// Adds a segment of `size` bytes at the end of the file, to which `evicted` moves, at an offset of the segment.
    pub(super) fn add_segment(
        &mut self,
        image: &ElfImage<'_>,
        size: u64,
        is_writable: bool,
        evicted: &Evicted,
        evicted_offset: u64,
    ) -> Result<Room, EditProblem> {
        let last_index = self.last_load()?;
        let align = image.loads().map(|s| s.align).fold(PAGE, u64::max);
        let length = image.source.len();
        let last = &self.segments[last_index];
        let address = (last.vaddr + last.memsz).next_multiple_of(align);
        let offset = length.next_multiple_of(align);
        // Alignments above 2 MiB are of no machine; the file would grow by as much.
        if align > 1 << 21 || self.segments.len() + 1 >= usize::from(u16::MAX) {
            return Err(EditProblem::Layout("segments have an unusual alignment"));
        }
        self.move_evicted(evicted, address + evicted_offset, offset + evicted_offset);
        let flags = if is_writable {
            elf::PF_R.0 | elf::PF_W.0
        } else {
            elf::PF_R.0
        };
        let segment = Segment {
            kind: PT_LOAD,
            flags,
            offset,
            vaddr: address,
            paddr: address,
            filesz: size,
            memsz: size,
            align,
        };
        self.segments.insert(last_index + 1, segment);
        Ok(Room {
            address,
            offset,
            insert_at: length,
            zeros: offset - length,
            inserted: offset - length + size,
        })
    }

    /// Moves the sections and segments in `evicted` to an address and an offset of the file, and makes place for
    /// a program header.
    fn move_evicted(&mut self, evicted: &Evicted, address: u64, offset: u64) {
        let range = &evicted.range;
        for section in &mut self.sections {
            if is_loaded(section) && range.contains(&section.offset) {
                let distance = section.offset - range.start;
                section.addr = address + distance;
                section.offset = offset + distance;
            }
        }
        for segment in &mut self.segments {
            if segment.kind == PT_PHDR {
                segment.filesz += SEGMENT;
                segment.memsz += SEGMENT;
            } else if segment.kind != PT_LOAD
                && segment.filesz != 0
                && range.contains(&segment.offset)
            {
                let distance = segment.offset - range.start;
                segment.offset = offset + distance;
                (segment.vaddr, segment.paddr) = (address + distance, address + distance);
            }
        }
    }
}
