//! Place of new bytes: the end of the last segment, which grows over its `.bss`. No address changes.

use object::elf::{self, SHT_NOBITS};

use super::headers::{E_PHNUM, E_SHOFF, SECTION, SEGMENT};
use super::problem::Problem;
use crate::elf::{ElfImage, Section, Segment};

/// Maximum size of a `.bss` that becomes zeros in the file.
const MAX_ZEROS: u64 = 1 << 20;

/// Unit by which the rest of the file moves: the largest alignment of sections that are not loaded.
const UNIT: u64 = 64;

/// Headers of an edited image.
#[derive(Clone)]
pub(super) struct Layout {
    pub(super) segments: Vec<Segment>,
    pub(super) sections: Vec<Section>,
    /// Offset of the section headers.
    pub(super) shoff: u64,
}

/// Room for new bytes.
pub(super) struct Room {
    /// Address of the first byte.
    pub(super) address: u64,
    /// Offset of the first byte in the edited file.
    pub(super) offset: u64,
    /// Offset in the original where bytes are inserted.
    pub(super) insert_at: u64,
    /// Number of zeros before the new bytes.
    pub(super) zeros: u64,
    /// Number of inserted bytes; those behind the new bytes are zeros, too.
    pub(super) inserted: u64,
}

impl Layout {
    pub(super) fn new(image: &ElfImage<'_>) -> Self {
        Self {
            segments: image.segments.clone(),
            sections: image.counted_sections().to_vec(),
            shoff: image.header.shoff,
        }
    }

    /// Whether the last segment can grow over its `.bss` without much of it in the file, is readable, and is
    /// writable if that is needed.
    pub(super) fn can_grow(&self, image: &ElfImage<'_>, writable: bool) -> bool {
        let last = self.segments.iter().rfind(|segment| segment.is_load());
        last.is_some_and(|segment| {
            let end = segment.offset + segment.filesz;
            segment.is_readable()
                && segment.memsz - segment.filesz <= MAX_ZEROS
                && (segment.flags & elf::PF_W.0 != 0 || !writable)
                && self.check_boundary(image, end).is_ok()
        })
    }

    /// Makes room for `size` bytes, aligned to 16.
    pub(super) fn grow(&mut self, image: &ElfImage<'_>, size: u64) -> Result<Room, Problem> {
        // Segments are in the order of their addresses.
        let mut loads = (0..self.segments.len()).filter(|&i| self.segments[i].is_load());
        let last = loads
            .next_back()
            .ok_or(Problem::Malformed("no segment to load"))?;
        let segment = self.segments[last].clone();
        let end = segment.offset + segment.filesz;
        let base = segment.vaddr + segment.filesz;
        let address = (segment.vaddr + segment.memsz).next_multiple_of(16);
        let zeros = address - base;
        self.check_boundary(image, end)?;
        // Segments behind the end stay aligned to their pages.
        let behind = self
            .segments
            .iter()
            .filter(|s| s.is_load() && s.offset >= end);
        let unit = behind.map(|s| s.align).fold(UNIT, u64::max);
        let inserted = (zeros + size).next_multiple_of(unit);

        for segment in &mut self.segments {
            if segment.filesz != 0 && segment.offset >= end {
                segment.offset += inserted;
            }
        }
        let segment = &mut self.segments[last];
        segment.filesz += (zeros + size).next_multiple_of(UNIT);
        segment.memsz = segment.filesz;
        for section in &mut self.sections {
            let has_flag = |flag: elf::SectionFlags| section.flags & flag.0 != 0;
            let is_bss = section.kind == SHT_NOBITS && has_flag(elf::SHF_ALLOC);
            if is_bss {
                // `.tbss` has no memory in the segment; mold's sections without bytes have offset 0.
                let is_placed = section.offset >= segment.offset && section.addr >= base;
                if is_placed && !has_flag(elf::SHF_TLS) {
                    section.offset = end + (section.addr - base);
                }
            } else if section.offset >= end {
                let moved = section.offset.checked_add(inserted);
                section.offset = moved.ok_or(Problem::Truncated("sections"))?;
            }
        }
        if self.shoff >= end {
            let moved = self.shoff.checked_add(inserted);
            self.shoff = moved.ok_or(Problem::Truncated("section headers"))?;
        }
        Ok(Room {
            address,
            offset: end + zeros,
            insert_at: end,
            zeros,
            inserted,
        })
    }

