//! The members and the index that ordinary tools see.

use crate::bytes::Bytes;
use crate::container::{AR_HEADER_SIZE, AR_MAGIC, ArMember, INDEX, NAMES, WIDE_INDEX};
use crate::error::{Error, Part};
use crate::hash::hash_bytes;
use crate::super_archive::SuperArchive;
use crate::view::View;

/// A member of the archive, as ordinary tools see it.
///
/// ```
/// # use gpustub_archive::SuperArchive;
/// # let bytes = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sample.a"));
/// # let archive = SuperArchive::parse(bytes)?;
/// let default = archive.default_view()?.expect("written with a default view");
/// for (member, listed) in archive.ordinary().zip(default.members()) {
///     let (member, listed) = (member?, listed?);
///     assert!(member.has_name(listed.name()));
///     assert_eq!(member.data, listed.data()?);
/// }
/// # Ok::<(), gpustub_archive::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct OrdinaryMember<'a> {
    /// Name in the archive.
    pub name: &'a [u8],
    /// Header of the member.
    pub header: &'a [u8],
    /// Contents.
    pub data: &'a [u8],
    /// Offset of the contents in the archive.
    pub offset: u64,
}

impl OrdinaryMember<'_> {
    /// Whether the name in the archive is that of a member of a view: bytes that end names are replaced.
    pub fn has_name(&self, view_name: &[u8]) -> bool {
        let archive_name = view_name.iter().map(|&byte| match byte {
            b'\n' | b'/' | 0 => b'_',
            byte => byte,
        });
        self.name.iter().copied().eq(archive_name)
    }
}

/// All members that ordinary tools see, except the one that contains the tables: see
/// [`SuperArchive::ordinary`].
///
/// ```
/// # use gpustub_archive::SuperArchive;
/// # let bytes = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sample.a"));
/// # let archive = SuperArchive::parse(bytes)?;
/// let names: Vec<_> = archive.ordinary().flatten().map(|member| member.name).collect();
/// assert_eq!(names, [&b"norm.o"[..], b"scale.o"]);
/// # Ok::<(), gpustub_archive::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Ordinary<'a> {
    archive: Bytes<'a>,
    /// Offset of the tables.
    blob_offset: u64,
    /// Offset of the header of the next member.
    next_header: u64,
    /// Contents of the member `//`.
    names: Bytes<'a>,
    /// The index: its contents, and the width of its numbers.
    index: Option<(Bytes<'a>, u64)>,
}

impl<'a> Ordinary<'a> {
    /// The name that a header gives, or that it refers to in the table of long names.
    fn name(&self, field: &'a [u8]) -> Option<&'a [u8]> {
        let Some(digits) = field.strip_prefix(b"/") else {
            return Some(field.strip_suffix(b"/").unwrap_or(field));
        };
        let start: usize = core::str::from_utf8(digits).ok()?.parse().ok()?;
        let names = self.names.0.get(start..)?;
        let length = names.windows(2).position(|pair| pair == b"/\n")?;
        names.get(..length)
    }
}

impl<'a> Iterator for Ordinary<'a> {
    type Item = Result<OrdinaryMember<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let malformed = Error::Malformed(Part::Archive);
        while self.next_header < self.archive.len() {
            let offset = self.next_header + AR_HEADER_SIZE;
            let Some(member) = ArMember::read(self.archive, self.next_header) else {
                // No members follow a damaged one.
                self.next_header = self.archive.len();
                return Some(Err(malformed));
            };
            self.next_header = member.next;
            match member.name {
                INDEX => self.index = Some((member.data, 4)),
                WIDE_INDEX => self.index = Some((member.data, 8)),
                NAMES => self.names = member.data,
                _ if (offset..offset + member.data.len()).contains(&self.blob_offset) => {}
                field => {
                    let name = self.name(field).ok_or(malformed);
                    return Some(name.map(|name| OrdinaryMember {
                        name,
                        header: member.header,
                        data: member.data.0,
                        offset,
                    }));
                }
            }
        }
        None
    }
}

