//! Object formats, by the first bytes of a file.

use super::bitcode::codes::{MAGIC, WRAPPER};
use super::{spirv, wasm};

/// A format of files whose definitions can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Elf,
    Bitcode,
    MachO,
    Coff,
    BigCoff,
    Import,
    Wasm,
    SpirV,
}

/// `ClassID` of objects with more than 65,279 sections (winnt.h, `ANON_OBJECT_HEADER_BIGOBJ`).
const BIG_COFF_CLASS: [u8; 16] = [
    0xC7, 0xA1, 0xBA, 0xD1, 0xEE, 0xBA, 0xA9, 0x4B, 0xAF, 0x20, 0xFA, 0xF6, 0x6A, 0xA4, 0xDC, 0xB8,
];
const BIG_COFF_CLASS_OFFSET: usize = 12;

impl Format {
    /// Detects the format, also one whose cargo feature is disabled: its members would otherwise count
    /// as files without symbols.
    pub fn detect(data: &[u8]) -> Option<Self> {
        match data {
            [0x7F, b'E', b'L', b'F', ..] => return Some(Self::Elf),
            _ if data.starts_with(MAGIC) || data.starts_with(&WRAPPER.to_le_bytes()) => {
                return Some(Self::Bitcode);
            }
            _ if data.starts_with(wasm::MAGIC) => return Some(Self::Wasm),
            [a, b, c, d, ..]
                if [
                    u32::from_le_bytes([*a, *b, *c, *d]),
                    u32::from_be_bytes([*a, *b, *c, *d]),
                ]
                .contains(&spirv::MAGIC) =>
            {
                return Some(Self::SpirV);
            }
            // No object of the other formats is shorter, and two bytes are weak evidence.
            _ if data.len() < 16 => return None,
            _ => {}
        }
        match data {
            [0xFE, 0xED, 0xFA, 0xCE | 0xCF, ..] | [0xCE | 0xCF, 0xFA, 0xED, 0xFE, ..] => {
                Some(Self::MachO)
            }
            // `Machine`: Thumb-2, ARM64, ARM64EC, PowerPC, x86 and x86-64 (PE format, "Machine types").
            [0xC4 | 0x4C, 0x01, ..]
            | [0x64, 0xAA | 0x86, ..]
            | [0x41, 0xA6, ..]
            | [0xF0..=0xF2, 0x01, ..] => Some(Self::Coff),
            // `Sig1` and `Sig2` of short import objects and of big objects, then the version.
            [0, 0, 0xFF, 0xFF, 0, 0, ..] => Some(Self::Import),
            [0, 0, 0xFF, 0xFF, 2, 0, ..]
                if data[BIG_COFF_CLASS_OFFSET..].starts_with(&BIG_COFF_CLASS) =>
            {
                Some(Self::BigCoff)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use object::FileKind;
    use proptest::prelude::*;

    use super::*;

    /// Format according to `object`, whose formats are all enabled in tests.
    fn as_object_does(data: &[u8]) -> Option<Format> {
        match FileKind::parse(data).ok()? {
            FileKind::MachO32 | FileKind::MachO64 => Some(Format::MachO),
            FileKind::Coff => Some(Format::Coff),
            FileKind::CoffBig => Some(Format::BigCoff),
            FileKind::CoffImport => Some(Format::Import),
            _ => None,
        }
    }

    proptest! {
        #[test]
        fn kinds_are_those_of_object(rest in proptest::collection::vec(any::<u8>(), 0..40)) {
            for first in 0..=u8::MAX {
                for second in 0..=u8::MAX {
                    let mut data = vec![first, second];
                    data.extend(&rest);
                    let format = Format::detect(&data);
                    if !matches!(format, Some(Format::Elf | Format::Bitcode | Format::Wasm | Format::SpirV)) {
                        prop_assert_eq!(format, as_object_does(&data), "{:x?}", data);
                    }
                }
            }
        }
    }

    fn macho(magic: [u8; 4]) -> Vec<u8> {
        [&magic[..], &[0; 28]].concat()
    }

    #[test]
    fn kinds_with_long_signatures_are_those_of_object() {
        let big_coff = [
            &[0, 0, 0xFF, 0xFF, 2, 0, 0x64, 0x86, 0, 0, 0, 0][..],
            &BIG_COFF_CLASS,
            &[0; 28],
        ]
        .concat();
        let mut unknown_class = big_coff.clone();
        unknown_class[20] ^= 1;
        for (data, format) in [
            (big_coff.clone(), Some(Format::BigCoff)),
            (unknown_class, None),
            (big_coff[..27].to_vec(), None),
            (
                [&[0, 0, 0xFF, 0xFF, 0, 0][..], &[0; 14]].concat(),
                Some(Format::Import),
            ),
            (macho([0xFE, 0xED, 0xFA, 0xCE]), Some(Format::MachO)),
            (macho([0xFE, 0xED, 0xFA, 0xCF]), Some(Format::MachO)),
            (macho([0xCE, 0xFA, 0xED, 0xFE]), Some(Format::MachO)),
            (macho([0xCF, 0xFA, 0xED, 0xFE]), Some(Format::MachO)),
            (macho([0xCA, 0xFE, 0xBA, 0xBE]), None),
        ] {
            assert_eq!(Format::detect(&data), format, "{data:x?}");
            assert_eq!(as_object_does(&data), format, "{data:x?}");
        }
    }
}
