//! What carries the tables so that every linker and archiver skips them.
//!
//! Only a file of the kind of the archive's own members is left alone by all of them, or the tail of
//! the archive's index, where there is no such file to be. Tools that write an index anew drop the
//! latter.

mod bitcode;
mod elf;

use bitcode::Bitcode;
pub use bitcode::NAME as BITCODE_NAME;
use elf::Elf;
pub use elf::NAME as ELF_NAME;

use super::Input;
use super::tables::ALIGN;
use crate::definitions::is_bitcode;

/// What carries the tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Carrier {
    /// An object file with them in a section that linkers leave out.
    Elf(Elf),
    /// A module of bitcode in a wrapper, with them behind it.
    Bitcode(Bitcode),
    /// The tail of the index.
    Index,
}

impl Carrier {
    /// The one for a default view of these members. A file is one among files of its kind only.
    pub fn of(members: &[&Input<'_>], blob_size: u64) -> Self {
        let Some(first) = members.first() else {
            return Self::Index;
        };
        let rest = &members[1..];
        if let Some(elf) = Elf::of(first.data) {
            let same = |one: &&Input<'_>| Elf::of(one.data).is_some_and(|one| one.goes_with(elf));
            if elf.holds(blob_size) && rest.iter().all(same) {
                return Self::Elf(elf);
            }
        } else if let Some(bitcode) = Bitcode::of(first.data) {
            if rest.iter().all(|one| is_bitcode(one.data)) {
                return Self::Bitcode(bitcode);
            }
        }
        Self::Index
    }

    /// The name of the member that is the file.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Elf(_) => elf::NAME,
            Self::Bitcode(_) => bitcode::NAME,
            Self::Index => "",
        }
    }

    /// The size of the file at this offset of the archive.
    pub fn size(&self, at: u64, blob_size: u64) -> u64 {
        match self {
            Self::Elf(elf) => elf.size(at, blob_size),
            Self::Bitcode(bitcode) => bitcode.size(at, blob_size),
            Self::Index => 0,
        }
    }

    /// The bytes of the file before the tables.
    pub fn head(&self, at: u64, blob_size: u64) -> Vec<u8> {
        match self {
            Self::Elf(elf) => elf.head(at, blob_size),
            Self::Bitcode(bitcode) => bitcode.head(at),
            Self::Index => Vec::new(),
        }
    }

    /// The bytes of the file behind the tables.
    pub fn tail(&self, at: u64, blob_size: u64) -> Vec<u8> {
        match self {
            Self::Elf(elf) => elf.tail(at, blob_size),
            Self::Bitcode(bitcode) => bitcode.tail(at, blob_size),
            Self::Index => Vec::new(),
        }
    }
}