    /// Rejects a file in which the end of the last segment is inside of something else.
    fn check_boundary(&self, image: &ElfImage<'_>, end: u64) -> Result<(), Problem> {
        let crosses = |start: u64, size: u64| start < end && end - start < size;
        let segments = self.segments.iter().any(|s| crosses(s.offset, s.filesz));
        let sections = self.sections.iter();
        let mut sections = sections.filter(|s| s.kind != SHT_NOBITS && s.kind != elf::SHT_NULL);
        let count = |count: usize, size: u64| count as u64 * size;
        if segments
            || sections.any(|s| crosses(s.offset, s.size))
            || crosses(self.shoff, count(self.sections.len(), SECTION))
        {
            return Err(Problem::Layout("parts of the file overlap"));
        }
        // The kernel reads program headers from the file, the loader from memory.
        if image.header.phoff + count(self.segments.len(), SEGMENT) > end {
            return Err(Problem::Layout("program headers behind the last segment"));
        }
        Ok(())
    }

    /// Updates the header of the section that was at `address`, if there is one.
    pub(super) fn update(
        &mut self,
        original: &ElfImage<'_>,
        kind: elf::SectionType,
        address: u64,
        update: impl Fn(&mut Section),
    ) {
        for (section, was) in self.sections.iter_mut().zip(original.counted_sections()) {
            if was.kind == kind && was.addr == address && was.flags & elf::SHF_ALLOC.0 != 0 {
                update(section);
            }
        }
    }

    /// Moves the dynamic section, which the loader writes to.
    pub(super) fn move_dynamic(
        &mut self,
        image: &ElfImage<'_>,
        (address, offset, size): (u64, u64, u64),
    ) -> Result<(), Problem> {
        let old = image.own_dynamic_segment()?.vaddr;
        let target = self
            .segments
            .iter()
            .find(|s| s.is_load() && s.contains(address, size));
        if target.is_none_or(|segment| segment.flags & elf::PF_W.0 == 0) {
            return Err(Problem::Layout("the last segment is not writable"));
        }
        for segment in self
            .segments
            .iter_mut()
            .filter(|s| s.kind == elf::PT_DYNAMIC)
        {
            (segment.offset, segment.vaddr, segment.paddr) = (offset, address, address);
            (segment.filesz, segment.memsz) = (size, size);
        }
        self.update(image, elf::SHT_DYNAMIC, old, |s| {
            (s.addr, s.offset, s.size) = (address, offset, size);
        });
        Ok(())
    }

    /// The headers, in the original's places.
    pub(super) fn write(&self, image: &ElfImage<'_>) -> Vec<(u64, Vec<u8>)> {
        let mut edits = Vec::new();
        if self.shoff != image.header.shoff {
            edits.push((E_SHOFF, self.shoff.to_le_bytes().to_vec()));
        }
        if self.segments.len() != image.segments.len() {
            let count = self.segments.len() as u16;
            edits.push((E_PHNUM, count.to_le_bytes().to_vec()));
        }
        if self.segments != image.segments {
            let bytes = self.segments.iter().flat_map(Segment::write);
            edits.push((image.header.phoff, bytes.collect()));
        }
        if self.sections != image.counted_sections() {
            let bytes = self.sections.iter().flat_map(Section::write);
            edits.push((image.header.shoff, bytes.collect()));
        }
        edits
    }
}
