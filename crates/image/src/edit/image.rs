//! An image, as the loader reads it: program headers and the dynamic section. What the loader would
//! reject or not survive is an error here, because an edited image must load.

use std::borrow::Cow;

use object::elf::{
    self, DynamicTag, EM_AARCH64, EM_LOONGARCH, EM_PPC64, EM_RISCV, EM_X86_64, PT_DYNAMIC,
};

use super::headers::{Header, Section, Segment};
use super::problem::Problem;
use super::source::{Source, u64_at};
use crate::machine::machine_name;

/// Smallest page of the supported machines: segments never share one.
pub(super) const PAGE: u64 = 4096;

/// Size of an entry of the dynamic section.
pub(super) const DYN: u64 = 16;

/// Maximum number of entries of a dynamic section; real ones have about 40, and one per library.
const ENTRIES: u64 = 16 * 1024;

/// A parsed image.
pub(super) struct Image<'s> {
    pub(super) source: &'s dyn Source,
    pub(super) header: Header,
    pub(super) segments: Vec<Segment>,
    pub(super) sections: Vec<Section>,
    /// Entries of the dynamic section before `DT_NULL`.
    pub(super) dynamic: Vec<(DynamicTag, u64)>,
    /// Index of `PT_DYNAMIC`.
    pub(super) dynamic_segment: usize,
}

impl<'s> Image<'s> {
    pub(super) fn read(source: &'s dyn Source) -> Result<Self, Problem> {
        let header = Header::read(source)?;
        match header.kind {
            elf::ET_EXEC | elf::ET_DYN => {}
            _ => return Err(Problem::NotImage),
        }
        match header.machine {
            EM_X86_64 | EM_AARCH64 | EM_RISCV | EM_PPC64 | EM_LOONGARCH => {}
            machine => return Err(Problem::Machine(machine_name(machine, true, true))),
        }
        let segments = header.segments(source)?;
        let mut dynamics = (0..segments.len()).filter(|&i| segments[i].kind == PT_DYNAMIC);
        let dynamic_segment = dynamics.next().ok_or(Problem::Static)?;
        if dynamics.next().is_some() {
            return Err(Problem::Malformed("two dynamic sections"));
        }
        let mut image = Self {
            source,
            sections: header.sections(source)?,
            header,
            segments,
            dynamic: Vec::new(),
            dynamic_segment,
        };
        image.check_segments()?;
        image.read_dynamic()?;
        Ok(image)
    }

    pub(super) fn loads(&self) -> impl Iterator<Item = &Segment> {
        self.segments.iter().filter(|segment| segment.is_load())
    }

    fn read_dynamic(&mut self) -> Result<(), Problem> {
        let segment = &self.segments[self.dynamic_segment];
        let cut = Problem::Malformed("dynamic section is cut off");
        // The loader reads it at its address.
        let mapped = self.offset_of(segment.vaddr, segment.filesz);
        if mapped != Ok(segment.offset) || segment.vaddr % 8 != 0 {
            return Err(Problem::Malformed("dynamic section is not in its segment"));
        }
        let size = segment.filesz.min(ENTRIES * DYN);
        let bytes = self.source.bytes(segment.offset, size).ok_or(cut.clone())?;
        for entry in bytes.chunks_exact(DYN as usize) {
            match DynamicTag(u64_at(entry, 0) as i64) {
                elf::DT_NULL => return Ok(()),
                tag => self.dynamic.push((tag, u64_at(entry, 8))),
            }
        }
        Err(cut)
    }

    /// Values of a tag of the dynamic section.
    pub(super) fn tags(&self, tag: DynamicTag) -> impl Iterator<Item = u64> {
        let entries = self.dynamic.iter().filter(move |entry| entry.0 == tag);
        entries.map(|entry| entry.1)
    }

    /// The value of a tag. Of repeated entries the last one counts, as in glibc's `elf_get_dynamic_info`.
    pub(super) fn tag(&self, tag: DynamicTag) -> Option<u64> {
        self.tags(tag).last()
    }

    /// The value of a tag that must be present.
    pub(super) fn required(&self, tag: DynamicTag, what: &'static str) -> Result<u64, Problem> {
        self.tag(tag).ok_or(Problem::Malformed(what))
    }

    /// Offset in the file of an address range.
    pub(super) fn offset_of(&self, address: u64, size: u64) -> Result<u64, Problem> {
        self.loads()
            .filter(|segment| segment.is_readable())
            .find_map(|segment| segment.file_offset(address, size))
            .ok_or(Problem::Malformed(
                "dynamic section points outside the file",
            ))
    }

    /// Bytes of an address range.
    pub(super) fn bytes_at(&self, address: u64, size: u64) -> Result<Cow<'s, [u8]>, Problem> {
        let offset = self.offset_of(address, size)?;
        let bytes = self.source.bytes(offset, size);
        bytes.ok_or(Problem::Truncated("last segment"))
    }

    /// Address and bytes of the string table.
    pub(super) fn strings(&self) -> Result<(u64, Cow<'s, [u8]>), Problem> {
        let address = self.required(elf::DT_STRTAB, "no string table")?;
        let size = self.required(elf::DT_STRSZ, "no size of the string table")?;
        let bytes = self.bytes_at(address, size)?;
        if bytes.last() != Some(&0) {
            return Err(Problem::Malformed("string table has no end"));
        }
        Ok((address, bytes))
    }
}
