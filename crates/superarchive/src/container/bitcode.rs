//! A module of LLVM bitcode without symbols, in a wrapper that contains the end of the module; the tables
//! follow that end, where LLVM does not read.
//!
//! `llvm-link` rejects archives with members of any other kind, and warns of modules whose triples or
//! data layouts differ. LLVM's "Bitcode File Format" describes the encoding.

use crate::definitions::bitcode::codes::{
    MAGIC, WRAPPER, WRAPPER_SIZE, block, identification, module as code,
};
use crate::definitions::bitcode::{ModuleTarget, Writer};
use crate::definitions::is_bitcode;
use crate::tables::ALIGN;

/// A module with the target of another module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bitcode {
    /// The part that LLVM reads, a multiple of four bytes.
    module: Vec<u8>,
}

/// The name of the member that is the module: 15 bytes, as many as a header holds.
pub const NAME: &str = "gpustub-view.bc";

impl Bitcode {
    /// A module for the target of `data`; `None` if that is no module, or its target is unreadable.
    pub fn for_module(data: &[u8]) -> Option<Self> {
        if !is_bitcode(data) {
            return None;
        }
        let target = ModuleTarget::read(data).ok()?;
        let mut bits = Writer::with_prefix(MAGIC);
        bits.plain(
            block::IDENTIFICATION,
            &[
                (identification::STRING, b"gpustub"),
                (identification::EPOCH, &[0]),
            ],
        );
        let (triple, data_layout) = (&target.triple[..], &target.data_layout[..]);
        bits.plain(
            block::MODULE,
            &[
                (code::VERSION, &[2]),
                (code::TRIPLE, triple),
                (code::DATALAYOUT, data_layout),
            ],
        );
        let module = bits.into_bytes();
        Some(Self { module })
    }

    /// Offset of the module in a file at this offset of the archive.
    fn module_at(&self, at: u64) -> u64 {
        let end = at + WRAPPER_SIZE + self.module.len() as u64;
        WRAPPER_SIZE + end.next_multiple_of(ALIGN) - end
    }

    fn head_size(&self, at: u64) -> u64 {
        self.module_at(at) + self.module.len() as u64
    }

    /// The size of the file at this offset of the archive. LLVM requires a multiple of four.
    pub fn size(&self, at: u64, blob_size: u64) -> u64 {
        (self.head_size(at) + blob_size).next_multiple_of(4)
    }

    /// The bytes before the tables.
    pub fn head(&self, at: u64) -> Vec<u8> {
        let module_at = self.module_at(at);
        let mut bytes = Vec::new();
        // The second is the wrapper's version, the last a processor, which only Darwin sets.
        for word in [WRAPPER, 0, module_at as u32, self.module.len() as u32, 0] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.resize(module_at as usize, 0);
        bytes.extend(&self.module);
        bytes
    }

    /// The bytes after the tables.
    pub fn tail(&self, at: u64, blob_size: u64) -> Vec<u8> {
        let end = self.head_size(at) + blob_size;
        vec![0; (self.size(at, blob_size) - end) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A module for a target, as LLVM begins it.
    fn module(triple: &[u8], layout: &[u8]) -> Vec<u8> {
        let mut bits = Writer::with_prefix(MAGIC);
        bits.plain(block::IDENTIFICATION, &[(identification::STRING, b"LLVM")]);
        bits.plain(
            block::MODULE,
            &[(code::TRIPLE, triple), (code::DATALAYOUT, layout)],
        );
        bits.into_bytes()
    }

    #[test]
    fn a_file_has_the_target_of_another_and_its_tables_where_they_should_be() {
        let layout = b"e-p:64:64-p1:64:64-A5-G1-ni:7\xFF".repeat(9);
        let other = module(b"amdgcn-amd-amdhsa", &layout);
        let bitcode = Bitcode::for_module(&other).unwrap();
        for at in (8..40).step_by(2) {
            for blob in 0..9 {
                let head = bitcode.head(at);
                let tail = bitcode.tail(at, blob);
                assert_eq!((at + head.len() as u64) % ALIGN, 0);
                assert_eq!(
                    head.len() as u64 + blob + tail.len() as u64,
                    bitcode.size(at, blob)
                );
                assert_eq!(bitcode.size(at, blob) % 4, 0);
                assert!(is_bitcode(&head));
                assert_eq!(Bitcode::for_module(&head), Some(bitcode.clone()));
            }
        }
        let found = ModuleTarget::read(&other).unwrap();
        let triple = b"amdgcn-amd-amdhsa".to_vec();
        let data_layout = layout;
        assert_eq!(
            found,
            ModuleTarget {
                triple,
                data_layout
            }
        );
    }

    #[test]
    fn truncated_modules_have_no_target() {
        let whole = module(b"triple", b"layout");
        let end = whole.len() - 8;
        for size in 0..end {
            assert_eq!(Bitcode::for_module(&whole[..size]), None, "{size}");
        }
        for at in 4..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 0xFF;
            // Any result is fine, except a panic or an endless loop.
            let _ = Bitcode::for_module(&changed);
        }
    }
}
