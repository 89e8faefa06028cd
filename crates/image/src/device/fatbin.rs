//! The container of device code. No header of the toolkit describes the format; this is the output of
//! `fatbinary` of 13.5, and `cuobjdump` agrees (`tests/tests/device_images/main.rs`):
//!
//! | of a container | bytes | | of an entry | bytes |
//! |---|---|---|---|---|
//! | magic 0xBA55ED50 | 0..4 | | kind | 0..2 |
//! | size of the header | 6..8 | | size of the header | 4..8 |
//! | size of what follows | 8..16 | | size of what follows | 8..16 |
//! | | | | architecture | 28..32 |
//! | | | | flags: bit 20 `a`, bit 21 `f` | 40..48 |
//!
//! The letter is here only: `e_flags` of a cubin are the same for sm_90 and sm_90a, and for sm_100, sm_100a and sm_100f,
//! since ptxas 13.0 (`tests/tests/device_images/objects.rs`).

use std::collections::BTreeSet;

use gpustub_core::gpu_arch::{Arch, ArchKind, ArchSuffix, NvidiaArch};

use crate::consumed::{FAULT_AROUND, Reads};

const MAGIC: u32 = 0xBA55_ED50;
/// Minimum size of the headers of a container and of an entry.
const HEADER: usize = 16;
const ENTRY: usize = 48;

/// A container and its address.
pub(super) struct Fatbin {
    pub(super) address: u64,
    pub(super) archs: BTreeSet<Arch>,
}

/// The containers of sections that begin at these addresses. Zeros may separate containers.
pub(super) fn fatbins<'d>(
    sections: &'d [(u64, &'d [u8])],
    reads: &'d Reads<'_>,
) -> impl Iterator<Item = Fatbin> + 'd {
    sections.iter().flat_map(move |&(start, data)| {
        let mut offset = 0;
        std::iter::from_fn(move || {
            while data.get(offset..offset + 8)? == [0; 8] {
                offset += 8;
            }
            let rest = &data[offset..];
            let header = usize::from(u16::from_le_bytes(*rest.get(6..)?.first_chunk()?));
            if word(rest, 0)? != MAGIC || header < HEADER {
                return None;
            }
            let body = rest.get(header..)?;
            let size = size(rest, 8)?.min(body.len());
            let address = start.wrapping_add(offset as u64);
            offset = (offset + header + size).next_multiple_of(8);
            Some(Fatbin {
                address,
                archs: entry_archs(&body[..size], reads).unwrap_or_default(),
            })
        })
    })
}

/// Architectures of the code; `None` if there is code of an unknown kind, which may be for any
/// architecture.
fn entry_archs(body: &[u8], reads: &Reads<'_>) -> Option<BTreeSet<Arch>> {
    let mut archs = BTreeSet::new();
    let mut rest = body;
    loop {
        reads.count(FAULT_AROUND);
        let Some((arch, size)) = entry(rest) else {
            return Some(archs);
        };
        archs.insert(arch?);
        rest = rest.get(size..).unwrap_or_default();
    }
}

/// Architecture, if it is known, and size of the entry that `rest` begins with.
fn entry(rest: &[u8]) -> Option<(Option<Arch>, usize)> {
    let kind = u16::from_le_bytes(*rest.first_chunk()?);
    let header = usize::try_from(word(rest, 4)?).ok()?;
    if header < ENTRY {
        return None;
    }
    let size = header.checked_add(size(rest, 8)?)?;
    let flags = word(rest, 40)?;
    let suffix = match (flags & 1 << 20, flags & 1 << 21) {
        (0, 0) => None,
        (_, 0) => Some(ArchSuffix::Accelerated),
        _ => Some(ArchSuffix::Family),
    };
    let kind = match kind {
        1 => Some(ArchKind::Virtual),
        2 => Some(ArchKind::Real),
        8 => Some(ArchKind::Lto),
        _ => None,
    };
    let number = word(rest, 28)?.try_into().ok();
    let arch = kind.zip(number).map(|(kind, number)| {
        Arch::Nvidia(NvidiaArch {
            number,
            suffix,
            kind,
        })
    });
    Some((arch, size))
}

pub(super) fn word(data: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*data.get(offset..)?.first_chunk()?))
}

fn size(data: &[u8], offset: usize) -> Option<usize> {
    usize::try_from(u64::from_le_bytes(*data.get(offset..)?.first_chunk()?)).ok()
}
