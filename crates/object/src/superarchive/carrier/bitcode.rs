//! A module of LLVM bitcode without symbols, in a wrapper that says where the module ends; the tables
//! stand behind that end, where LLVM does not look.
//!
//! `llvm-link` refuses archives with members of any other kind, and warns of modules whose triples or
//! data layouts differ. Numbers are those of `llvm/Bitcode/LLVMBitCodes.h`; how they are written is
//! told by LLVM's "Bitcode File Format".

use super::ALIGN;

/// A module for the target that another module is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bitcode {
    /// What LLVM reads of it, a multiple of four bytes.
    module: Vec<u8>,
}

/// The name of the member that is the module: 15 bytes, as many as a header holds.
pub const NAME: &str = "gpustub-view.bc";

const MAGIC: &[u8] = b"BC\xC0\xDE";
/// Little-endian, as all numbers of the wrapper.
const WRAPPER: u32 = 0x0B17_C0DE;
const WRAPPER_SIZE: u64 = 20;

const END_BLOCK: u64 = 0;
const ENTER_BLOCK: u64 = 1;
const UNABBREVIATED: u64 = 3;

const MODULE_BLOCK: u64 = 8;
const IDENTIFICATION_BLOCK: u64 = 13;
/// In the block of identification.
const STRING: u64 = 1;
const EPOCH: u64 = 2;
/// In the block of a module.
const VERSION: u64 = 1;
const TRIPLE: u64 = 2;
const DATA_LAYOUT: u64 = 3;

/// Whether a file is a module of bitcode.
pub fn is_bitcode(data: &[u8]) -> bool {
    unwrapped(data).is_some_and(|module| module.starts_with(MAGIC))
}

fn unwrapped(data: &[u8]) -> Option<&[u8]> {
    let word = |at: usize| Some(u32::from_le_bytes(data.get(at..at + 4)?.try_into().ok()?));
    if word(0)? != WRAPPER {
        return Some(data);
    }
    let (at, size) = (word(8)? as usize, word(12)? as usize);
    data.get(at..)?.get(..size)
}

impl Bitcode {
    /// For the target of a module; `None` if this is none, or none whose target can be read.
    pub fn of(data: &[u8]) -> Option<Self> {
        let module = unwrapped(data)?.strip_prefix(MAGIC)?;
        let (triple, layout) = target(module)?;
        let mut bits = Writer::default();
        bits.block(IDENTIFICATION_BLOCK, |block| {
            block.record(STRING, b"gpustub");
            block.record(EPOCH, &[0]);
        });
        bits.block(MODULE_BLOCK, |block| {
            block.record(VERSION, &[2]);
            block.record(TRIPLE, &triple);
            block.record(DATA_LAYOUT, &layout);
        });
        let module = [MAGIC, &bits.bytes].concat();
        Some(Self { module })
    }

    /// Where the module begins in a file at this offset of the archive.
    fn module_at(&self, at: u64) -> u64 {
        let end = at + WRAPPER_SIZE + self.module.len() as u64;
        WRAPPER_SIZE + end.next_multiple_of(ALIGN) - end
    }

    fn head_size(&self, at: u64) -> u64 {
        self.module_at(at) + self.module.len() as u64
    }

    /// The size of the file at this offset of the archive. LLVM wants a multiple of four.
    pub fn size(&self, at: u64, blob_size: u64) -> u64 {
        (self.head_size(at) + blob_size).next_multiple_of(4)
    }

    /// The bytes before the tables.
    pub fn head(&self, at: u64) -> Vec<u8> {
        let module_at = self.module_at(at);
        let mut bytes = Vec::new();
        // The second is the wrapper's version, the last a processor that only Darwin names.
        for word in [WRAPPER, 0, module_at as u32, self.module.len() as u32, 0] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.resize(module_at as usize, 0);
        bytes.extend(&self.module);
        bytes
    }

    /// The bytes behind the tables.
    pub fn tail(&self, at: u64, blob_size: u64) -> Vec<u8> {
        let end = self.head_size(at) + blob_size;
        vec![0; (self.size(at, blob_size) - end) as usize]
    }
}

/// The triple and the data layout of a module, behind the magic. LLVM writes both without
/// abbreviations, and before it defines any.
fn target(module: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let mut bits = Reader {
        bytes: module,
        at: 0,
    };
    loop {
        // The width of abbreviations outside of all blocks is two.
        if bits.fixed(2)? != ENTER_BLOCK {
            return None;
        }
        let (block, width, end) = bits.enter()?;
        if block == MODULE_BLOCK {
            return in_module(&mut bits, width);
        }
        bits.at = end;
    }
}

fn in_module(bits: &mut Reader<'_>, width: u32) -> Option<(Vec<u8>, Vec<u8>)> {
    let mut triple = Vec::new();
    loop {
        match bits.fixed(width)? {
            ENTER_BLOCK => bits.at = bits.enter()?.2,
            UNABBREVIATED => {
                let (code, length) = (bits.variable(6)?, bits.variable(6)?);
                let mut values = (0..length).map(|_| Some(bits.variable(6)? as u8));
                match code {
                    TRIPLE => triple = values.collect::<Option<_>>()?,
                    DATA_LAYOUT => return Some((triple, values.collect::<Option<_>>()?)),
                    _ => values.try_for_each(|value| value.map(drop))?,
                }
            }
            _ => return None,
        }
    }
}

