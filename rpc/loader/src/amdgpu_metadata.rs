//! Wavefront sizes of the kernels in a code object for AMD's GPUs (LLVM's AMDGPUUsage, "Code Object Metadata").

use std::borrow::Cow;
use std::collections::BTreeMap;

use object::read::elf::{ElfFile64, FileHeader, ProgramHeader};
use object::{Endianness, elf};

use crate::msgpack::{Reader, Value};

/// Note with a map in MessagePack, since code object V3.
const METADATA: (&[u8], u32) = (b"AMDGPU", 32);
/// Note with a text in YAML, in code object V2.
const METADATA_V2: (&[u8], u32) = (b"AMD", 10);

/// Segments with notes that are read: linkers write one.
const MAX_NOTE_SEGMENTS: usize = 16;

/// A kernel of each wavefront size, by this size. A kernel's size comes from its metadata, not from its architecture: a
/// compiler chooses between 32 and 64 lanes since gfx10.
pub type WavefrontSizes<'a> = BTreeMap<u64, Cow<'a, str>>;

/// Reads the wavefront sizes of all kernels. Objects that were linked without LTO have a note each. No note is an empty
/// map; nothing if a note is malformed.
pub fn wavefront_sizes(code_object: &[u8]) -> Option<WavefrontSizes<'_>> {
    let file = ElfFile64::<Endianness>::parse(code_object).ok()?;
    let endian = file.endian();
    let mut sizes = WavefrontSizes::new();
    // As runtimes do: section headers may be stripped.
    let segments = file
        .elf_header()
        .program_headers(endian, code_object)
        .ok()?;
    let segments = segments
        .iter()
        .filter(|segment| segment.p_type(endian) == elf::PT_NOTE);
    for segment in segments.take(MAX_NOTE_SEGMENTS) {
        let Some(mut notes) = segment.notes(endian, code_object).ok()? else {
            continue;
        };
        while let Some(note) = notes.next().ok()? {
            let kind = (note.name(), note.n_type(endian).0);
            if kind == METADATA {
                read_metadata(note.desc(), &mut sizes)?;
            } else if kind == METADATA_V2 {
                read_metadata_v2(note.desc(), &mut sizes)?;
            }
        }
    }
    Some(sizes)
}

fn read_metadata<'a>(metadata: &'a [u8], sizes: &mut WavefrontSizes<'a>) -> Option<()> {
    Reader::new(metadata).map(|reader, key| {
        if key != b"amdhsa.kernels" {
            return reader.skip();
        }
        let Value::Array(count) = reader.value()? else {
            return None;
        };
        for _ in 0..count {
            let (size, name) = read_kernel(reader)?;
            sizes.entry(size).or_insert(String::from_utf8_lossy(name));
        }
        Some(())
    })
}

/// Wavefront size and name of a kernel. Both are required.
fn read_kernel<'a>(reader: &mut Reader<'a>) -> Option<(u64, &'a [u8])> {
    let (mut size, mut name) = (None, None);
    reader.map(|reader, key| {
        match key {
            b".wavefront_size" => match reader.value()? {
                Value::Unsigned(value) => size = Some(value),
                _ => return None,
            },
            b".name" => match reader.value()? {
                Value::Text(value) => name = Some(value),
                _ => return None,
            },
            _ => reader.skip()?,
        }
        Some(())
    })?;
    Some((size?, name?))
}

