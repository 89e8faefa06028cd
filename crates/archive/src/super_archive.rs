//! The archive as a whole.

use crate::bytes::Bytes;
use crate::container;
use crate::error::{Error, Part};
use crate::format::{Header, VIEW_SIZE};
use crate::hash::hash_bytes;
use crate::member::Member;
use crate::tables::Tables;
use crate::view::View;

/// A super-archive in memory.
///
/// ```
/// use gpustub_archive::SuperArchive;
///
/// # let bytes = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sample.a"));
/// let archive = SuperArchive::parse(bytes)?;
/// assert_eq!((archive.view_count(), archive.member_count()), (2, 3));
/// let default = archive.default_view()?.expect("written with a default view");
/// assert_eq!(default.name(), b"gfx900");
/// archive.verify()?;
/// # Ok::<(), gpustub_archive::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct SuperArchive<'a> {
    pub(crate) tables: Tables<'a>,
}

impl<'a> SuperArchive<'a> {
    /// Opens the super-archive `bytes`. Reads only the headers of at most three members, and that of
    /// the tables.
    ///
    /// # Errors
    ///
    /// [`Error::NotAnArchive`], [`Error::NoViews`], [`Error::UnsupportedVersion`],
    /// [`Error::SizeMismatch`] if the length changed after writing, and [`Error::Malformed`] if the
    /// tables reach beyond the end.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Error> {
        let archive = Bytes(bytes);
        let blob = container::find_tables(archive)?;
        let header = Header::read(blob)?;
        if header.archive_size != bytes.len() as u64 {
            return Err(Error::SizeMismatch {
                written: header.archive_size,
                found: bytes.len() as u64,
            });
        }
        let blob = blob
            .get(0, header.blob_size)
            .ok_or(Error::Malformed(Part::Header))?;
        let tables = Tables {
            archive,
            blob,
            header,
        };
        Ok(Self { tables })
    }

    /// The number of views.
    pub fn view_count(&self) -> usize {
        self.tables.header.views.count as usize
    }

    /// The view of that name, or `None`. Names are compared as bytes.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] if the tables are corrupt.
    pub fn view(&self, name: impl AsRef<[u8]>) -> Result<Option<View<'a>>, Error> {
        let name = name.as_ref();
        let directory = self.tables.header.directory;
        let malformed = Error::Malformed(Part::Views);
        let mut slot = hash_bytes(name) as u32;
        for _ in 0..directory.slots() {
            let at = directory.at + u64::from(slot & directory.mask()) * 4;
            let Some(index) = self.tables.blob.u32(at).ok_or(malformed)?.checked_sub(1) else {
                return Ok(None);
            };
            let view = self.view_at(index as usize)?.ok_or(malformed)?;
            if view.name() == name {
                return Ok(Some(view));
            }
            slot = slot.wrapping_add(1);
        }
        Ok(None)
    }

    /// The view of that index, in declaration order; `None` if the index is out of range.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] if the tables are corrupt.
    pub fn view_at(&self, index: usize) -> Result<Option<View<'a>>, Error> {
        if index >= self.view_count() {
            return Ok(None);
        }
        let at = self.tables.header.views.at + index as u64 * VIEW_SIZE;
        let view = View::read(self.tables, at).ok_or(Error::Malformed(Part::Views))?;
        Ok(Some(view))
    }

    /// All views, in declaration order.
    pub fn views(&self) -> impl Iterator<Item = Result<View<'a>, Error>> + use<'a> {
        let archive = *self;
        (0..self.view_count()).filter_map(move |index| archive.view_at(index).transpose())
    }

    /// The view that ordinary tools see, if any.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] if the tables are corrupt.
    pub fn default_view(&self) -> Result<Option<View<'a>>, Error> {
        let index = self.tables.header.default.checked_sub(1);
        index.map_or(Ok(None), |index| self.view_at(index as usize))
    }

    /// The number of members; a member of several views counts once.
    pub fn member_count(&self) -> usize {
        self.tables.header.members.count as usize
    }

    /// The member of that [`Member::index`]; `None` if the index is out of range.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] if the tables are corrupt.
    pub fn member_at(&self, index: usize) -> Result<Option<Member<'a>>, Error> {
        if index >= self.member_count() {
            return Ok(None);
        }
        Member::read(self.tables, index as u32).map(Some)
    }

    /// All members, each once.
    pub fn members(&self) -> impl Iterator<Item = Result<Member<'a>, Error>> + use<'a> {
        let tables = self.tables;
        (0..tables.header.members.count).map(move |index| Member::read(tables, index))
    }
}
