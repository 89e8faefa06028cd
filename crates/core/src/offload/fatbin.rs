//! CUDA's container. No header of the toolkit describes the format; this is the output of `fatbinary` of 11.8, 12.4
//! and 13.5, and `cuobjdump` agrees (`tests/tests/device_images/main.rs`):
//!
//! | of a container | bytes | | of an entry | bytes |
//! |---|---|---|---|---|
//! | magic 0xBA55ED50 | 0..4 | | kind | 0..2 |
//! | size of the header | 6..8 | | size of the header | 4..8 |
//! | size of what follows | 8..16 | | size of what follows | 8..16 |
//! | | | | size of compressed code, or 0 | 16..20 |
//! | | | | architecture | 28..32 |
//! | | | | flags | 40..44 |
//! | | | | size of the code once unpacked, or 0 | 56..64 |
//!
//! Flags: bit 13, LZ4 (11.8, 12.4); bit 15, zstd (13.5); bit 16, code for link-time optimization that is scrambled as well
//! (since 12); bit 20, `a`; bit 21, `f`. The letter is here only: `e_flags` of a cubin are the same for sm_90 and sm_90a, and
//! for sm_100, sm_100a and sm_100f, since ptxas 13.0 (`tests/tests/device_images/objects.rs`).

use super::bytes::number;
use super::code::CodeKind;
use super::container::{Compression, Container, ContainerFormat, Entry, MAX_ENTRIES, Model};

/// Minimum size of the headers of a container and of an entry.
const HEADER: usize = 16;
const ENTRY: usize = 48;

/// A container at the beginning of `data`.
pub(super) fn read(data: &[u8]) -> Option<Container<'_>> {
    let header = number(data, 6, 2)?;
    let declared = header.checked_add(number(data, 8, 8)?)?;
    if header < HEADER || header > data.len() {
        return None;
    }
    let size = declared.min(data.len());
    let mut container = Container::new(ContainerFormat::Fatbin, &data[..size]);
    container.version = number(data, 4, 2)?.try_into().unwrap_or(0);
    container.is_complete = size == declared;
    let mut offset = header;
    while let Some((entry, size)) = entry(container.data, offset) {
        if container.entries.len() == MAX_ENTRIES {
            container.is_complete = false;
            break;
        }
        container.entries.push(entry);
        offset = offset.saturating_add(size);
    }
    Some(container)
}

/// The entry at an offset, and its size with the header.
fn entry(container: &[u8], offset: usize) -> Option<(Entry, usize)> {
    let rest = container.get(offset..)?;
    let header = number(rest, 4, 4)?;
    if header < ENTRY {
        return None;
    }
    let padded_size = number(rest, 8, 8)?;
    let flags = number(rest, 40, 4)?;
    let is_set = |bit: u32| flags >> bit & 1 != 0;
    let compression = match (is_set(13), is_set(15)) {
        (true, _) => Some(Compression::Lz4),
        (_, true) => Some(Compression::Zstd),
        _ => None,
    };
    let (prefix, code) = match number(rest, 0, 2)? {
        1 => ("compute_", CodeKind::Ptx),
        2 => ("sm_", CodeKind::Cubin),
        8 => ("lto_", CodeKind::Lto),
        _ => ("", CodeKind::Unknown),
    };
    let suffix = match (is_set(20), is_set(21)) {
        (false, false) => "",
        (_, false) => "a",
        _ => "f",
    };
    let arch = match prefix {
        "" => String::new(),
        _ => format!("{prefix}{}{suffix}", number(rest, 28, 4)?),
    };
    let size = match (compression, number(rest, 16, 4)?) {
        (None, _) | (_, 0) => padded_size,
        (_, size) => size,
    };
    let unpacked_size = match compression {
        None => size,
        // Of the header of 64 bytes that all entries of this kind have.
        Some(_) if header >= 64 => number(rest, 56, 8)?,
        Some(_) => 0,
    };
    let entry = Entry {
        model: Model::Cuda,
        triple: "nvptx64-nvidia-cuda".to_owned(),
        arch,
        code,
        offset: offset.checked_add(header)?,
        size,
        compression,
        unpacked_size,
    };
    Some((entry, header.checked_add(padded_size)?))
}