fn read_metadata_v2<'a>(metadata: &'a [u8], sizes: &mut WavefrontSizes<'a>) -> Option<()> {
    let metadata = std::str::from_utf8(metadata).ok()?;
    let mut name = "";
    for line in metadata.lines() {
        if let Some(symbol) = line.trim().strip_prefix("SymbolName:") {
            name = symbol.trim().trim_matches('\'').trim_end_matches("@kd");
        } else if let Some(size) = line.trim().strip_prefix("WavefrontSize:") {
            let size = size.trim().parse().ok()?;
            sizes.entry(size).or_insert(Cow::Borrowed(name));
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Metadata of one kernel.
    const METADATA_OF_START: &[u8] =
        b"\x81\xaeamdhsa.kernels\x91\x82\xa5.name\xa6_start\xaf.wavefront_size\x40";

    /// A code object that consists of notes.
    fn code_object(notes: &[(&[u8], u32, &[u8])]) -> Vec<u8> {
        let mut data = Vec::new();
        for (name, kind, contents) in notes {
            data.extend((name.len() as u32 + 1).to_le_bytes());
            data.extend((contents.len() as u32).to_le_bytes());
            data.extend(kind.to_le_bytes());
            for bytes in [&[name, &b"\0"[..]].concat(), *contents] {
                data.extend(bytes);
                data.resize(data.len().next_multiple_of(4), 0);
            }
        }
        let mut image = b"\x7fELF\x02\x01\x01\x40\x03".to_vec();
        image.resize(64 + 56, 0);
        for (offset, value) in [(16, 3_u16), (18, 224), (52, 64), (54, 56), (56, 1)] {
            image[offset..offset + 2].copy_from_slice(&value.to_le_bytes());
        }
        let size = data.len() as u64;
        for (offset, value) in [
            (32, 64),
            (64, 4),
            (72, 120),
            (96, size),
            (104, size),
            (112, 4),
        ] {
            image[offset..offset + 8].copy_from_slice(&u64::to_le_bytes(value));
        }
        image.extend(data);
        image
    }

    #[test]
    fn notes_of_others_are_skipped() {
        let image = code_object(&[
            (b"GNU", 3, b"0123456789"),
            (b"AMDGPU", 1, b"\xc1"),
            (b"AMDGPU", 32, METADATA_OF_START),
        ]);
        let expected = WavefrontSizes::from([(64, "_start".into())]);
        assert_eq!(wavefront_sizes(&image), Some(expected));
        let without = code_object(&[(b"GNU", 3, b"0123456789")]);
        assert_eq!(wavefront_sizes(&without), Some(WavefrontSizes::new()));
        // Metadata of graphics, without kernels.
        let graphics = code_object(&[(b"AMDGPU", 32, b"\x81\xaeamdpal.version\x92\x03\x00")]);
        assert_eq!(wavefront_sizes(&graphics), Some(WavefrontSizes::new()));
    }

    /// Metadata that ends early, or has another type somewhere.
    #[test]
    fn malformed_notes_are_reported() {
        for end in 0..METADATA_OF_START.len() {
            let image = code_object(&[(b"AMDGPU", 32, &METADATA_OF_START[..end])]);
            assert_eq!(wavefront_sizes(&image), None, "{end} bytes");
        }
        for metadata in [
            &b"\x90"[..],
            b"\x81\x01\x01",
            b"\x81\xaeamdhsa.kernels\x01",
            b"\x81\xaeamdhsa.kernels\xdd\xff\xff\xff\xff",
            b"\x81\xaeamdhsa.kernels\x91\x80",
            b"\x81\xaeamdhsa.kernels\x91\x81\xa5.name\xa1a",
            b"\x81\xaeamdhsa.kernels\x91\x82\xa5.name\x01\xaf.wavefront_size\x40",
            b"\x81\xaeamdhsa.kernels\x91\x82\xa5.name\xa1a\xaf.wavefront_size\xa1a",
        ] {
            let image = code_object(&[(b"AMDGPU", 32, metadata)]);
            assert_eq!(wavefront_sizes(&image), None, "{metadata:x?}");
        }
        assert_eq!(
            wavefront_sizes(&code_object(&[(b"AMD", 10, b"WavefrontSize: x")])),
            None
        );
    }

    /// Each byte of a code object in turn has other values: nothing panics.
    #[test]
    fn damaged_code_objects_are_read_to_an_end() {
        let image = code_object(&[(b"AMD", 10, b"a: b\n"), (b"AMDGPU", 32, METADATA_OF_START)]);
        for offset in 0..image.len() {
            for value in [0, 1, 0x7f, 0x80, 0xdf, 0xff] {
                let mut damaged = image.clone();
                damaged[offset] = value;
                let _ = wavefront_sizes(&damaged);
            }
            let _ = wavefront_sizes(&image[..offset]);
        }
    }
}
