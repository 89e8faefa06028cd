//! Archives for the linkers of MSVC targets (PE Format, "Archive (Library) File Format"): lib.exe is not on each machine
//! that has such a linker, and GNU ar writes no second index, which link.exe reads.

use std::fs;
use std::path::{Path, PathBuf};

use gpustub_core::diag::COMPILER_ERROR;

use crate::error::Error;

/// Beginning of an archive.
const MAGIC: &[u8] = b"!<arch>\n";

/// Size of a member's header.
const HEADER: usize = 60;

/// A name longer than this is in the member of long names: the field has 16 bytes, and a slash ends the name.
const MAX_SHORT_NAME: usize = 15;

/// Machines (PE Format, "Machine Types").
const X64: u16 = 0x8664;
const ARM64: u16 = 0xaa64;

/// An object of an archive.
struct Member {
    name: String,
    bytes: Vec<u8>,
    /// Symbols that it defines.
    symbols: Vec<Vec<u8>>,
}

/// Writes an archive of objects, named relative to `dir` or absolute.
pub(super) fn write(dir: &Path, objects: &[PathBuf], file: &Path) -> Result<(), Error> {
    let mut members = Vec::new();
    for object in objects {
        let path = dir.join(object);
        let bytes = fs::read(&path).map_err(|e| Error::io("read", &path, &e))?;
        let symbols = defined_symbols(&bytes).ok_or_else(|| {
            let message = format!("{}: no COFF object", path.display());
            Error::new(&COMPILER_ERROR, message)
                .help("if the compiler optimizes at link time, leave that out of CFLAGS")
        })?;
        let name = path.file_name().unwrap_or_default();
        members.push(Member {
            name: name.to_string_lossy().into_owned(),
            bytes,
            symbols,
        });
    }
    fs::write(file, archive(&members)).map_err(|e| Error::io("write", file, &e))
}

/// An archive of one object, which defines a name that nothing refers to: tools of MSVC warn of an empty one.
pub(super) fn stand_in(arch: &str) -> Vec<u8> {
    let machine = if arch == "aarch64" { ARM64 } else { X64 };
    let symbol = b"gpustub1_stand_in";
    let member = Member {
        name: "stand_in.o".to_owned(),
        bytes: stand_in_object(machine, symbol),
        symbols: vec![symbol.to_vec()],
    };
    archive(&[member])
}

/// An object with one symbol, in a COMDAT of 8 bytes: `/WHOLEARCHIVE` links those of several archives. PE Format, "COFF
/// File Header", "Section Table", "COFF Symbol Table", "Auxiliary Format 5: Section Definitions".
fn stand_in_object(machine: u16, symbol: &[u8]) -> Vec<u8> {
    const DATA: u32 = 20 + 40;
    const DATA_SIZE: u32 = 8;
    // IMAGE_SCN_CNT_INITIALIZED_DATA, LNK_COMDAT, ALIGN_8BYTES, MEM_READ.
    const SECTION: u32 = 0x40 | 0x1000 | 0x0040_0000 | 0x4000_0000;
    const SELECT_ANY: u8 = 2;
    const STATIC: u8 = 3;
    const EXTERNAL: u8 = 2;
    let mut object = Vec::new();
    object.extend_from_slice(&machine.to_le_bytes());
    object.extend_from_slice(&1_u16.to_le_bytes());
    object.extend_from_slice(&[0; 4]);
    object.extend_from_slice(&(DATA + DATA_SIZE).to_le_bytes());
    object.extend_from_slice(&3_u32.to_le_bytes());
    object.extend_from_slice(&[0; 4]);
    object.extend_from_slice(b".rdata\0\0");
    object.extend_from_slice(&[0; 8]);
    object.extend_from_slice(&DATA_SIZE.to_le_bytes());
    object.extend_from_slice(&DATA.to_le_bytes());
    object.extend_from_slice(&[0; 12]);
    object.extend_from_slice(&SECTION.to_le_bytes());
    object.extend_from_slice(&[0; DATA_SIZE as usize]);
    object.extend_from_slice(b".rdata\0\0");
    object.extend_from_slice(&[0, 0, 0, 0, 1, 0, 0, 0, STATIC, 1]);
    object.extend_from_slice(&DATA_SIZE.to_le_bytes());
    object.extend_from_slice(&[0; 10]);
    object.extend_from_slice(&[SELECT_ANY, 0, 0, 0]);
    object.extend_from_slice(&[0, 0, 0, 0, 4, 0, 0, 0]);
    object.extend_from_slice(&[0, 0, 0, 0, 1, 0, 0, 0, EXTERNAL, 0]);
    object.extend_from_slice(&word(4 + symbol.len() + 1));
    object.extend_from_slice(symbol);
    object.push(0);
    object
}

