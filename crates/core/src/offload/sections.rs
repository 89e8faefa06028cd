//! Sections of ELF files with containers of device code.

use super::bytes::{number, text};
use super::container::{BUNDLE_MAGIC, KPACK_REFERENCE};

/// Sections whose contents are containers: of clang for its own linker, of HIP and CUDA for their runtimes, of CUDA
/// for nvlink.
const SECTIONS: [&[u8]; 5] = [
    b".llvm.offloading",
    b".hip_fatbin",
    b".nv_fatbin",
    b"__nv_relfatbin",
    KPACK_REFERENCE,
];

/// Whether a section has device code, by its name. clang's older driver appends the id of its only entry to the magic
/// of bundles.
fn has_code(name: &[u8]) -> bool {
    SECTIONS.contains(&name) || name.starts_with(BUNDLE_MAGIC)
}

/// Names and contents of the sections of an ELF file that have device code.
pub(super) fn with_code(file: &[u8]) -> Option<impl Iterator<Item = (&[u8], &[u8])>> {
    // Each section of a hostile file may be the whole file.
    let mut bytes_left = file.len();
    Some(sections(file)?.filter(move |(name, data)| {
        let is_read = has_code(name) && data.len() <= bytes_left;
        if is_read {
            bytes_left -= data.len();
        }
        is_read
    }))
}

/// Names and contents of the sections of an ELF file (gABI, "Section Header"); none of big-endian files, which
/// are for machines without such code.
fn sections(file: &[u8]) -> Option<impl Iterator<Item = (&[u8], &[u8])>> {
    // Size of a header; offset and size of its addresses, and of its offset, size and link.
    let (header_size, word, offset, size, link) = match file.get(..6)? {
        [0x7F, b'E', b'L', b'F', 1, 1] => (40, 4, 16, 20, 24),
        [0x7F, b'E', b'L', b'F', 2, 1] => (64, 8, 24, 32, 40),
        _ => return None,
    };
    // `e_shoff`; `e_shnum` and `e_shstrndx` are at the end of the header of the file.
    let start = number(file, 24 + 2 * word, word)?;
    let end = if word == 8 { 64 } else { 52 };
    let headers = file.get(start..)?;
    let contents = move |header: &[u8]| {
        let data = file.get(number(header, offset, word)?..)?;
        data.get(..number(header, size, word)?)
    };
    // Numbers that do not fit are in the first header.
    let count = match number(file, end - 4, 2)? {
        0 => number(headers, size, word)?,
        count => count,
    };
    let strings = match number(file, end - 2, 2)? {
        0xFFFF => number(headers, link, 4)?,
        index => index,
    };
    let mut headers = headers.chunks_exact(header_size).take(count);
    let names = contents(headers.clone().nth(strings)?)?;
    Some(std::iter::from_fn(move || {
        loop {
            let header = headers.next()?;
            let name = number(header, 0, 4).and_then(|offset| text(names, offset));
            if let Some(section) = name.zip(contents(header)) {
                return Some(section);
            }
        }
    }))
}
