//! The headers of an ELF file (gABI, "ELF Header", "Program Header", "Sections"), of both classes and byte orders.

use object::elf::{FileType, Machine, PT_LOAD, ProgramType, SHT_NOBITS, SectionType};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};
use object::{Endianness, ReadRef};

use super::source::Source;
use crate::error::Problem;

/// Fields of the ELF header.
#[derive(Debug, Clone)]
pub(crate) struct Header {
    pub(crate) ident: [u8; 16],
    pub(crate) kind: FileType,
    pub(crate) machine: Machine,
    pub(crate) version: u32,
    pub(crate) entry: u64,
    pub(crate) phoff: u64,
    pub(crate) phentsize: u16,
    pub(crate) phnum: u16,
    pub(crate) shoff: u64,
    pub(crate) shentsize: u16,
    pub(crate) shnum: u16,
}

/// A program header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) kind: ProgramType,
    pub(crate) flags: u32,
    pub(crate) offset: u64,
    pub(crate) vaddr: u64,
    pub(crate) paddr: u64,
    pub(crate) filesz: u64,
    pub(crate) memsz: u64,
    pub(crate) align: u64,
}

/// A section header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) name: u32,
    pub(crate) kind: SectionType,
    pub(crate) flags: u64,
    pub(crate) addr: u64,
    pub(crate) offset: u64,
    pub(crate) size: u64,
    pub(crate) link: u32,
    pub(crate) info: u32,
    pub(crate) align: u64,
    pub(crate) entsize: u64,
}

/// All headers. Those that cannot be read are `None`.
pub(super) struct Headers {
    pub(super) endian: Endianness,
    pub(super) header: Header,
    pub(super) segments: Option<Vec<Segment>>,
    pub(super) sections: Option<Vec<Section>>,
    /// Index of the section with the names of sections.
    pub(super) names: Option<usize>,
}

impl Headers {
    pub(super) fn read<Elf: FileHeader<Endian = Endianness>>(
        source: Source<'_>,
    ) -> Result<Self, Problem> {
        let header: &Elf = source
            .read_at(0)
            .map_err(|()| Problem::Truncated("ELF header"))?;
        if !header.is_supported() {
            return Err(Problem::Malformed("invalid ELF identification"));
        }
        let endian = header
            .endian()
            .map_err(|_| Problem::Malformed("byte order is neither little nor big"))?;
        let ident = source.bytes(0, 16).and_then(|ident| ident.first_chunk());
        Ok(Self {
            endian,
            header: Header {
                ident: ident.copied().unwrap_or_default(),
                kind: header.e_type(endian),
                machine: header.e_machine(endian),
                version: header.e_version(endian),
                entry: header.e_entry(endian).into(),
                phoff: header.e_phoff(endian).into(),
                phentsize: header.e_phentsize(endian),
                phnum: header.e_phnum(endian),
                shoff: header.e_shoff(endian).into(),
                shentsize: header.e_shentsize(endian),
                shnum: header.e_shnum(endian),
            },
            segments: match header.program_headers(endian, source) {
                Ok(headers) => Some(headers.iter().map(|h| Segment::read(h, endian)).collect()),
                Err(_) => None,
            },
            sections: match header.section_headers(endian, source) {
                Ok(headers) => Some(headers.iter().map(|h| Section::read(h, endian)).collect()),
                Err(_) => None,
            },
            names: match header.shstrndx(endian, source) {
                Ok(index) => Some(index as usize),
                Err(_) => None,
            },
        })
    }
}

impl Segment {
    fn read<S: ProgramHeader<Endian = Endianness>>(header: &S, endian: Endianness) -> Self {
        Self {
            kind: header.p_type(endian),
            flags: header.p_flags(endian).0,
            offset: header.p_offset(endian).into(),
            vaddr: header.p_vaddr(endian).into(),
            paddr: header.p_paddr(endian).into(),
            filesz: header.p_filesz(endian).into(),
            memsz: header.p_memsz(endian).into(),
            align: header.p_align(endian).into(),
        }
    }

    pub(crate) fn is_load(&self) -> bool {
        self.kind == PT_LOAD
    }

    /// The part of the file; `None` if the file ends before.
    pub(crate) fn data<'d>(&self, source: Source<'d>) -> Option<&'d [u8]> {
        source.read_bytes_at(self.offset, self.filesz).ok()
    }
}

impl Section {
    fn read<S: SectionHeader<Endian = Endianness>>(header: &S, endian: Endianness) -> Self {
        Self {
            name: header.sh_name(endian),
            kind: header.sh_type(endian),
            flags: header.sh_flags(endian).0,
            addr: header.sh_addr(endian).into(),
            offset: header.sh_offset(endian).into(),
            size: header.sh_size(endian).into(),
            link: header.sh_link(endian),
            info: header.sh_info(endian),
            align: header.sh_addralign(endian).into(),
            entsize: header.sh_entsize(endian).into(),
        }
    }

    /// The part of the file, which is empty for `.bss`; `None` if the file ends before.
    pub(crate) fn data<'d>(&self, source: Source<'d>) -> Option<&'d [u8]> {
        match self.kind {
            SHT_NOBITS => Some(&[]),
            _ => source.read_bytes_at(self.offset, self.size).ok(),
        }
    }
}
