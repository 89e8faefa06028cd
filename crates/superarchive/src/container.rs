//! Object format of the index member, which contains the tables and which every linker and archiver
//! skips.
//!
//! All tools keep a file of the same kind as the archive's own members, and the tail of the archive
//! symbol table, which is used if no such file is possible. Tools that rewrite the symbol table drop
//! the latter.

mod bitcode;
mod elf;
mod properties;

use bitcode::Bitcode;
use elf::{ElfKind, ElfObject};

use crate::definitions::is_bitcode;

/// Location of the tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Container {
    /// A section of an object file, which linkers omit.
    Elf(ElfObject),
    /// The end of a wrapper, after a module of bitcode.
    Bitcode(Bitcode),
    /// The tail of the archive symbol table.
    Index,
}

impl Container {
    /// The container for a default view of these members. A file is used only among files of its kind.
    pub fn for_members(members: &[&[u8]], blob_size: u64) -> Self {
        let Some(first) = members.first() else {
            return Self::Index;
        };
        let rest = &members[1..];
        if let Some(kind) = ElfKind::from_object(first) {
            if kind.holds(blob_size)
                && rest.iter().all(|member| {
                    ElfKind::from_object(member)
                        .is_some_and(|member_kind| member_kind.links_with(kind))
                })
            {
                return Self::Elf(kind.object(members));
            }
        } else if let Some(bitcode) = Bitcode::for_module(first) {
            if rest.iter().all(|member| is_bitcode(member)) {
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
    pub fn size(&self, file_offset: u64, blob_size: u64) -> u64 {
        match self {
            Self::Elf(object) => object.size(file_offset, blob_size),
            Self::Bitcode(bitcode) => bitcode.size(file_offset, blob_size),
            Self::Index => 0,
        }
    }

    /// The bytes of the file before the tables.
    pub fn head(&self, file_offset: u64, blob_size: u64) -> Vec<u8> {
        match self {
            Self::Elf(object) => object.head(file_offset, blob_size),
            Self::Bitcode(bitcode) => bitcode.head(file_offset),
            Self::Index => Vec::new(),
        }
    }

    /// The bytes of the file after the tables.
    pub fn tail(&self, file_offset: u64, blob_size: u64) -> Vec<u8> {
        match self {
            Self::Elf(object) => object.tail(file_offset, blob_size),
            Self::Bitcode(bitcode) => bitcode.tail(file_offset, blob_size),
            Self::Index => Vec::new(),
        }
    }
}
