//! Place of new bytes: the end of the last segment, which grows over its `.bss`. No address changes.

use object::elf::{self, SHT_NOBITS};

use super::headers::{E_PHNUM, E_SHOFF, SECTION, SEGMENT};
use super::problem::EditProblem;
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

/// Place of a part of the new bytes in the edited image.
#[derive(Clone, Copy)]
pub(super) struct PlacedRange {
    pub(super) address: u64,
    pub(super) offset: u64,
    pub(super) size: u64,
}

impl Room {
    /// Place of a part that begins `start` bytes after the first new byte.
    pub(super) fn range(&self, start: u64, size: u64) -> PlacedRange {
        PlacedRange {
            address: self.address + start,
            offset: self.offset + start,
            size,
        }
    }
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
        let Some(segment) = self.segments.iter().rfind(|segment| segment.is_load()) else {
            return false;
        };
        segment.is_readable()
            && segment.memsz - segment.filesz <= MAX_ZEROS
            && (segment.flags & elf::PF_W.0 != 0 || !writable)
            && self
                .check_boundary(image, segment.offset + segment.filesz)
                .is_ok()
    }

    /// Index of the last segment to load. Segments are in the order of their addresses.
    pub(super) fn last_load(&self) -> Result<usize, EditProblem> {
        self.segments
            .iter()
            .rposition(Segment::is_load)
            .ok_or(EditProblem::Malformed("no segment to load"))
    }

    /// Makes room for `size` bytes, aligned to 16.
    pub(super) fn grow(&mut self, image: &ElfImage<'_>, size: u64) -> Result<Room, EditProblem> {
        let last_index = self.last_load()?;
        let segment = self.segments[last_index].clone();
        let end = segment.offset + segment.filesz;
        let base = segment.vaddr + segment.filesz;
        let address = (segment.vaddr + segment.memsz).next_multiple_of(16);
        let zeros = address - base;
        self.check_boundary(image, end)?;
        // Segments behind the end stay aligned to their pages.
        let unit = self
            .segments
            .iter()
            .filter(|segment| segment.is_load() && segment.offset >= end)
            .map(|segment| segment.align)
            .fold(UNIT, u64::max);
        let inserted = (zeros + size).next_multiple_of(unit);

        for segment in &mut self.segments {
            if segment.filesz != 0 && segment.offset >= end {
                segment.offset += inserted;
            }
        }
        let segment = &mut self.segments[last_index];
        segment.filesz += (zeros + size).next_multiple_of(UNIT);
        segment.memsz = segment.filesz;
        for section in &mut self.sections {
            if section.kind == SHT_NOBITS && section.flags & elf::SHF_ALLOC.0 != 0 {
                // `.tbss` has no memory in the segment; mold's sections without bytes have offset 0.
                let is_thread_local = section.flags & elf::SHF_TLS.0 != 0;
                if !is_thread_local && section.offset >= segment.offset && section.addr >= base {
                    section.offset = end + (section.addr - base);
                }
            } else if section.offset >= end {
                section.offset = section
                    .offset
                    .checked_add(inserted)
                    .ok_or(EditProblem::Truncated("sections"))?;
            }
        }
        if self.shoff >= end {
            self.shoff = self
                .shoff
                .checked_add(inserted)
                .ok_or(EditProblem::Truncated("section headers"))?;
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
    fn check_boundary(&self, image: &ElfImage<'_>, end: u64) -> Result<(), EditProblem> {
        let crosses_end = |start: u64, size: u64| start < end && end - start < size;
        if self
            .segments
            .iter()
            .any(|s| crosses_end(s.offset, s.filesz))
            || self.sections.iter().any(|section| {
                section.kind != SHT_NOBITS
                    && section.kind != elf::SHT_NULL
                    && crosses_end(section.offset, section.size)
            })
            || crosses_end(self.shoff, self.sections.len() as u64 * SECTION)
        {
            return Err(EditProblem::Layout("parts of the file overlap"));
        }
        // The kernel reads program headers from the file, the loader from memory.
        if image.header.phoff + self.segments.len() as u64 * SEGMENT > end {
            return Err(EditProblem::Layout(
                "program headers behind the last segment",
            ));
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
        for (section, old) in self.sections.iter_mut().zip(original.counted_sections()) {
            if old.kind == kind && old.addr == address && old.flags & elf::SHF_ALLOC.0 != 0 {
                update(section);
            }
        }
    }

    /// Moves the section that was at `address` in the header, if there is one.
    pub(super) fn move_section(
        &mut self,
        original: &ElfImage<'_>,
        kind: elf::SectionType,
        address: u64,
        range: PlacedRange,
    ) {
        self.update(original, kind, address, |section| {
            section.addr = range.address;
            section.offset = range.offset;
            section.size = range.size;
        });
    }

    /// Moves the dynamic section, which the loader writes to.
    pub(super) fn move_dynamic(
        &mut self,
        image: &ElfImage<'_>,
        range: PlacedRange,
    ) -> Result<(), EditProblem> {
        let old_address = image.own_dynamic_segment()?.vaddr;
        let target = self
            .segments
            .iter()
            .find(|s| s.is_load() && s.contains(range.address, range.size));
        if target.is_none_or(|segment| segment.flags & elf::PF_W.0 == 0) {
            return Err(EditProblem::Layout("the last segment is not writable"));
        }
        for segment in &mut self.segments {
            if segment.kind == elf::PT_DYNAMIC {
                segment.offset = range.offset;
                (segment.vaddr, segment.paddr) = (range.address, range.address);
                (segment.filesz, segment.memsz) = (range.size, range.size);
            }
        }
        self.move_section(image, elf::SHT_DYNAMIC, old_address, range);
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
            let headers = self.segments.iter().flat_map(Segment::write).collect();
            edits.push((image.header.phoff, headers));
        }
        if self.sections != image.counted_sections() {
            let headers = self.sections.iter().flat_map(Section::write).collect();
            edits.push((image.header.shoff, headers));
        }
        edits
    }
}
