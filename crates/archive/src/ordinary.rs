//! The members and the index that ordinary tools see.

use crate::bytes::Bytes;
use crate::container::{AR_HEADER_SIZE, AR_MAGIC, File, INDEX, NAMES, WIDE_INDEX};
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
    pub fn has_name(&self, of: &[u8]) -> bool {
        let written = of.iter().map(|&byte| match byte {
            b'\n' | b'/' | 0 => b'_',
            byte => byte,
        });
        self.name.iter().copied().eq(written)
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
    blob_at: u64,
    at: u64,
    /// Contents of the member `//`.
    names: Bytes<'a>,
    /// The index: its contents, and the width of its numbers.
    index: Option<(Bytes<'a>, u64)>,
}

impl<'a> Ordinary<'a> {
    fn next_member(&mut self) -> Option<Option<OrdinaryMember<'a>>> {
        while self.at < self.archive.len() {
            let start = self.at + AR_HEADER_SIZE;
            let Some(file) = File::read(self.archive, self.at) else {
                // No more members after a damaged one.
                self.at = self.archive.len();
                return Some(None);
            };
            self.at = file.next;
            match file.name {
                INDEX => self.index = Some((file.data, 4)),
                WIDE_INDEX => self.index = Some((file.data, 8)),
                NAMES => self.names = file.data,
                _ if (start..start + file.data.len()).contains(&self.blob_at) => {}
                name => {
                    let member = || {
                        Some(OrdinaryMember {
                            name: self.name(name)?,
                            header: self.archive.get(start - AR_HEADER_SIZE, AR_HEADER_SIZE)?.0,
                            data: file.data.0,
                            offset: start,
                        })
                    };
                    return Some(member());
                }
            }
        }
        None
    }

    fn name(&self, field: &'a [u8]) -> Option<&'a [u8]> {
        let Some(digits) = field.strip_prefix(b"/") else {
            return Some(field.strip_suffix(b"/").unwrap_or(field));
        };
        let at: usize = core::str::from_utf8(digits).ok()?.parse().ok()?;
        let names = self.names.0.get(at..)?;
        let end = names.windows(2).position(|end| end == b"/\n")?;
        names.get(..end)
    }
}

impl<'a> Iterator for Ordinary<'a> {
    type Item = Result<OrdinaryMember<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_member()?;
        Some(next.ok_or(Error::Malformed(Part::Archive)))
    }
}

impl<'a> SuperArchive<'a> {
    /// The members that ordinary tools see, except the one that contains the tables. Unless the archive was
    /// changed, these are the members of the default view.
    pub fn ordinary(&self) -> Ordinary<'a> {
        Ordinary {
            archive: self.tables.store.archive,
            blob_at: self.tables.blob_at,
            at: AR_MAGIC.len() as u64,
            names: Bytes(&[]),
            index: None,
        }
    }

    /// Compares the ordinary members and the index with the default view.
    pub(crate) fn verify_ordinary(&self) -> Result<(), Error> {
        let default = self.default_view()?;
        let mut position = 0;
        let mut found = self.ordinary();
        // Headers of a hostile file may share one long name.
        let mut names = self.tables.store.archive.len();
        for member in found.by_ref() {
            let (member, other) = (member?, Error::OrdinaryMembers { position });
            let listed = default.map(|view| view.member_at(position as usize));
            let listed = listed.transpose()?.flatten().ok_or(other)?;
            let rest = names.checked_sub(member.name.len() as u64);
            names = rest.ok_or(Error::Malformed(Part::Archive))?;
            let contents = listed.contents();
            if !member.has_name(listed.name()) {
                return Err(other);
            }
            // The hash of those that the tables refer to is checked elsewhere.
            let same = contents.offset() == member.offset || contents.data()? == member.data;
            if !contents.in_default_view() || contents.size() != member.data.len() as u64 || !same {
                return Err(other);
            }
            position += 1;
        }
        if found.at != self.tables.store.archive.len() {
            return Err(Error::Malformed(Part::Archive));
        }
        let expected = default.map_or(0, |view| view.member_count());
        if position as usize != expected {
            return Err(Error::OrdinaryMembers { position });
        }
        self.verify_index(found.index, default)
    }

    /// Checks that tools that search the index find the members of the default view.
    fn verify_index(
        &self,
        index: Option<(Bytes<'a>, u64)>,
        default: Option<View<'a>>,
    ) -> Result<(), Error> {
        let (mut found, mut sum) = (0_u32, 0_u64);
        let mut members = self.ordinary();
        let mut member = 0;
        for entry in IndexEntries::new(index) {
            let (name, at) = entry.ok_or(Error::Malformed(Part::Archive))?;
            // Archivers write the symbols of one member after those of the other.
            while member < at {
                let next = members.next().ok_or(Error::IndexChanged)?;
                member = next?.offset - AR_HEADER_SIZE;
            }
            let symbol = default.map(|view| view.find_symbol(name));
            let symbol = symbol.transpose()?.flatten().ok_or(Error::IndexChanged)?;
            let expected = symbol.contents().offset().wrapping_sub(AR_HEADER_SIZE);
            if member != at || at < expected {
                return Err(Error::IndexChanged);
            }
            if at == expected {
                found += 1;
                sum = sum.wrapping_add(hash_bytes(name));
            }
        }
        let (mut wanted, mut wanted_sum) = (0_u32, 0_u64);
        for symbol in default.iter().flat_map(View::symbols) {
            wanted += 1;
            wanted_sum = wanted_sum.wrapping_add(hash_bytes(symbol?.name));
        }
        match wanted.checked_sub(found) {
            Some(0) if sum == wanted_sum => Ok(()),
            Some(0) | None => Err(Error::IndexChanged),
            Some(missing) => Err(Error::IndexIncomplete { missing }),
        }
    }
}

/// Symbols of the index, each with the offset of a header; `None` after damage.
struct IndexEntries<'a> {
    numbers: Bytes<'a>,
    width: u64,
    names: &'a [u8],
    next: u64,
    count: u64,
}

impl<'a> IndexEntries<'a> {
    fn new(index: Option<(Bytes<'a>, u64)>) -> Self {
        let (numbers, width) = index.unwrap_or((Bytes(&[]), 4));
        let mut entries = Self {
            numbers,
            width,
            names: &[],
            next: 0,
            count: 0,
        };
        entries.count = entries.number(0).unwrap_or(0);
        let names = entries.count.saturating_add(1).saturating_mul(width);
        let names = usize::try_from(names)
            .ok()
            .and_then(|at| numbers.0.get(at..));
        entries.names = names.unwrap_or_default();
        entries
    }

    fn number(&self, at: u64) -> Option<u64> {
        Some(match self.width {
            4 => self.numbers.u32(at * 4)?.swap_bytes().into(),
            _ => self.numbers.u64(at.checked_mul(8)?)?.swap_bytes(),
        })
    }
}

impl<'a> Iterator for IndexEntries<'a> {
    type Item = Option<(&'a [u8], u64)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next == self.count {
            return None;
        }
        self.next += 1;
        let entry = || {
            let end = self.names.iter().position(|&byte| byte == 0)?;
            let (name, rest) = self.names.split_at_checked(end)?;
            Some((name, rest.get(1..)?, self.number(self.next)?))
        };
        let Some((name, rest, at)) = entry() else {
            self.next = self.count;
            return Some(None);
        };
        self.names = rest;
        Some(Some((name, at)))
    }
}
