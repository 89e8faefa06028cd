//! An object file with the tables in a section that linkers omit.

use object::elf::{
    ELFMAG, ET_REL, FileHeader32, FileHeader64, SHF_ALLOC, SHF_EXCLUDE, SHT_NOTE, SHT_PROGBITS,
    SHT_STRTAB,
};
use object::read::elf::FileHeader;
use object::{Endianness, ReadRef};

use super::properties;
use crate::definitions::elf::is_64;
use crate::tables::ALIGN;

/// The kind of an object file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ElfKind {
    wide: bool,
    big: bool,
    /// `e_ident` after the version: the system's ABI and its version.
    abi: [u8; 2],
    machine: u16,
    /// `e_flags`. Linkers reject files of one machine with different flags.
    flags: u32,
}

/// The name of the member that is the object file.
pub const NAME: &str = "gpustub-views.o";

const SECTION_NAMES: &[u8] = b"\0.gpustub\0.note.GNU-stack\0.shstrtab\0.note.gnu.property\0";
/// Sections without the note of properties, which is the last.
const SECTIONS: u16 = 4;

/// An object file of a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ElfObject {
    kind: ElfKind,
    /// Contents of the note of properties.
    note: Vec<u8>,
}

impl ElfKind {
    /// The kind of an object file; `None` for any other file.
    pub fn from_object(bytes: &[u8]) -> Option<Self> {
        if !bytes.starts_with(&ELFMAG) {
            None
        } else if is_64(bytes).ok()? {
            Self::read::<FileHeader64<Endianness>>(bytes)
        } else {
            Self::read::<FileHeader32<Endianness>>(bytes)
        }
    }

    fn read<Header: FileHeader<Endian = Endianness>>(bytes: &[u8]) -> Option<Self> {
        let header: &Header = bytes.read_at(0).ok()?;
        let endian = header.endian().ok()?;
        (header.e_type(endian) == ET_REL).then(|| Self {
            wide: header.is_type_64(),
            big: endian == Endianness::Big,
            abi: [header.e_ident().os_abi.0, header.e_ident().abi_version],
            machine: header.e_machine(endian).0,
            flags: header.e_flags(endian).0,
        })
    }

    /// Whether object files of both kinds can be linked together, flags aside.
    pub fn links_with(self, kind: Self) -> bool {
        (self.wide, self.machine) == (kind.wide, kind.machine)
    }

    /// Whether its offsets can address so many bytes.
    pub fn holds(self, size: u64) -> bool {
        self.wide || size < u32::MAX.into()
    }

    /// An object file of this kind, to be linked with these.
    pub fn object(self, members: &[&[u8]]) -> ElfObject {
        let note = properties::merged(members, self.wide, self.big, self.machine);
        ElfObject { kind: self, note }
    }

    fn header_size(self) -> u16 {
        if self.wide { 64 } else { 52 }
    }

    fn section_size(self) -> u16 {
        if self.wide { 64 } else { 40 }
    }

    /// Size of the part before the tables in an object file at this offset of the archive.
    fn head_size(self, file_offset: u64) -> u64 {
        let end = file_offset + u64::from(self.header_size());
        end.next_multiple_of(ALIGN) - file_offset
    }
}

impl ElfObject {
    fn note_offset(&self, file_offset: u64, blob_size: u64) -> u64 {
        let end = self.kind.head_size(file_offset) + blob_size;
        if self.note.is_empty() {
            end
        } else {
            end.next_multiple_of(8)
        }
    }

    fn names_offset(&self, file_offset: u64, blob_size: u64) -> u64 {
        self.note_offset(file_offset, blob_size) + self.note.len() as u64
    }

    /// Offset of the section headers.
    fn sections_offset(&self, file_offset: u64, blob_size: u64) -> u64 {
        let names_end = self.names_offset(file_offset, blob_size) + SECTION_NAMES.len() as u64;
        names_end.next_multiple_of(8)
    }