impl<'a> SuperArchive<'a> {
    /// The members that ordinary tools see, except the one that contains the tables. Unless the archive was
    /// changed, these are the members of the default view.
    pub fn ordinary(&self) -> Ordinary<'a> {
        Ordinary {
            archive: self.tables.store.archive,
            blob_offset: self.tables.blob_offset,
            next_header: AR_MAGIC.len() as u64,
            names: Bytes(&[]),
            index: None,
        }
    }

    /// Compares the ordinary members and the index with the default view.
    pub(crate) fn verify_ordinary(&self) -> Result<(), Error> {
        let default = self.default_view()?;
        let mut position = 0;
        let mut members = self.ordinary();
        // Headers of a hostile file may share one long name.
        let mut remaining_name_bytes = self.tables.store.archive.len();
        for member in members.by_ref() {
            let member = member?;
            let changed = Error::OrdinaryMembers { position };
            let view = default.ok_or(changed)?;
            let listed = view.member_at(position as usize)?.ok_or(changed)?;
            remaining_name_bytes = remaining_name_bytes
                .checked_sub(member.name.len() as u64)
                .ok_or(Error::Malformed(Part::Archive))?;
            if !member.has_name(listed.name()) {
                return Err(changed);
            }
            let contents = listed.contents();
            // The hash of those that the tables refer to is checked elsewhere.
            let is_same = contents.offset() == member.offset || contents.data()? == member.data;
            if !is_same
                || !contents.in_default_view()
                || contents.size() != member.data.len() as u64
            {
                return Err(changed);
            }
            position += 1;
        }
        if members.next_header != self.tables.store.archive.len() {
            return Err(Error::Malformed(Part::Archive));
        }
        if position as usize != default.map_or(0, |view| view.member_count()) {
            return Err(Error::OrdinaryMembers { position });
        }
        self.verify_index(members.index, default)
    }

    /// Checks that tools that search the index find the members of the default view.
    fn verify_index(
        &self,
        index: Option<(Bytes<'a>, u64)>,
        default: Option<View<'a>>,
    ) -> Result<(), Error> {
        // The entries that give a symbol the member of the view, and the sum of the hashes of their names.
        let (mut indexed_count, mut indexed_sum) = (0_u32, 0_u64);
        let mut members = self.ordinary();
        // Offset of the header of the member that `members` returned last.
        let mut member_header = 0;
        for entry in IndexEntries::new(index) {
            let (name, entry_header) = entry?;
            // Archivers write the symbols of one member after those of the previous one.
            while member_header < entry_header {
                let member = members.next().ok_or(Error::IndexChanged)??;
                member_header = member.offset - AR_HEADER_SIZE;
            }
            let view = default.ok_or(Error::IndexChanged)?;
            let member = view.find_symbol(name)?.ok_or(Error::IndexChanged)?;
            let expected_header = member.contents().offset().wrapping_sub(AR_HEADER_SIZE);
            if member_header != entry_header || entry_header < expected_header {
                return Err(Error::IndexChanged);
            }
            if entry_header == expected_header {
                indexed_count += 1;
                indexed_sum = indexed_sum.wrapping_add(hash_bytes(name));
            }
        }
        let (mut symbol_count, mut symbol_sum) = (0_u32, 0_u64);
        for symbol in default.iter().flat_map(View::symbols) {
            symbol_count += 1;
            symbol_sum = symbol_sum.wrapping_add(hash_bytes(symbol?.name));
        }
        match symbol_count.checked_sub(indexed_count) {
            Some(0) if indexed_sum == symbol_sum => Ok(()),
            Some(0) | None => Err(Error::IndexChanged),
            Some(missing) => Err(Error::IndexIncomplete { missing }),
        }
    }
}

/// Symbols of the index, each with the offset of a header. Nothing follows an error.
struct IndexEntries<'a> {
    numbers: Bytes<'a>,
    width: u64,
    /// Names of the entries that follow.
    names: &'a [u8],
    /// The number of entries that were read.
    read: u64,
    count: u64,
}

impl<'a> IndexEntries<'a> {
    fn new(index: Option<(Bytes<'a>, u64)>) -> Self {
        let (numbers, width) = index.unwrap_or((Bytes(&[]), 4));
        let mut entries = Self {
            numbers,
            width,
            names: &[],
            read: 0,
            count: 0,
        };
        entries.count = entries.number(0).unwrap_or(0);
        let names_offset = entries.count.saturating_add(1).saturating_mul(width);
        entries.names = usize::try_from(names_offset)
            .ok()
            .and_then(|offset| numbers.0.get(offset..))
            .unwrap_or_default();
        entries
    }

    /// A number of the index: their count, then the offset of each header.
    fn number(&self, index: u64) -> Option<u64> {
        Some(match self.width {
            4 => self.numbers.u32(index * 4)?.swap_bytes().into(),
            _ => self.numbers.u64(index.checked_mul(8)?)?.swap_bytes(),
        })
    }

    fn read_entry(&mut self) -> Option<(&'a [u8], u64)> {
        self.read += 1;
        let length = self.names.iter().position(|&byte| byte == 0)?;
        let (name, rest) = self.names.split_at_checked(length)?;
        self.names = rest.get(1..)?;
        Some((name, self.number(self.read)?))
    }
}

impl<'a> Iterator for IndexEntries<'a> {
    type Item = Result<(&'a [u8], u64), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.read == self.count {
            return None;
        }
        let entry = self.read_entry();
        if entry.is_none() {
            self.read = self.count;
        }
        Some(entry.ok_or(Error::Malformed(Part::Archive)))
    }
}