/// The symbols that an object defines for others (PE Format, "COFF Symbol Table"). `None`: it is no COFF object.
fn defined_symbols(object: &[u8]) -> Option<Vec<Vec<u8>>> {
    const EXTERNAL: u8 = 2;
    // ANON_OBJECT_HEADER_BIGOBJ (winnt.h) begins with 0 and 0xffff, and has numbers of sections of 32 bits.
    let is_big = object.get(..4)? == [0, 0, 0xff, 0xff];
    let (machine, table, section_size) = if is_big { (6, 48, 4) } else { (0, 8, 2) };
    let machine = u16::from_le_bytes(*object.get(machine..)?.first_chunk()?);
    if ![X64, ARM64].contains(&machine) {
        return None;
    }
    let start = number(object, table)?;
    let count = number(object, table + 4)?;
    let size = 16 + section_size;
    let strings = start.checked_add(count.checked_mul(size)?)?;
    let mut symbols = Vec::new();
    let mut index = 0;
    while index < count {
        let offset = start.checked_add(index.checked_mul(size)?)?;
        let symbol = object.get(offset..)?.get(..size)?;
        let section = &symbol[12..12 + section_size];
        let [class, auxiliary_count] = *symbol.last_chunk()?;
        // A common symbol has no section, and its size as its value.
        let is_defined = section.iter().any(|byte| *byte != 0) || symbol[8..12] != [0; 4];
        if class == EXTERNAL && is_defined {
            let name = match symbol.first_chunk::<8>()? {
                [0, 0, 0, 0, ..] => object.get(strings.checked_add(number(symbol, 4)?)?..)?,
                name => &name[..],
            };
            symbols.push(name.split(|byte| *byte == 0).next()?.to_vec());
        }
        index += 1 + usize::from(auxiliary_count);
    }
    Some(symbols)
}

/// A number of 32 bits at an offset.
fn number(bytes: &[u8], offset: usize) -> Option<usize> {
    let number = u32::from_le_bytes(*bytes.get(offset..)?.first_chunk()?);
    usize::try_from(number).ok()
}

/// The archive: two indices, long names, and the members, each at an even offset.
fn archive(members: &[Member]) -> Vec<u8> {
    let mut long_names = Vec::new();
    let mut names = Vec::new();
    for Member { name, .. } in members {
        if name.len() > MAX_SHORT_NAME {
            names.push(format!("/{}", long_names.len()));
            long_names.extend_from_slice(name.as_bytes());
            long_names.push(0);
        } else {
            names.push(format!("{name}/"));
        }
    }
    let (mut symbol_count, mut names_size) = (0, 0);
    for member in members {
        symbol_count += member.symbols.len();
        for symbol in &member.symbols {
            names_size += symbol.len() + 1;
        }
    }
    let first_size = 4 + 4 * symbol_count + names_size;
    let second_size = 8 + 4 * members.len() + 2 * symbol_count + names_size;
    let mut end = MAGIC.len();
    for size in [first_size, second_size, long_names.len()] {
        end += padded_size(size);
    }
    let mut offsets = Vec::new();
    for member in members {
        offsets.push(end);
        end += padded_size(member.bytes.len());
    }
    let mut archive = MAGIC.to_vec();
    add_member(&mut archive, "/", &first_index(members, &offsets));
    add_member(&mut archive, "/", &second_index(members, &offsets));
    add_member(&mut archive, "//", &long_names);
    for (member, name) in members.iter().zip(names) {
        add_member(&mut archive, &name, &member.bytes);
    }
    archive
}

/// "First Linker Member": symbols in the order of the members, numbers in big endian.
fn first_index(members: &[Member], offsets: &[usize]) -> Vec<u8> {
    let (mut count, mut starts, mut strings) = (0, Vec::new(), Vec::new());
    for (member, offset) in members.iter().zip(offsets) {
        for symbol in &member.symbols {
            count += 1;
            starts.extend_from_slice(&to_u32(*offset).to_be_bytes());
            strings.extend_from_slice(symbol);
            strings.push(0);
        }
    }
    [&to_u32(count).to_be_bytes()[..], &starts, &strings].concat()
}

