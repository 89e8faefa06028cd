//! Reads super-archives: static libraries for many GPU families in one file, each member once.
//!
//! A super-archive is an ordinary `ar` archive to ordinary tools: they see one *view* of it, the
//! default one. The other views, each with its own table of symbols, lie in a part that those tools
//! skip. Members that several views have are there once. `FORMAT.md` tells what each byte is.
//!
//! ```no_run
//! # fn link(_: &[u8]) {}
//! # fn main() -> Result<(), gpustub_archive::Error> {
//! # let bytes: &'static [u8] = &[];
//! let builtins = gpustub_archive::SuperArchive::parse(bytes)?;
//! let family = builtins.view("gfx1100")?.expect("written with this view");
//! if let Some(member) = family.find("_Z3cosDv16_f")? {
//!     link(member.data()?);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! The bytes may come from `include_bytes!`, a mapped file or the program's own image, and may lie at
//! any address. Nothing is allocated, nothing is written, and nothing in the bytes is trusted: what
//! is damaged gives an [`Error`], never a panic. Choosing a view, and finding a symbol in it, take
//! about the same time however many there are.
//!
//! What a change by other tools comes to:
//!
//! | when | what is checked |
//! |---|---|
//! | [`SuperArchive::parse`] | that the length is as written, and that the tables lie within |
//! | [`Member::data`] | that the member's header is as written, where the member should be |
//! | [`SuperArchive::verify`] | all contents, by their hashes |

#![no_std]
#![forbid(unsafe_code)]

// The example of the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

mod bytes;
mod carrier;
mod error;
mod format;
pub mod hash;
mod member;
mod verify;
mod view;

use bytes::Bytes;
pub use error::{Error, Part};
use format::{Header, VIEW_SIZE};
pub use format::{MAGIC, MAJOR, SHARED_NAME, TRAILER};
pub use member::Member;
pub use view::{Layer, Symbol, Symbols, View};

/// A super-archive in memory.
#[derive(Clone, Copy, Debug)]
pub struct SuperArchive<'a> {
    archive: Bytes<'a>,
    blob: Bytes<'a>,
    header: Header,
}

impl<'a> SuperArchive<'a> {
    /// Opens a super-archive that is all of `bytes`. A few bytes are looked at: the headers of at
    /// most three members, and that of the tables.
    ///
    /// # Errors
    ///
    /// If it is no archive, has no views, is of a later format, was changed in length since it was
    /// written, or has tables that reach beyond its end.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Error> {
        let archive = Bytes(bytes);
        let blob = carrier::find(archive)?;
        let header = Header::read(blob)?;
        if header.archive_size != bytes.len() as u64 {
            return Err(Error::Length {
                written: header.archive_size,
                found: bytes.len() as u64,
            });
        }
        let blob = blob
            .get(0, header.blob_size)
            .ok_or(Error::Damaged(Part::Header))?;
        Ok(Self {
            archive,
            blob,
            header,
        })
    }

    /// The number of views.
    pub fn view_count(&self) -> usize {
        self.header.views.count as usize
    }

    /// The view of that name; `None` if there is none. Names are bytes, and compared as such.
    ///
    /// # Errors
    ///
    /// If what is looked at of the tables is damaged.
    pub fn view(&self, name: impl AsRef<[u8]>) -> Result<Option<View<'a>>, Error> {
        let name = name.as_ref();
        let directory = self.header.directory;
        let damaged = Error::Damaged(Part::Views);
        let mut slot = hash::of(name) as u32;
        for _ in 0..directory.slots() {
            let at = directory.at + u64::from(slot & directory.mask()) * 4;
            let Some(index) = self.blob.u32(at).ok_or(damaged)?.checked_sub(1) else {
                return Ok(None);
            };
            let view = self.view_at(index as usize)?.ok_or(damaged)?;
            if view.name() == name {
                return Ok(Some(view));
            }
            slot = slot.wrapping_add(1);
        }
        Ok(None)
    }

    /// The view of that index, in the order in which they were declared; `None` if there are not so
    /// many.
    ///
    /// # Errors
    ///
    /// If what is looked at of the tables is damaged.
    pub fn view_at(&self, index: usize) -> Result<Option<View<'a>>, Error> {
        if index >= self.view_count() {
            return Ok(None);
        }
        let at = self.header.views.at + index as u64 * VIEW_SIZE;
        let view = View::read(*self, at).ok_or(Error::Damaged(Part::Views))?;
        Ok(Some(view))
    }

    /// All views, in the order in which they were declared.
    pub fn views(&self) -> impl Iterator<Item = Result<View<'a>, Error>> + use<'a> {
        let archive = *self;
        (0..self.view_count()).filter_map(move |index| archive.view_at(index).transpose())
    }

    /// The view that ordinary tools see, if there is one.
    ///
    /// # Errors
    ///
    /// If what is looked at of the tables is damaged.
    pub fn default_view(&self) -> Result<Option<View<'a>>, Error> {
        let index = self.header.default.checked_sub(1);
        index.map_or(Ok(None), |index| self.view_at(index as usize))
    }

    /// The number of members, those that several views have counted once.
    pub fn member_count(&self) -> usize {
        self.header.members.count as usize
    }

    /// The member of that [`Member::index`]; `None` if there are not so many.
    ///
    /// # Errors
    ///
    /// If what is looked at of the tables is damaged.
    pub fn member_at(&self, index: usize) -> Result<Option<Member<'a>>, Error> {
        if index >= self.member_count() {
            return Ok(None);
        }
        Member::read(*self, index as u32).map(Some)
    }

    /// All members, each once.
    pub fn members(&self) -> impl Iterator<Item = Result<Member<'a>, Error>> + use<'a> {
        let archive = *self;
        (0..archive.header.members.count).map(move |index| Member::read(archive, index))
    }

    /// A text of the tables: its offset and length stand at `at`.
    fn text(&self, at: u64) -> Option<&'a [u8]> {
        let (offset, length) = (self.blob.u32(at)?, self.blob.u32(at.checked_add(4)?)?);
        let texts = self.header.texts;
        let end = u64::from(offset).checked_add(u64::from(length))?;
        if end > u64::from(texts.count) {
            return None;
        }
        let text = self.blob.get(texts.at + u64::from(offset), length.into())?;
        Some(text.0)
    }
}
