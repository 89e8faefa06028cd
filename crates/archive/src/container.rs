//! Location of the tables in the archive: in one of its first members.

use crate::bytes::Bytes;
use crate::error::{Error, Part};
use crate::format::{MAGIC, TRAILER};

/// `struct ar_hdr` of `<ar.h>`.
pub const AR_HEADER_SIZE: u64 = 60;
pub const AR_MAGIC: &[u8] = b"!<arch>\n";

/// The index and the table of long names precede the member that contains the tables.
const MAX_MEMBERS: usize = 3;

/// Finds the tables, and the bytes that follow them in their container: their offset in the archive and
/// their size.
pub fn find_tables(archive: Bytes<'_>) -> Result<(u64, u64), Error> {
    if !archive.0.starts_with(AR_MAGIC) {
        return Err(Error::NotAnArchive);
    }
    let mut header_offset = AR_MAGIC.len() as u64;
    for _ in 0..MAX_MEMBERS {
        if archive.get(header_offset, AR_HEADER_SIZE).is_none() {
            break;
        }
        let member =
            ArMember::read(archive, header_offset).ok_or(Error::Malformed(Part::Archive))?;
        let tables = match member.name {
            INDEX | WIDE_INDEX => tables_in_index(member.data),
            NAMES => None,
            _ => Some(tables_in_object(member.data).ok_or(Error::NoViews)?),
        };
        if let Some((offset, size)) = tables {
            return Ok((header_offset + AR_HEADER_SIZE + offset, size));
        }
        header_offset = member.next;
    }
    Err(Error::NoViews)
}

/// Whether the contents of a member contain the tables of a super-archive.
///
/// ```
/// use gpustub_archive::{SuperArchive, contains_tables};
///
/// # let bytes = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sample.a"));
/// let archive = SuperArchive::parse(bytes)?;
/// for member in archive.ordinary() {
///     assert!(!contains_tables(member?.data));
/// }
/// # Ok::<(), gpustub_archive::Error>(())
/// ```
pub fn contains_tables(member: &[u8]) -> bool {
    tables_in_object(Bytes(member)).is_some()
}

pub const INDEX: &[u8] = b"/";
pub const WIDE_INDEX: &[u8] = b"/SYM64/";
pub const NAMES: &[u8] = b"//";

/// A member of the archive, which may be its index or its table of long names.
#[derive(Clone, Copy, Debug)]
pub struct ArMember<'a> {
    pub header: &'a [u8],
    /// Name in the header, without the spaces at its end.
    pub name: &'a [u8],
    pub data: Bytes<'a>,
    /// Offset of the next header.
    pub next: u64,
}

impl<'a> ArMember<'a> {
    /// The member whose header is at an offset.
    pub fn read(archive: Bytes<'a>, offset: u64) -> Option<Self> {
        let header = archive.get(offset, AR_HEADER_SIZE)?.0;
        let size = parse_size(header)?;
        // Headers begin at even offsets.
        Some(Self {
            header,
            name: without_spaces(header.get(..16)?),
            data: archive.get(offset + AR_HEADER_SIZE, size)?,
            next: offset + AR_HEADER_SIZE + size + size % 2,
        })
    }
}

/// A field without the spaces at its end.
fn without_spaces(field: &[u8]) -> &[u8] {
    let end = field.iter().rposition(|&byte| byte != b' ');
    let length = end.map_or(0, |end| end + 1);
    field.get(..length).unwrap_or_default()
}

/// Parses `ar_size`: decimal digits, padded with spaces.
fn parse_size(header: &[u8]) -> Option<u64> {
    let (field, header_end) = header.get(48..)?.split_at_checked(10)?;
    let digits = without_spaces(field);
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    if !is_number || header_end != b"`\n" {
        return None;
    }
    core::str::from_utf8(digits).ok()?.parse().ok()
}

/// Finds the tables in the tail of the index, which ends with their offset.
fn tables_in_index(index: Bytes<'_>) -> Option<(u64, u64)> {
    let trailer = index.len().checked_sub(24)?;
    if index.get(trailer + 8, 16)?.0 != TRAILER {
        return None;
    }
    let offset = index.u64(trailer)?;
    tables_at(index, offset, trailer.checked_sub(offset)?)
}

fn tables_in_object(object: Bytes<'_>) -> Option<(u64, u64)> {
    tables_in_elf(object).or_else(|| tables_in_bitcode(object))
}

/// The offset and the size, if these bytes of a member begin with the magic.
fn tables_at(member: Bytes<'_>, offset: u64, size: u64) -> Option<(u64, u64)> {
    let tables = member.get(offset, size)?;
    tables.0.starts_with(&MAGIC).then_some((offset, size))
}

/// An object file, with the width and the byte order of its numbers.
#[derive(Clone, Copy)]
struct Elf<'a> {
    bytes: Bytes<'a>,
    is_wide: bool,
    is_big_endian: bool,
}

/// Finds the tables in a section of an object file, by the contents, not the name: tools that strip may
/// move the section.
fn tables_in_elf(object: Bytes<'_>) -> Option<(u64, u64)> {
    let [0x7F, b'E', b'L', b'F', class, order, ..] = object.0 else {
        return None;
    };
    let elf = Elf {
        bytes: object,
        is_wide: *class == 2,
        is_big_endian: *order == 2,
    };
    // Fields of `<elf.h>`: `e_shoff`, `e_shentsize`, `e_shnum`; of a section, `sh_offset` and `sh_size`.
    let (e_shoff, e_shentsize, e_shnum, sh_offset, sh_size) = if elf.is_wide {
        (40, 58, 60, 24, 32)
    } else {
        (32, 46, 48, 16, 20)
    };
    let section_table = elf.word(e_shoff)?;
    let header_size = u64::from(elf.half(e_shentsize)?);
    let section_count = elf.half(e_shnum)?;
    (0..section_count).find_map(|index| {
        let section = section_table.checked_add(u64::from(index) * header_size)?;
        let offset = elf.word(section.checked_add(sh_offset)?)?;
        let size = elf.word(section.checked_add(sh_size)?)?;
        tables_at(object, offset, size)
    })
}

impl Elf<'_> {
    fn half(self, offset: u64) -> Option<u16> {
        let number = self.bytes.u16(offset)?;
        Some(if self.is_big_endian {
            number.swap_bytes()
        } else {
            number
        })
    }

    fn word(self, offset: u64) -> Option<u64> {
        Some(match (self.is_wide, self.is_big_endian) {
            (true, false) => self.bytes.u64(offset)?,
            (true, true) => self.bytes.u64(offset)?.swap_bytes(),
            (false, false) => self.bytes.u32(offset)?.into(),
            (false, true) => self.bytes.u32(offset)?.swap_bytes().into(),
        })
    }
}

/// Finds the tables after a module of bitcode, in a file with the header that gives the module's end
/// (`llvm/Bitcode/BitcodeReader.h`, `isBitcodeWrapper`).
fn tables_in_bitcode(file: Bytes<'_>) -> Option<(u64, u64)> {
    if file.u32(0)? != 0x0B17_C0DE {
        return None;
    }
    let module_end = u64::from(file.u32(8)?) + u64::from(file.u32(12)?);
    tables_at(file, module_end, file.len().checked_sub(module_end)?)
}