/// Bits, the lowest of each byte first.
struct Reader<'a> {
    bytes: &'a [u8],
    /// In bits.
    at: usize,
}

impl Reader<'_> {
    fn fixed(&mut self, width: u32) -> Option<u64> {
        let mut value = 0;
        for bit in 0..width {
            let byte = self.bytes.get(self.at / 8)?;
            value |= u64::from(byte >> (self.at % 8) & 1) << bit;
            self.at += 1;
        }
        Some(value)
    }

    /// In chunks of this width, the upper bit of each saying that another follows.
    fn variable(&mut self, width: u32) -> Option<u64> {
        let more = 1 << (width - 1);
        let mut value = 0;
        for chunk in 0..64 / (width - 1) {
            let bits = self.fixed(width)?;
            value |= (bits & (more - 1)) << (chunk * (width - 1));
            if bits & more == 0 {
                return Some(value);
            }
        }
        None
    }

    /// A block's number, the width of its abbreviations, and where it ends.
    fn enter(&mut self) -> Option<(u64, u32, usize)> {
        let (block, width) = (self.variable(8)?, self.variable(4)?);
        let width = u32::try_from(width).ok().filter(|width| *width <= 32)?;
        self.at = self.at.next_multiple_of(32);
        let words = self.fixed(32)? as usize;
        let end = words.checked_mul(32)?.checked_add(self.at)?;
        Some((block, width, end))
    }
}

/// As [`Reader`], the other way.
#[derive(Default)]
struct Writer {
    bytes: Vec<u8>,
    /// Of the last byte.
    used: u32,
}

/// The width of abbreviations in blocks that are written.
const WIDTH: u32 = 3;

impl Writer {
    fn fixed(&mut self, value: u64, width: u32) {
        for bit in 0..width {
            if self.used == 0 {
                self.bytes.push(0);
            }
            if let Some(last) = self.bytes.last_mut() {
                *last |= ((value >> bit & 1) as u8) << self.used;
            }
            self.used = (self.used + 1) % 8;
        }
    }

    fn variable(&mut self, mut value: u64, width: u32) {
        let more = 1 << (width - 1);
        while value >= more {
            self.fixed(value & (more - 1) | more, width);
            value >>= width - 1;
        }
        self.fixed(value, width);
    }

    fn align(&mut self) {
        self.used = 0;
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    /// A block outside of all others.
    fn block(&mut self, block: u64, contents: impl FnOnce(&mut Self)) {
        self.fixed(ENTER_BLOCK, 2);
        self.variable(block, 8);
        self.variable(WIDTH.into(), 4);
        self.align();
        let start = self.bytes.len() + 4;
        self.fixed(0, 32);
        contents(self);
        self.fixed(END_BLOCK, WIDTH);
        self.align();
        let words = (self.bytes.len() - start) / 4;
        self.bytes[start - 4..start].copy_from_slice(&(words as u32).to_le_bytes());
    }

    fn record(&mut self, code: u64, values: &[u8]) {
        self.fixed(UNABBREVIATED, WIDTH);
        self.variable(code, 6);
        self.variable(values.len() as u64, 6);
        for &value in values {
            self.variable(value.into(), 6);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A module for a target, as LLVM begins it.
    fn module(triple: &[u8], layout: &[u8]) -> Vec<u8> {
        let mut bits = Writer::default();
        bits.block(IDENTIFICATION_BLOCK, |block| block.record(STRING, b"LLVM"));
        bits.block(MODULE_BLOCK, |block| {
            block.record(TRIPLE, triple);
            block.record(DATA_LAYOUT, layout);
        });
        [MAGIC, &bits.bytes].concat()
    }

    #[test]
    fn a_file_has_the_target_of_another_and_its_tables_where_they_should_be() {
        let layout = b"e-p:64:64-p1:64:64-A5-G1-ni:7\xFF".repeat(9);
        let other = module(b"amdgcn-amd-amdhsa", &layout);
        let bitcode = Bitcode::of(&other).unwrap();
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
                assert_eq!(Bitcode::of(&head), Some(bitcode.clone()));
            }
        }
        let found = target(&other[4..]).unwrap();
        assert_eq!(found, (b"amdgcn-amd-amdhsa".to_vec(), layout));
    }

    #[test]
    fn what_is_cut_has_no_target() {
        let whole = module(b"triple", b"layout");
        let end = whole.len() - 8;
        for size in 0..end {
            assert_eq!(Bitcode::of(&whole[..size]), None, "{size}");
        }
        for at in 4..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 0xFF;
            // Whatever comes of it: no panic, and nothing without end.
            let _ = Bitcode::of(&changed);
        }
    }
}
