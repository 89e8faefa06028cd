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
    fn module_offset(&self, file_offset: u64) -> u64 {
        let end = file_offset + WRAPPER_SIZE + self.module.len() as u64;
        WRAPPER_SIZE + end.next_multiple_of(ALIGN) - end
    }

    fn head_size(&self, file_offset: u64) -> u64 {
        self.module_offset(file_offset) + self.module.len() as u64
    }

    /// The size of the file at this offset of the archive. LLVM requires a multiple of four.
    pub fn size(&self, file_offset: u64, blob_size: u64) -> u64 {
        (self.head_size(file_offset) + blob_size).next_multiple_of(4)
    }

    /// The bytes before the tables.
    pub fn head(&self, file_offset: u64) -> Vec<u8> {
        let module_offset = self.module_offset(file_offset);
        let mut bytes = Vec::new();
        // The second is the wrapper's version, the last a processor, which only Darwin sets.
        for word in [
            WRAPPER,
            0,
            module_offset as u32,
            self.module.len() as u32,
            0,
        ] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.resize(module_offset as usize, 0);
        bytes.extend(&self.module);
        bytes
    }

    /// The bytes after the tables.
    pub fn tail(&self, file_offset: u64, blob_size: u64) -> Vec<u8> {
        let end = self.head_size(file_offset) + blob_size;
        vec![0; (self.size(file_offset, blob_size) - end) as usize]
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
        let module = module(b"amdgcn-amd-amdhsa", &layout);
        let bitcode = Bitcode::for_module(&module).unwrap();
        for offset in (8..40).step_by(2) {
            for blob_size in 0..9 {
                let head = bitcode.head(offset);
                let tail = bitcode.tail(offset, blob_size);
                assert_eq!((offset + head.len() as u64) % ALIGN, 0);
                assert_eq!(
                    head.len() as u64 + blob_size + tail.len() as u64,
                    bitcode.size(offset, blob_size)
                );
                assert_eq!(bitcode.size(offset, blob_size) % 4, 0);
                assert!(is_bitcode(&head));
                assert_eq!(Bitcode::for_module(&head), Some(bitcode.clone()));
            }
        }
        assert_eq!(
            ModuleTarget::read(&module).unwrap(),
            ModuleTarget {
                triple: b"amdgcn-amd-amdhsa".to_vec(),
                data_layout: layout
            }
        );
    }

    #[test]
    fn truncated_modules_have_no_target() {
        let module = module(b"triple", b"layout");
        let end = module.len() - 8;
        for size in 0..end {
            assert_eq!(Bitcode::for_module(&module[..size]), None, "{size}");
        }
        for index in 4..module.len() {
            let mut changed = module.clone();
            changed[index] ^= 0xFF;
            // Any result is fine, except a panic or an endless loop.
            let _ = Bitcode::for_module(&changed);
        }
    }
}