    fn section_count(&self) -> u16 {
        SECTIONS + u16::from(!self.note.is_empty())
    }

    /// The size of an object file at this offset of the archive.
    pub fn size(&self, file_offset: u64, blob_size: u64) -> u64 {
        self.sections_offset(file_offset, blob_size)
            + u64::from(self.section_count() * self.kind.section_size())
    }

    /// The bytes before the tables.
    pub fn head(&self, file_offset: u64, blob_size: u64) -> Vec<u8> {
        let kind = self.kind;
        let mut file = Fields::new(kind);
        let class = if kind.wide { 2 } else { 1 };
        let order = if kind.big { 2 } else { 1 };
        file.bytes.extend(ELFMAG);
        file.bytes.extend([class, order, 1]);
        file.bytes.extend(kind.abi);
        file.bytes.resize(16, 0);
        file.half(1); // ET_REL
        file.half(kind.machine);
        file.word(1);
        file.long(0);
        file.long(0);
        file.long(self.sections_offset(file_offset, blob_size));
        file.word(kind.flags);
        for half in [
            kind.header_size(),
            0,
            0,
            kind.section_size(),
            self.section_count(),
            SECTIONS - 1,
        ] {
            file.half(half);
        }
        file.bytes.resize(kind.head_size(file_offset) as usize, 0);
        file.bytes
    }

    /// The bytes after the tables.
    pub fn tail(&self, file_offset: u64, blob_size: u64) -> Vec<u8> {
        let head = self.kind.head_size(file_offset);
        let start = head + blob_size;
        let (note_offset, names_offset) = (
            self.note_offset(file_offset, blob_size),
            self.names_offset(file_offset, blob_size),
        );
        let mut file = Fields::new(self.kind);
        file.bytes.resize((note_offset - start) as usize, 0);
        file.bytes.extend(&self.note);
        file.bytes.extend(SECTION_NAMES);
        file.bytes.resize(
            (self.sections_offset(file_offset, blob_size) - start) as usize,
            0,
        );
        // SHF_EXCLUDE keeps the tables out of programs that link the whole archive; without the second
        // section, GNU ld assumes that the file requires an executable stack.
        let (plain, names) = (SHT_PROGBITS.0, SECTION_NAMES.len() as u64);
        file.section(0, 0, 0, 0, 0, 1);
        file.section(1, plain, SHF_EXCLUDE.0, head, blob_size, 1);
        file.section(10, plain, 0, names_offset, 0, 1);
        file.section(26, SHT_STRTAB.0, 0, names_offset, names, 1);
        if !self.note.is_empty() {
            let (size, align) = (self.note.len() as u64, if self.kind.wide { 8 } else { 4 });
            file.section(36, SHT_NOTE.0, SHF_ALLOC.0, note_offset, size, align);
        }
        file.bytes
    }
}

/// Numbers in the width and order of an object file.
struct Fields {
    kind: ElfKind,
    bytes: Vec<u8>,
}

impl Fields {
    fn new(kind: ElfKind) -> Self {
        let bytes = Vec::new();
        Self { kind, bytes }
    }

    fn put<const N: usize>(&mut self, mut little: [u8; N]) {
        if self.kind.big {
            little.reverse();
        }
        self.bytes.extend(little);
    }

    fn half(&mut self, number: u16) {
        self.put(number.to_le_bytes());
    }

    fn word(&mut self, number: u32) {
        self.put(number.to_le_bytes());
    }

    /// An address, an offset or a size.
    fn long(&mut self, number: u64) {
        if self.kind.wide {
            self.put(number.to_le_bytes());
        } else {
            self.word(number as u32);
        }
    }

    fn section(&mut self, name: u32, kind: u32, flags: u64, offset: u64, size: u64, align: u64) {
        self.word(name);
        self.word(kind);
        self.long(flags);
        self.long(0);
        self.long(offset);
        self.long(size);
        self.word(0);
        self.word(0);
        self.long(align);
        self.long(0);
    }
}