/// "Second Linker Member": symbols by name, numbers in little endian. Of several members the first defines a symbol.
fn second_index(members: &[Member], offsets: &[usize]) -> Vec<u8> {
    let mut by_name: Vec<(&[u8], u16)> = Vec::new();
    let mut number = 0;
    for member in members {
        number += 1;
        for symbol in &member.symbols {
            let position = by_name.partition_point(|(name, _)| *name <= symbol.as_slice());
            by_name.insert(position, (symbol, number));
        }
    }
    let mut index = word(members.len()).to_vec();
    for offset in offsets {
        index.extend_from_slice(&word(*offset));
    }
    index.extend_from_slice(&word(by_name.len()));
    for (_, number) in &by_name {
        index.extend_from_slice(&number.to_le_bytes());
    }
    for (symbol, _) in &by_name {
        index.extend_from_slice(symbol);
        index.push(0);
    }
    index
}

/// Size of a member with its header.
fn padded_size(size: usize) -> usize {
    HEADER + size.next_multiple_of(2)
}

/// Adds a member without a time, an owner and a mode.
fn add_member(archive: &mut Vec<u8>, name: &str, bytes: &[u8]) {
    let size = bytes.len();
    let header = format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 0, 0, 0, 0);
    archive.extend_from_slice(header.as_bytes());
    archive.extend_from_slice(bytes);
    archive.resize(archive.len().next_multiple_of(2), b'\n');
}

/// A number of 32 bits in little endian.
fn word(number: usize) -> [u8; 4] {
    to_u32(number).to_le_bytes()
}

/// A number of 32 bits: no archive has 4 GiB.
fn to_u32(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Objects with the header of each kind, and names of each length.
    fn objects() -> [(Vec<u8>, &'static str); 3] {
        let short = stand_in_object(X64, b"short");
        let long = stand_in_object(ARM64, b"longer_than_a_field");
        // The same with a header of 56 bytes, and 4 bytes for the section of each symbol.
        let mut big = vec![0, 0, 0xff, 0xff, 2, 0];
        big.extend(X64.to_le_bytes());
        big.resize(48, 0);
        big.extend(word(56));
        big.extend(word(1));
        big.extend(b"big\0\0\0\0\0");
        big.extend([0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 2, 0]);
        big.extend(word(4));
        [
            (short, "short"),
            (long, "longer_than_a_field"),
            (big, "big"),
        ]
    }

    #[test]
    fn symbols_are_those_of_each_header() {
        for (object, name) in objects() {
            assert_eq!(
                defined_symbols(&object),
                Some(vec![name.as_bytes().to_vec()])
            );
        }
        assert_eq!(defined_symbols(b"\x7fELF and so on"), None);
    }

    fn position(bytes: &[u8], part: &[u8]) -> usize {
        let mut windows = bytes.windows(part.len());
        windows.position(|window| window == part).expect("a part")
    }

    /// The compiler is the user's: no damage of an object stops the build script otherwise than by an error.
    #[test]
    fn damaged_objects_do_no_harm() {
        for (object, _) in objects() {
            for end in 0..object.len() {
                let _ = defined_symbols(&object[..end]);
                let mut damaged = object.clone();
                for value in [0, 0x7f, 0xff] {
                    damaged[end] = value;
                    let _ = defined_symbols(&damaged);
                }
            }
        }
    }

    #[test]
    fn indices_name_the_members() {
        let members = ["stubs.o", "a_name_that_is_too_long.o"].map(|name| Member {
            name: name.to_owned(),
            bytes: vec![1],
            symbols: vec![b"zeta".to_vec(), name.as_bytes().to_vec()],
        });
        let archive = archive(&members);
        let [first, second] =
            ["stubs.o/ ", "/0  "].map(|field| position(&archive, field.as_bytes()));
        let index = first_index(&members, &[first, second]);
        assert_eq!(index[..4], 4_u32.to_be_bytes());
        let offset = u32::try_from(second).expect("a small archive");
        assert_eq!(index[12..16], offset.to_be_bytes());
        assert_eq!(position(&archive, &index), MAGIC.len() + HEADER);
        let index = second_index(&members, &[first, second]);
        let names = b"a_name_that_is_too_long.o\0stubs.o\0zeta\0zeta\0";
        assert!(index.ends_with(&[&[2, 0, 1, 0, 1, 0, 2, 0], &names[..]].concat()));
    }
}
