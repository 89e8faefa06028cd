//! Rules for images: what the loader would reject or not survive is an error here, because an edited image must
//! load.

use object::elf::{self, DynamicTag, PT_DYNAMIC};

use super::headers::SEGMENT;
use super::machines::ELF_MACHINES;
use super::problem::EditProblem;
use crate::elf::{ElfImage, Section, Segment};

/// Smallest page of the supported machines: segments never share one.
pub(super) const PAGE: u64 = 4096;

/// Size of an entry of the dynamic section.
pub(super) const DYN: u64 = 16;

/// Maximum number of entries of a dynamic section; real ones have about 40, and one per library.
const MAX_ENTRIES: usize = 16 * 1024;

impl<'d> ElfImage<'d> {
    /// Checks the headers and the dynamic section.
    pub(super) fn check_loadable(&self) -> Result<(), EditProblem> {
        self.header.check()?;
        match self.header.kind {
            elf::ET_EXEC | elf::ET_DYN => {}
            _ => return Err(EditProblem::NotImage),
        }
        let machine = self.machine();
        if !ELF_MACHINES.contains(&machine.as_str()) {
            return Err(EditProblem::Machine(machine));
        }
        let size = u64::from(self.header.phnum) * SEGMENT;
        if self.source.bytes(self.header.phoff, size).is_none() {
            return Err(EditProblem::Truncated("program headers"));
        }
        let dynamics = self.segments.iter().filter(|s| s.kind == PT_DYNAMIC);
        match dynamics.count() {
            0 => return Err(EditProblem::Static),
            1 => {}
            _ => return Err(EditProblem::Malformed("two dynamic sections")),
        }
        let has_sections = self.header.shoff != 0 && self.header.shnum != 0;
        if has_sections && self.sections().len() != usize::from(self.header.shnum) {
            return Err(EditProblem::Truncated("section headers"));
        }
        self.check_segments()?;
        self.check_dynamic_segment()
    }

    fn check_dynamic_segment(&self) -> Result<(), EditProblem> {
        let segment = self.own_dynamic_segment()?;
        // The loader reads it at its address.
        let mapped = self.offset_of(segment.vaddr, segment.filesz);
        if mapped != Ok(segment.offset) || segment.vaddr % 8 != 0 {
            return Err(EditProblem::Malformed(
                "dynamic section is not in its segment",
            ));
        }
        let mut entries = self.dynamic_entries().take(MAX_ENTRIES);
        if entries.any(|(tag, _)| tag == elf::DT_NULL) {
            Ok(())
        } else {
            Err(EditProblem::Malformed("dynamic section is cut off"))
        }
    }

    /// The segment of the dynamic section, which an image that was checked has.
    pub(super) fn own_dynamic_segment(&self) -> Result<&Segment, EditProblem> {
        self.dynamic_segment().ok_or(EditProblem::Static)
    }

    /// The section headers that the ELF header counts. `sstrip` and packers leave the offset of removed headers, where
    /// an extended count would be read from other bytes.
    pub(super) fn counted_sections(&self) -> &[Section] {
        match self.header.shnum {
            0 => &[],
            _ => self.sections(),
        }
    }

    /// The value of a tag that must be present.
    pub(super) fn required(&self, tag: DynamicTag, what: &'static str) -> Result<u64, EditProblem> {
        self.tag(tag).ok_or(EditProblem::Malformed(what))
    }

    /// Offset in the file of an address range.
    pub(super) fn offset_of(&self, address: u64, size: u64) -> Result<u64, EditProblem> {
        self.loads()
            .filter(|segment| segment.is_readable())
            .find_map(|segment| segment.file_offset(address, size))
            .ok_or(EditProblem::Malformed(
                "dynamic section points outside the file",
            ))
    }

    /// Bytes of an address range.
    pub(super) fn bytes_at(&self, address: u64, size: u64) -> Result<&'d [u8], EditProblem> {
        let offset = self.offset_of(address, size)?;
        let bytes = self.source.bytes(offset, size);
        bytes.ok_or(EditProblem::Truncated("last segment"))
    }

    /// Address and bytes of the string table.
    pub(super) fn string_table(&self) -> Result<(u64, &'d [u8]), EditProblem> {
        let address = self.required(elf::DT_STRTAB, "no string table")?;
        let size = self.required(elf::DT_STRSZ, "no size of the string table")?;
        let bytes = self.bytes_at(address, size)?;
        if bytes.last() != Some(&0) {
            return Err(EditProblem::Malformed("string table has no end"));
        }
        Ok((address, bytes))
    }
}
