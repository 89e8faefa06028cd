//! Location of the tables in the archive: in one of its first members.

use crate::bytes::Bytes;
use crate::error::{Error, Part};
use crate::format::{MAGIC, TRAILER};

/// `struct ar_hdr` of `<ar.h>`.
pub const AR_HEADER_SIZE: u64 = 60;
pub const AR_MAGIC: &[u8] = b"!<arch>\n";

/// The index and the table of long names precede the index member.
const HOPS: usize = 3;

/// Finds the tables, and the bytes that follow them in their container: their offset in the archive and
/// their size.
pub fn find_tables(archive: Bytes<'_>) -> Result<(u64, u64), Error> {
    if !archive.0.starts_with(AR_MAGIC) {
        return Err(Error::NotAnArchive);
    }
    let mut at = AR_MAGIC.len() as u64;
    for _ in 0..HOPS {
        if archive.get(at, AR_HEADER_SIZE).is_none() {
            break;
        }
        let file = File::read(archive, at).ok_or(Error::Malformed(Part::Archive))?;
        let member = file.data;
        let found = match file.name {
            INDEX | WIDE_INDEX => in_index(member),
            NAMES => None,
            _ => {
                let found = in_elf(member).or_else(|| in_bitcode(member));
                let found = found.map(|(offset, size)| (at + AR_HEADER_SIZE + offset, size));
                return found.ok_or(Error::NoViews);
            }
        };
        if let Some((offset, size)) = found {
            return Ok((at + AR_HEADER_SIZE + offset, size));
        }
        at = file.next;
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
    let member = Bytes(member);
    in_elf(member).or_else(|| in_bitcode(member)).is_some()
}

pub const INDEX: &[u8] = b"/";
pub const WIDE_INDEX: &[u8] = b"/SYM64/";
pub const NAMES: &[u8] = b"//";

/// A file of the archive.
#[derive(Clone, Copy, Debug)]
pub struct File<'a> {
    /// Name in the header, without the spaces at its end.
    pub name: &'a [u8],
    pub data: Bytes<'a>,
    /// Offset of the next header.
    pub next: u64,
}

impl<'a> File<'a> {
    /// The file whose header is at an offset.
    pub fn read(archive: Bytes<'a>, at: u64) -> Option<Self> {
        let header = archive.get(at, AR_HEADER_SIZE)?;
        let size = size(header)?;
        // Headers begin at even offsets.
        Some(Self {
            name: without_spaces(header.0.get(..16)?),
            data: archive.get(at + AR_HEADER_SIZE, size)?,
            next: at + AR_HEADER_SIZE + size + size % 2,
        })
    }
}

/// A field without the spaces at its end.
fn without_spaces(field: &[u8]) -> &[u8] {
    let end = field.iter().rposition(|&byte| byte != b' ');
    let length = end.map_or(0, |last| last + 1);
    field.get(..length).unwrap_or_default()
}

/// Parses `ar_size`: decimal digits, padded with spaces.
fn size(header: Bytes<'_>) -> Option<u64> {
    let (digits, end) = header.0.get(48..)?.split_at_checked(10)?;
    let digits = without_spaces(digits);
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let is_header = end == b"`\n";
    (is_number && is_header).then_some(())?;
    core::str::from_utf8(digits).ok()?.parse().ok()
}

/// Finds the tables in the tail of the index, which ends with their offset.
fn in_index(member: Bytes<'_>) -> Option<(u64, u64)> {
    let trailer = member.len().checked_sub(24)?;
    if member.get(trailer + 8, 16)?.0 != TRAILER {
        return None;
    }
    let at = member.u64(trailer)?;
    tables(member, at, trailer.checked_sub(at)?)
}

fn tables(member: Bytes<'_>, at: u64, size: u64) -> Option<(u64, u64)> {
    let bytes = member.get(at, size)?;
    bytes.0.starts_with(&MAGIC).then_some((at, size))
}

/// Width and byte order of an object file's numbers.
#[derive(Clone, Copy)]
struct Elf<'a> {
    bytes: Bytes<'a>,
    wide: bool,
    big: bool,
}

/// Finds the tables in a section of an object file, by the contents, not the name: tools that strip may
/// move the section.
fn in_elf(member: Bytes<'_>) -> Option<(u64, u64)> {
    let (class, order) = match member.0 {
        [0x7F, b'E', b'L', b'F', class, order, ..] => (*class, *order),
        _ => return None,
    };
    let elf = Elf {
        bytes: member,
        wide: class == 2,
        big: order == 2,
    };
    // Fields of `<elf.h>`: `e_shoff`, `e_shentsize`, `e_shnum`; of a section, `sh_offset` and `sh_size`.
    let (table, size, count) = if elf.wide { (40, 58, 60) } else { (32, 46, 48) };
    let (table, size, count) = (elf.word(table)?, elf.half(size)?, elf.half(count)?);
    (0..count).find_map(|index| {
        let section = table.checked_add(u64::from(index) * u64::from(size))?;
        let (at, length) = if elf.wide { (24, 32) } else { (16, 20) };
        let at = elf.word(section.checked_add(at)?)?;
        let length = elf.word(section.checked_add(length)?)?;
        tables(elf.bytes, at, length)
    })
}

impl Elf<'_> {
    fn half(self, at: u64) -> Option<u16> {
        let number = self.bytes.u16(at)?;
        Some(if self.big {
            number.swap_bytes()
        } else {
            number
        })
    }

    fn word(self, at: u64) -> Option<u64> {
        Some(match (self.wide, self.big) {
            (true, false) => self.bytes.u64(at)?,
            (true, true) => self.bytes.u64(at)?.swap_bytes(),
            (false, false) => self.bytes.u32(at)?.into(),
            (false, true) => self.bytes.u32(at)?.swap_bytes().into(),
        })
    }
}

/// Finds the tables after a module of bitcode, in a file with the header that gives the module's end
/// (`llvm/Bitcode/BitcodeReader.h`, `isBitcodeWrapper`).
fn in_bitcode(member: Bytes<'_>) -> Option<(u64, u64)> {
    if member.u32(0)? != 0x0B17_C0DE {
        return None;
    }
    let end = u64::from(member.u32(8)?) + u64::from(member.u32(12)?);
    tables(member, end, member.len().checked_sub(end)?)
}
