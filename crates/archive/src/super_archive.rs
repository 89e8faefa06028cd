//! The archive as a whole.

use crate::bytes::Bytes;
use crate::container;
use crate::contents::Contents;
use crate::error::{Error, Part};
use crate::format::Header;
use crate::hash::hash_bytes;
use crate::slots::Slots;
use crate::tables::{Store, Tables};
use crate::view::View;

/// A super-archive in memory.
///
/// ```
/// use gpustub_archive::SuperArchive;
///
/// # let bytes = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sample.a"));
/// let archive = SuperArchive::parse(bytes)?;
/// assert_eq!((archive.view_count(), archive.contents_count()), (2, 3));
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
    /// [`Error::NotAnArchive`], [`Error::NoViews`]; [`Error::UnsupportedVersion`],
    /// [`Error::UnsupportedFeatures`] and [`Error::UnsupportedExtension`] if a later reader is required;
    /// [`Error::Malformed`] if the tables reach beyond the end.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Error> {
        let archive = Bytes(bytes);
        let (blob_offset, size) = container::find_tables(archive)?;
        let malformed = Error::Malformed(Part::Header);
        let blob = archive.get(blob_offset, size).ok_or(malformed)?;
        let header = Header::read(blob)?;
        let store = Store {
            archive,
            blob: blob.get(0, header.blob_size).ok_or(malformed)?,
            contents: header.contents,
            texts: header.texts,
        };
        let tables = Tables {
            store,
            blob_offset,
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
        let header = &self.tables.header;
        let malformed = Error::Malformed(Part::Views);
        let directory = Slots::new(header.directory, header.longest).ok_or(malformed)?;
        for slot in directory.walk(hash_bytes(name)) {
            let index_plus_one = self.tables.store.blob.u32(slot).ok_or(malformed)?;
            let Some(index) = index_plus_one.checked_sub(1) else {
                break;
            };
            let record = header.views.get(index).ok_or(malformed)?;
            if self.tables.store.text(record).ok_or(malformed)? == name {
                return self.view_at(index as usize);
            }
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
        View::read(self.tables.store, &self.tables.header, index as u32)
            .map(Some)
            .ok_or(Error::Malformed(Part::Views))
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
        match self.tables.header.default_plus_one.checked_sub(1) {
            Some(index) => self.view_at(index as usize),
            None => Ok(None),
        }
    }

    /// The number of distinct contents of members.
    pub fn contents_count(&self) -> usize {
        self.tables.header.contents.count as usize
    }

    /// The contents of that [`Contents::index`]; `None` if the index is out of range.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] if the tables are corrupt, [`Error::UnsupportedContents`] if their form is
    /// unknown.
    pub fn contents_at(&self, index: usize) -> Result<Option<Contents<'a>>, Error> {
        if index >= self.contents_count() {
            return Ok(None);
        }
        Contents::read(self.tables.store, index as u32).map(Some)
    }

    /// The contents of all members, each once.
    pub fn contents(&self) -> impl Iterator<Item = Result<Contents<'a>, Error>> + use<'a> {
        let tables = self.tables;
        (0..tables.header.contents.count).map(move |index| Contents::read(tables.store, index))
    }

    /// Size of the tables in bytes: of names, symbols, views and lists.
    pub fn tables_size(&self) -> u64 {
        self.tables.header.tables_size
    }

    /// Offset of the tables in the archive.
    #[doc(hidden)]
    pub fn tables_offset(&self) -> u64 {
        self.tables.blob_offset
    }

    /// Offset in the archive of the record of these contents.
    #[doc(hidden)]
    pub fn record_offset(&self, contents: usize) -> Option<u64> {
        let record = self.tables.header.contents.get(contents.try_into().ok()?)?;
        Some(self.tables.blob_offset + record)
    }
}
