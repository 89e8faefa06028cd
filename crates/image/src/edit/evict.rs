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
use super::problem::Problem;
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
    pub(super) fn find(image: &ElfImage<'_>, symbols: u64) -> Result<Self, Problem> {
        let none = Problem::Layout("no place for a program header");
        let start = image.header.phoff + image.segments.len() as u64 * SEGMENT;
        let mut loads = image.loads();
        let load = loads
            .find(|s| s.offset <= image.header.phoff && start <= s.offset + s.filesz)
            .ok_or(none.clone())?;
        // Without section headers nothing says where a table ends.
        if image.counted_sections().is_empty() {
            return Err(none);
        }
        let sections = image.counted_sections().iter().filter(|s| is_loaded(s));
        // Section headers may lie.
        let is_true = |s: &Section| image.offset_of(s.addr, s.size) == Ok(s.offset);
        if !sections.clone().all(is_true) {
            return Err(none);
        }
        let sections = sections.map(|s| {
            (
                s.offset,
                s.offset.saturating_add(s.size),
                may_move(image, symbols, s),
            )
        });
        let segments = image.segments.iter();
        let segments = segments.filter(|s| s.kind != PT_LOAD && s.kind != PT_PHDR && s.filesz != 0);
        let movable = |s: &Segment| matches!(s.kind, PT_INTERP | PT_NOTE | PT_GNU_PROPERTY);
        let segments = segments.map(|s| (s.offset, s.offset + s.filesz, movable(s)));
        let mut parts: Vec<_> = sections.chain(segments).collect();
        parts.sort();
        let mut end = start + SEGMENT;
        let mut is_empty = true;
        for (from, to, movable) in parts {
            if to <= start || from >= end {
                continue;
            }
            if from < start || !movable {
                return Err(none);
            }
            is_empty = false;
            end = end.max(to);
        }
        if end > load.offset + load.filesz {
            return Err(none);
        }
        // Section headers may be incomplete, too: other bytes than zeros belong to a section.
        let zeros = |bytes: &[u8]| bytes.iter().all(|&byte| byte == 0);
        let gap = image.source.bytes(start, end - start);
        if is_empty && !gap.is_some_and(zeros) {
            return Err(none);
        }
        let evicted = Self {
            range: start..if is_empty { start } else { end },
            address: load.vaddr + (start - load.offset),
        };
        // The dynamic section has the tables that the loader reads.
        let place = evicted.address..evicted.address + (end - start);
        let is_inside = |address: u64| place.contains(&address);
        let tables = image.dynamic().filter(|(tag, _)| TABLES.contains(tag));
        for (tag, address) in tables.filter(|(_, address)| is_inside(*address)) {
            let is_section = image
                .counted_sections()
                .iter()
                .any(|s| s.addr == address && is_loaded(s));
            if !MOVABLE.contains(&tag) || !is_section {
                return Err(none);
            }
        }
        Ok(evicted)
    }

    /// Number of bytes.
    pub(super) fn size(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// New address of a table that starts in the range, if the range moves to `new`.
    pub(super) fn moved(&self, address: u64, new: u64) -> Option<u64> {
        let at = address.checked_sub(self.address)?;
        (at < self.size()).then(|| new + at)
    }
}

fn is_loaded(section: &Section) -> bool {
    section.flags & SHF_ALLOC.0 != 0 && section.kind != SHT_NOBITS && section.size != 0
}

/// Whether a section may move: it is a note, the interpreter, or a whole table of the dynamic section, of an
/// image with this number of symbols.
fn may_move(image: &ElfImage<'_>, symbols: u64, section: &Section) -> bool {
    let is = |tag: elf::DynamicTag| image.tag(tag) == Some(section.addr);
    let word = |at: u64| {
        let bytes = section
            .addr
            .checked_add(at)
            .map(|address| image.bytes_at(address, 4));
        bytes
            .and_then(Result::ok)
            .map_or(0, |bytes| u64::from(u32_at(bytes, 0)))
    };
    match section.kind {
        elf::SHT_NOTE => true,
        elf::SHT_GNU_HASH if is(elf::DT_GNU_HASH) => {
            let chains = symbols.saturating_sub(word(4));
            section.size >= 16 + 8 * word(8) + 4 * (word(0) + chains)
        }
        elf::SHT_HASH if is(elf::DT_HASH) => section.size >= 4 * (2 + word(0) + word(4)),
        elf::SHT_DYNSYM if is(elf::DT_SYMTAB) => section.size >= symbols * SYMBOL,
        _ => {
            let is_interpreter = |s: &Segment| s.kind == PT_INTERP && s.vaddr == section.addr;
            image.segments.iter().any(is_interpreter)
        }
    }
}

impl Layout {
    /// Adds a segment of `size` bytes at the end of the file, to which `evicted` moves, at offset `at`.
    pub(super) fn add_segment(
        &mut self,
        image: &ElfImage<'_>,
        size: u64,
        is_writable: bool,
        evicted: &Evicted,
        at: u64,
    ) -> Result<Room, Problem> {
        let mut loads = (0..self.segments.len()).filter(|&i| self.segments[i].is_load());
        let last = loads
            .next_back()
            .ok_or(Problem::Malformed("no segment to load"))?;
        let align = image.loads().map(|s| s.align).fold(PAGE, u64::max);
        let length = image.source.len();
        let memory = self.segments[last].vaddr + self.segments[last].memsz;
        let (address, offset) = (
            memory.next_multiple_of(align),
            length.next_multiple_of(align),
        );
        // Alignments above 2 MiB are of no machine; the file would grow by as much.
        if align > 1 << 21 || self.segments.len() + 1 >= usize::from(u16::MAX) {
            return Err(Problem::Layout("segments have an unusual alignment"));
        }
        let range = &evicted.range;
        for section in self.sections.iter_mut().filter(|s| is_loaded(s)) {
            if range.contains(&section.offset) {
                let from = section.offset - range.start;
                (section.addr, section.offset) = (address + at + from, offset + at + from);
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
                let from = segment.offset - range.start;
                segment.offset = offset + at + from;
                (segment.vaddr, segment.paddr) = (address + at + from, address + at + from);
            }
        }
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
        self.segments.insert(last + 1, segment);
        Ok(Room {
            address,
            offset,
            insert_at: length,
            zeros: offset - length,
            inserted: offset - length + size,
        })
    }
}
