//! Rules for segments: those of glibc's `_dl_map_object_from_fd`, `_dl_protect_relro` and `_dl_process_pt_note`,
//! and of the kernel's `load_elf_binary`.

use object::elf::{
    self, PF_R, PF_W, PF_X, PT_GNU_PROPERTY, PT_GNU_RELRO, PT_INTERP, PT_LOAD, PT_NOTE, PT_PHDR,
    PT_TLS,
};

use super::headers::SEGMENT;
use super::image::PAGE;
use super::problem::EditProblem;
use crate::elf::{ElfImage, Segment};

/// Upper bound of addresses: user space of x86-64 and AArch64 has at most 2^48 bytes.
const ADDRESSES: u64 = 1 << 47;

/// Lowest address of a program that is not relocated (`vm.mmap_min_addr` of Linux).
const LOWEST: u64 = 1 << 16;

/// Upper bound of thread-local data: relocations address it by signed numbers of 32 bits.
const THREAD_LOCAL: u64 = 1 << 31;

/// Upper bound of its alignment, for which the loader reserves memory.
const ALIGNMENT: u64 = 1 << 21;

impl ElfImage<'_> {
    /// Whether an address is that of code.
    pub(super) fn is_code(&self, address: u64) -> bool {
        self.loads()
            .any(|s| s.flags & PF_X.0 != 0 && s.file_offset(address, 1).is_some())
    }

    /// Whether the image can write to an address range.
    pub(super) fn is_writable(&self, address: u64, size: u64) -> bool {
        self.loads()
            .any(|s| s.flags & PF_W.0 != 0 && s.contains(address, size))
    }

    /// Whether an address range is in the image; an empty one may be at its end.
    pub(super) fn has_range(&self, address: u64, size: u64) -> bool {
        let Some(first) = self.loads().next() else {
            return false;
        };
        let image_end = self.loads().last().map_or(0, |s| s.vaddr + s.memsz);
        first.vaddr / PAGE * PAGE <= address
            && (address.checked_add(size)).is_some_and(|end| end <= image_end)
    }

    /// Whether the image names the loader that starts it.
    pub(super) fn is_program(&self) -> bool {
        self.has_segment(PT_INTERP)
    }

    /// Whether an offset is in the thread-local data, or at its end.
    pub(super) fn has_thread_local(&self, offset: u64) -> bool {
        (self.segments.iter()).any(|s| s.kind == PT_TLS && s.memsz != 0 && offset <= s.memsz)
    }

    pub(super) fn check_segments(&self) -> Result<(), EditProblem> {
        for segment in &self.segments {
            if segment.filesz == 0 && !segment.is_load() {
                continue;
            }
            let end = segment.offset.checked_add(segment.filesz);
            if end.is_none_or(|end| end > self.source.len()) {
                return Err(EditProblem::Truncated("last segment"));
            }
        }
        self.check_loads()?;
        for segment in &self.segments {
            self.check_segment(segment)?;
        }
        if self.segments.iter().filter(|s| s.kind == PT_TLS).count() > 1 {
            return Err(EditProblem::Malformed("two segments of thread-local data"));
        }
        Ok(())
    }

    fn check_loads(&self) -> Result<(), EditProblem> {
        let mut last_end = 0;
        for segment in self.loads() {
            if segment.filesz > segment.memsz {
                return Err(EditProblem::Malformed(
                    "segment is larger in the file than in memory",
                ));
            }
            if !segment.align.is_power_of_two()
                || segment.align < PAGE
                || segment.vaddr.wrapping_sub(segment.offset) % segment.align != 0
            {
                return Err(EditProblem::Malformed("segment is not aligned to its page"));
            }
            let end = segment
                .vaddr
                .checked_add(segment.memsz)
                .filter(|&end| end <= ADDRESSES)
                .ok_or(EditProblem::Malformed("segment is outside of user space"))?;
            if segment.vaddr / PAGE * PAGE < last_end {
                return Err(EditProblem::Malformed(
                    "segments overlap or are not in order",
                ));
            }
            last_end = end.next_multiple_of(PAGE);
        }
        let first = self.loads().next().map_or(0, |segment| segment.vaddr);
        if self.header.kind == elf::ET_EXEC && first < LOWEST {
            return Err(EditProblem::Malformed("segment is outside of user space"));
        }
        Ok(())
    }

    /// Checks a segment of another kind by those that are loaded.
    fn check_segment(&self, segment: &Segment) -> Result<(), EditProblem> {
        let &Segment {
            vaddr,
            filesz,
            memsz,
            align,
            ..
        } = segment;
        let is_valid = match segment.kind {
            PT_LOAD => true,
            // The loader reads program headers at this address, if there is one.
            PT_PHDR => {
                self.offset_of(vaddr, self.segments.len() as u64 * SEGMENT) == Ok(self.header.phoff)
            }
            PT_INTERP => {
                let path = self.source.bytes(segment.offset, filesz);
                path.is_some_and(|path| path.len() > 1 && path.last() == Some(&0))
            }
            PT_TLS if memsz != 0 => {
                filesz <= memsz
                    && memsz < THREAD_LOCAL
                    && (align == 0 || align.is_power_of_two() && align <= ALIGNMENT)
                    && (filesz == 0 || self.offset_of(vaddr, filesz) == Ok(segment.offset))
            }
            PT_GNU_RELRO => memsz == 0 || self.loads().any(|s| s.protects(vaddr, memsz)),
            // Properties are read from memory, and only with this alignment.
            PT_NOTE | PT_GNU_PROPERTY if align == 8 && memsz != 0 => {
                self.offset_of(vaddr, memsz) == Ok(segment.offset)
            }
            _ => true,
        };
        if is_valid {
            return Ok(());
        }
        Err(EditProblem::Malformed(match segment.kind {
            PT_PHDR => "program headers are at another address than declared",
            PT_INTERP => "path of the loader has no end",
            PT_TLS => "invalid segment of thread-local data",
            PT_GNU_RELRO => "data to protect is outside of its segment",
            _ => "notes are outside of their segment",
        }))
    }
}

impl Segment {
    pub(super) fn is_readable(&self) -> bool {
        self.flags & PF_R.0 != 0
    }

    /// Whether the pages of a range, whose last page counts only if it is full, are pages of the segment.
    fn protects(&self, address: u64, size: u64) -> bool {
        let Some(end) = address.checked_add(size) else {
            return false;
        };
        let pages = self.vaddr / PAGE * PAGE..=(self.vaddr + self.memsz).next_multiple_of(PAGE);
        pages.contains(&address) && pages.contains(&(end / PAGE * PAGE))
    }
}
