//! Copies of deflate blocks.

use std::num::NonZeroUsize;

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use gpustub_check::read::Scratch;

use super::super::MemberWriter;
use super::*;

/// Numbers as text, with a part that cannot be compressed, which deflate stores.
fn contents() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut state = 1_u64;
    for index in 0..300_000_u64 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        if (100_000..150_000).contains(&index) {
            bytes.extend(&state.to_le_bytes()[2..]);
        } else {
            bytes.extend(format!("{:x},", state >> 50).bytes());
        }
    }
    bytes
}

fn file(bytes: &[u8]) -> File {
    let mut scratch = Scratch::new().unwrap();
    scratch.write_all(bytes).unwrap();
    scratch.into_file()
}

/// A member of an archive at offset 5, and its blocks.
fn member(contents: &[u8]) -> (File, Blocks) {
    let mut encoder = DeflateEncoder::new(vec![0xff; 5], Compression::default());
    encoder.write_all(contents).unwrap();
    let archive = encoder.finish().unwrap();
    let mut blocks = Blocks::default();
    let mut unpacked = Vec::new();
    BlockReader::new(&archive[5..], 5, &mut blocks)
        .read_to_end(&mut unpacked)
        .unwrap();
    assert!(unpacked == contents);
    (file(&archive), blocks)
}

#[test]
fn reused_blocks_have_their_contents() {
    let contents = contents();
    let size = contents.len() as u64;
    let (archive, blocks) = member(&contents);
    let image = file(&contents);
    for (index, start) in (0..size / 2).step_by(40_009).enumerate() {
        let range = start..size - start / 3;
        let jobs = NonZeroUsize::MIN.saturating_add(index % 2);
        let reused = blocks.reused(&archive, &image, &range).unwrap().unwrap();
        assert!(reused.range.start >= start + WINDOW_SIZE as u64);
        assert!(reused.range.end <= range.end);
        let mut compressed = Vec::new();
        let mut writer = MemberWriter::deflated(&archive, &mut compressed, jobs);
        let mut expected = b"before".to_vec();
        writer.write_all(b"before").unwrap();
        for _ in 0..2 {
            writer.copy(&image, &blocks, &range).unwrap();
            writer.write_all(b"after").unwrap();
            expected.extend(&contents[start as usize..range.end as usize]);
            expected.extend(b"after");
        }
        let (crc, entry) = writer.finish().unwrap();
        let mut unpacked = Vec::new();
        DeflateDecoder::new(&compressed[..])
            .read_to_end(&mut unpacked)
            .unwrap();
        assert!(unpacked == expected, "{range:?}");
        let mut hasher = crate::record::Hasher::default();
        hasher.update(&expected);
        assert_eq!(entry, hasher.finish());
        let mut sum = flate2::Crc::new();
        sum.update(&expected);
        assert_eq!(crc, sum.sum());
    }
}

/// Blocks of which the image has other bytes are compressed again.
#[test]
fn other_bytes_are_not_reused() {
    let contents = contents();
    let (archive, blocks) = member(&contents);
    let image = file(&vec![b'x'; contents.len()]);
    let range = 0..contents.len() as u64;
    let reused = blocks.reused(&archive, &image, &range).unwrap();
    assert!(reused.is_none(), "{reused:?}");
}

/// Deflate data, bit by bit.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    length: usize,
}

impl Bits {
    /// Adds bits in the order of the stream.
    fn push(&mut self, bits: impl IntoIterator<Item = u8>) {
        for bit in bits {
            if self.length.is_multiple_of(8) {
                self.bytes.push(0);
            }
            *self.bytes.last_mut().unwrap() |= bit << (self.length % 8);
            self.length += 1;
        }
    }

    /// Adds a number, whose least bit is the first one.
    fn push_number(&mut self, number: u32, length: u32) {
        self.push((0..length).map(|bit| (number >> bit & 1) as u8));
    }

    fn push_stored(&mut self, contents: &[u8]) {
        self.push([0; 3]);
        self.length = self.bytes.len() * 8;
        let length = u16::try_from(contents.len()).unwrap();
        self.bytes.extend(length.to_le_bytes());
        self.bytes.extend((!length).to_le_bytes());
        self.bytes.extend(contents);
        self.length = self.bytes.len() * 8;
    }

    /// Adds a block of zeros, with codes of one bit, which ends in the bit 1 (RFC 1951, 3.2.7).
    fn push_zeros(&mut self, count: usize) {
        self.push_number(0b100, 3);
        // 257 codes of literals, one of distances; 18 lengths of lengths.
        self.push_number(0, 5);
        self.push_number(0, 5);
        self.push_number(18 - 4, 4);
        // 18 ("zeros") has one bit, 0 and 1 have two: 0, 10, 11.
        for length in [0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2] {
            self.push_number(length, 3);
        }
        self.push([1, 1]);
        for zeros in [138, 117] {
            self.push([0]);
            self.push_number(zeros - 11, 7);
        }
        self.push([1, 1, 1, 0]);
        self.push(std::iter::repeat_n(0, count));
        self.push([1]);
    }

    /// Adds a block of zeros with fixed codes, which ends in the bit 0. The last `long` bytes are 255: nine bits.
    fn push_fixed(&mut self, count: usize, long: usize) {
        self.push_number(0b010, 3);
        for _ in long..count {
            self.push([0, 0, 1, 1, 0, 0, 0, 0]);
        }
        for _ in 0..long {
            self.push([1; 9]);
        }
        self.push([0; 7]);
    }
}

/// A stored block begins at any bit, after a code that ends in 0 or 1.
#[test]
fn stored_blocks_at_any_bit_are_copied() {
    const ZEROS: usize = 20_000;
    let mut state = 1_u32;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    })
    .take(40_000)
    .collect();
    for (shift, is_fixed) in (0..8).flat_map(|shift| [(shift, false), (shift, true)]) {
        let mut bits = Bits::default();
        let mut contents = Vec::new();
        for _ in 0..12 {
            if is_fixed {
                bits.push_fixed(ZEROS, shift);
                contents.resize(contents.len() + ZEROS - shift, 0);
                contents.resize(contents.len() + shift, 255);
            } else {
                bits.push_zeros(ZEROS + shift);
                contents.resize(contents.len() + ZEROS + shift, 0);
            }
            bits.push_stored(&noise);
            contents.extend(&noise);
        }
        bits.push_number(0b011, 3);
        bits.push([0; 7]);
        let mut blocks = Blocks::default();
        let mut unpacked = Vec::new();
        BlockReader::new(&bits.bytes[..], 0, &mut blocks)
            .read_to_end(&mut unpacked)
            .unwrap();
        assert!(unpacked == contents);
        let (archive, image) = (file(&bits.bytes), file(&contents));
        for block in &blocks.0 {
            for range in [block.offset..contents.len() as u64, 0..block.offset] {
                let mut compressed = Vec::new();
                let mut writer =
                    MemberWriter::deflated(&archive, &mut compressed, NonZeroUsize::MIN);
                writer.copy(&image, &blocks, &range).unwrap();
                writer.write_all(b"after").unwrap();
                writer.finish().unwrap();
                let mut unpacked = Vec::new();
                let read = DeflateDecoder::new(&compressed[..]).read_to_end(&mut unpacked);
                let expected = [
                    &contents[range.start as usize..range.end as usize],
                    b"after",
                ]
                .concat();
                assert!(
                    read.is_ok() && unpacked == expected,
                    "shift {shift}, fixed codes {is_fixed}, {range:?}: {read:?}"
                );
            }
        }
    }
}
