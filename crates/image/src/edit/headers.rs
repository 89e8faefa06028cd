//! The headers of a 64-bit little-endian ELF file (gABI, "ELF Header", "Program Header", "Sections").

use object::elf::{ELFMAG, FileType, Machine, PT_LOAD, ProgramType, SectionType};

use super::problem::Problem;
use super::source::{Source, u16_at, u32_at, u64_at};

/// Size of the ELF header.
pub(super) const HEADER: u64 = 64;
/// Size of a program header.
pub(super) const SEGMENT: u64 = 56;
/// Size of a section header.
pub(super) const SECTION: u64 = 64;

/// Offset of `e_phoff` in the ELF header.
pub(super) const E_PHOFF: u64 = 32;
/// Offset of `e_shoff` in the ELF header.
pub(super) const E_SHOFF: u64 = 40;

/// Offset of `e_phnum` in the ELF header.
pub(super) const E_PHNUM: u64 = 56;

/// Fields of the ELF header.
#[derive(Debug, Clone)]
pub(super) struct Header {
    pub(super) kind: FileType,
    pub(super) machine: Machine,
    pub(super) entry: u64,
    pub(super) phoff: u64,
    pub(super) phnum: u16,
    pub(super) shoff: u64,
    pub(super) shnum: u16,
}

/// A program header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) kind: ProgramType,
    pub(super) flags: u32,
    pub(super) offset: u64,
    pub(super) vaddr: u64,
    pub(super) paddr: u64,
    pub(super) filesz: u64,
    pub(super) memsz: u64,
    pub(super) align: u64,
}

/// A section header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) name: u32,
    pub(super) kind: SectionType,
    pub(super) flags: u64,
    pub(super) addr: u64,
    pub(super) offset: u64,
    pub(super) size: u64,
    pub(super) link: u32,
    pub(super) info: u32,
    pub(super) align: u64,
    pub(super) entsize: u64,
}

impl Header {
    pub(super) fn read(source: &dyn Source) -> Result<Self, Problem> {
        let magic = source.bytes(0, 4).ok_or(Problem::NotElf)?;
        if magic[..] != ELFMAG {
            return Err(Problem::NotElf);
        }
        // The identification is the same for both classes.
        let ident = source
            .bytes(0, 16)
            .ok_or(Problem::Truncated("ELF header"))?;
        // EI_CLASS, EI_DATA, EI_VERSION.
        match (ident[4], ident[5], ident[6]) {
            (1, ..) => return Err(Problem::Elf32),
            (2, 2, _) => return Err(Problem::BigEndian),
            (2, 1, 1) => {}
            _ => return Err(Problem::Malformed("invalid ELF identification")),
        }
        // EI_OSABI, System V or GNU, with the version of the ABI, and padding (glibc's `open_verify`).
        let is_known = matches!((ident[7], ident[8]), (0, 0) | (3, 0..=4));
        if !is_known || ident[9..].iter().any(|&byte| byte != 0) {
            return Err(Problem::Malformed("invalid ELF identification"));
        }
        let bytes = source.bytes(0, HEADER);
        let bytes = bytes.ok_or(Problem::Truncated("ELF header"))?;
        if u32_at(&bytes, 20) != 1 {
            return Err(Problem::Malformed("invalid ELF identification"));
        }
        let header = Self {
            kind: FileType(u16_at(&bytes, 16)),
            machine: Machine(u16_at(&bytes, 18)),
            entry: u64_at(&bytes, 24),
            phoff: u64_at(&bytes, E_PHOFF as usize),
            phnum: u16_at(&bytes, E_PHNUM as usize),
            shoff: u64_at(&bytes, E_SHOFF as usize),
            shnum: u16_at(&bytes, 60),
        };
        if header.phnum == u16::MAX {
            return Err(Problem::ManyHeaders);
        }
        let sizes = (u16_at(&bytes, 54), u16_at(&bytes, 58));
        if header.phnum != 0 && u64::from(sizes.0) != SEGMENT {
            return Err(Problem::Malformed("unexpected size of program headers"));
        }
        if header.shnum != 0 && u64::from(sizes.1) != SECTION {
            return Err(Problem::Malformed("unexpected size of section headers"));
        }
        Ok(header)
    }

