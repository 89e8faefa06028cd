//! The headers of a 64-bit little-endian ELF file: what the loader rejects, and their bytes.

use object::elf::ELFMAG;

use super::problem::EditProblem;
use crate::elf::{ElfImage, Header, Section, Segment, Source};

/// Size of the ELF header.
pub(super) const HEADER: u64 = 64;
/// Size of a program header.
pub(super) const SEGMENT: u64 = 56;
/// Size of a section header.
pub(super) const SECTION: u64 = 64;

/// Offset of `e_shoff` in the ELF header.
pub(super) const E_SHOFF: u64 = 40;

/// Offset of `e_phnum` in the ELF header.
pub(super) const E_PHNUM: u64 = 56;

/// Reads a 64-bit little-endian image, damaged or not.
pub(super) fn read(source: Source<'_>) -> Result<ElfImage<'_>, EditProblem> {
    if source.bytes(0, 4) != Some(&ELFMAG) {
        return Err(EditProblem::NotElf);
    }
    let ident = source.bytes(0, 16).and_then(|ident| ident.first_chunk());
    check_ident(ident.ok_or(EditProblem::Truncated("ELF header"))?)?;
    ElfImage::read(source).map_err(|problem| match problem {
        crate::Problem::Truncated(what) => EditProblem::Truncated(what),
        crate::Problem::Malformed(what) => EditProblem::Malformed(what),
        _ => EditProblem::NotElf,
    })
}

/// The identification is the same for both classes.
fn check_ident(ident: &[u8; 16]) -> Result<(), EditProblem> {
    // EI_CLASS, EI_DATA, EI_VERSION.
    match (ident[4], ident[5], ident[6]) {
        (1, ..) => return Err(EditProblem::Elf32),
        (2, 2, _) => return Err(EditProblem::BigEndian),
        (2, 1, 1) => {}
        _ => return Err(EditProblem::Malformed("invalid ELF identification")),
    }
    // EI_OSABI, System V or GNU, with the version of the ABI, and padding (glibc's `open_verify`).
    let is_known = matches!((ident[7], ident[8]), (0, 0) | (3, 0..=4));
    if !is_known || ident[9..].iter().any(|&byte| byte != 0) {
        return Err(EditProblem::Malformed("invalid ELF identification"));
    }
    Ok(())
}

impl Header {
    pub(super) fn check(&self) -> Result<(), EditProblem> {
        check_ident(&self.ident)?;
        if self.version != 1 {
            return Err(EditProblem::Malformed("invalid ELF identification"));
        }
        if self.phnum == u16::MAX {
            return Err(EditProblem::ManyHeaders);
        }
        if self.phnum != 0 && u64::from(self.phentsize) != SEGMENT {
            return Err(EditProblem::Malformed("unexpected size of program headers"));
        }
        if self.shnum != 0 && u64::from(self.shentsize) != SECTION {
            return Err(EditProblem::Malformed("unexpected size of section headers"));
        }
        Ok(())
    }
}

impl Segment {
    pub(super) fn write(&self) -> Vec<u8> {
        let mut bytes = self.kind.0.to_le_bytes().to_vec();
        bytes.extend(self.flags.to_le_bytes());
        for field in [
            self.offset,
            self.vaddr,
            self.paddr,
            self.filesz,
            self.memsz,
            self.align,
        ] {
            bytes.extend(field.to_le_bytes());
        }
        bytes
    }

    /// Offset in the file of an address range; `None` unless the segment's part of the file contains it.
    pub(super) fn file_offset(&self, address: u64, size: u64) -> Option<u64> {
        let distance = address.checked_sub(self.vaddr)?;
        (distance.checked_add(size)? <= self.filesz).then(|| self.offset + distance)
    }

    /// Whether the segment's memory contains an address range.
    pub(super) fn contains(&self, address: u64, size: u64) -> bool {
        address
            .checked_sub(self.vaddr)
            .and_then(|distance| distance.checked_add(size))
            .is_some_and(|end| end <= self.memsz)
    }
}

impl Section {
    pub(super) fn write(&self) -> Vec<u8> {
        let mut bytes = self.name.to_le_bytes().to_vec();
        bytes.extend(self.kind.0.to_le_bytes());
        for field in [self.flags, self.addr, self.offset, self.size] {
            bytes.extend(field.to_le_bytes());
        }
        bytes.extend(self.link.to_le_bytes());
        bytes.extend(self.info.to_le_bytes());
        bytes.extend(self.align.to_le_bytes());
        bytes.extend(self.entsize.to_le_bytes());
        bytes
    }
}