    pub(super) fn segments(&self, source: &dyn Source) -> Result<Vec<Segment>, Problem> {
        let size = u64::from(self.phnum) * SEGMENT;
        let bytes = source.bytes(self.phoff, size);
        let bytes = bytes.ok_or(Problem::Truncated("program headers"))?;
        Ok(bytes
            .chunks_exact(SEGMENT as usize)
            .map(Segment::read)
            .collect())
    }

    pub(super) fn sections(&self, source: &dyn Source) -> Result<Vec<Section>, Problem> {
        let count = if self.shoff == 0 { 0 } else { self.shnum };
        let bytes = source.bytes(self.shoff, u64::from(count) * SECTION);
        // `sstrip` and packers leave the offset of removed headers.
        let bytes = match bytes {
            None if count == 0 => return Ok(Vec::new()),
            bytes => bytes.ok_or(Problem::Truncated("section headers"))?,
        };
        Ok(bytes
            .chunks_exact(SECTION as usize)
            .map(Section::read)
            .collect())
    }
}

impl Segment {
    fn read(bytes: &[u8]) -> Self {
        Self {
            kind: ProgramType(u32_at(bytes, 0)),
            flags: u32_at(bytes, 4),
            offset: u64_at(bytes, 8),
            vaddr: u64_at(bytes, 16),
            paddr: u64_at(bytes, 24),
            filesz: u64_at(bytes, 32),
            memsz: u64_at(bytes, 40),
            align: u64_at(bytes, 48),
        }
    }

    pub(super) fn write(&self) -> Vec<u8> {
        let mut bytes = self.kind.0.to_le_bytes().to_vec();
        bytes.extend(self.flags.to_le_bytes());
        for word in [
            self.offset,
            self.vaddr,
            self.paddr,
            self.filesz,
            self.memsz,
            self.align,
        ] {
            bytes.extend(word.to_le_bytes());
        }
        bytes
    }

    pub(super) fn is_load(&self) -> bool {
        self.kind == PT_LOAD
    }

    /// Offset in the file of an address range; `None` unless the segment's part of the file contains it.
    pub(super) fn file_offset(&self, address: u64, size: u64) -> Option<u64> {
        let from = address.checked_sub(self.vaddr)?;
        (from.checked_add(size)? <= self.filesz).then(|| self.offset + from)
    }

    /// Whether the segment's memory contains an address range.
    pub(super) fn contains(&self, address: u64, size: u64) -> bool {
        let from = address.checked_sub(self.vaddr);
        from.and_then(|from| from.checked_add(size))
            .is_some_and(|end| end <= self.memsz)
    }
}

impl Section {
    fn read(bytes: &[u8]) -> Self {
        Self {
            name: u32_at(bytes, 0),
            kind: SectionType(u32_at(bytes, 4)),
            flags: u64_at(bytes, 8),
            addr: u64_at(bytes, 16),
            offset: u64_at(bytes, 24),
            size: u64_at(bytes, 32),
            link: u32_at(bytes, 40),
            info: u32_at(bytes, 44),
            align: u64_at(bytes, 48),
            entsize: u64_at(bytes, 56),
        }
    }

    pub(super) fn write(&self) -> Vec<u8> {
        let mut bytes = self.name.to_le_bytes().to_vec();
        bytes.extend(self.kind.0.to_le_bytes());
        for word in [self.flags, self.addr, self.offset, self.size] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(self.link.to_le_bytes());
        bytes.extend(self.info.to_le_bytes());
        bytes.extend(self.align.to_le_bytes());
        bytes.extend(self.entsize.to_le_bytes());
        bytes
    }
}
