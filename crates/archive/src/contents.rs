//! Contents of members, each stored once.

use crate::bytes::{Bytes, long, word};
use crate::container::AR_HEADER_SIZE;
use crate::error::{Error, Part};
use crate::hash::hash_bytes;
use crate::tables::Store;

const HIDDEN: u32 = 1;
const VARIANT: u32 = 2;

/// Codec of contents that are one zstd frame.
pub const ZSTD: u8 = 1;

/// Contents of members with any number of names, in any number of views.
///
/// ```
/// # use gpustub_archive::SuperArchive;
/// # let bytes = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sample.a"));
/// # let archive = SuperArchive::parse(bytes)?;
/// let sizes = archive.contents().map(|contents| Ok(contents?.data()?.len()));
/// let sum: usize = sizes.sum::<Result<_, gpustub_archive::Error>>()?;
/// assert!(sum < bytes.len());
/// # Ok::<(), gpustub_archive::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Contents<'a> {
    store: Store<'a>,
    index: u32,
    record: &'a [u8; 48],
}

impl<'a> Contents<'a> {
    pub(crate) fn read(store: Store<'a>, index: u32) -> Result<Self, Error> {
        let record = store
            .contents
            .get(index)
            .and_then(|offset| store.blob.array(offset))
            .ok_or(Error::Malformed(Part::Contents))?;
        let contents = Self {
            store,
            index,
            record,
        };
        if contents.flags() & !(HIDDEN | VARIANT) != 0 || contents.codec() > ZSTD {
            return Err(Error::UnsupportedContents { contents: index });
        }
        Ok(contents)
    }

    fn hash(&self) -> u64 {
        long(self.record, 24)
    }

    fn flags(&self) -> u32 {
        word(self.record, 32)
    }

    fn codec(&self) -> u8 {
        self.record[36]
    }

    /// Binary logarithm.
    fn alignment(&self) -> u8 {
        self.record[37]
    }

    /// Index of the base plus one; 0: none.
    fn base_plus_one(&self) -> u32 {
        word(self.record, 40)
    }

    fn header_hash(&self) -> u32 {
        word(self.record, 44)
    }

    /// Index among the contents of the archive. Members have equal contents if the index is the same.
    pub fn index(&self) -> usize {
        self.index as usize
    }

    /// Size in bytes, when it is not compressed.
    pub fn size(&self) -> u64 {
        long(self.record, 16)
    }

    /// Size in the file.
    pub fn stored_size(&self) -> u64 {
        long(self.record, 8)
    }

    /// Offset in the archive, or of hidden contents in the tables' part of it.
    #[doc(hidden)]
    pub fn offset(&self) -> u64 {
        long(self.record, 0)
    }

    /// Whether it belongs to an ordinary member of the archive, which other tools read.
    pub fn in_default_view(&self) -> bool {
        self.flags() & HIDDEN == 0
    }

    /// Whether [`Contents::decompress`] alone gives its bytes.
    pub fn is_compressed(&self) -> bool {
        self.codec() != 0
    }

    /// Whether symbols that an earlier layer overrides are undefined in it.
    pub fn is_variant(&self) -> bool {
        self.flags() & VARIANT != 0
    }

    /// The alignment, from the beginning of the archive, that the writer gave it. Other tools move
    /// members.
    pub fn written_alignment(&self) -> u64 {
        1_u64.checked_shl(self.alignment().into()).unwrap_or(1)
    }

    /// The contents before symbols became undefined; the same ones, if they are no variant.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] if the tables are corrupt.
    pub fn original(&self) -> Result<Self, Error> {
        if !self.is_variant() {
            return Ok(*self);
        }
        self.base()?.ok_or(Error::Malformed(Part::Contents))
    }

    fn base(&self) -> Result<Option<Self>, Error> {
        let Some(index) = self.base_plus_one().checked_sub(1) else {
            return Ok(None);
        };
        let base = Self::read(self.store, index)?;
        if base.base_plus_one() != 0 {
            return Err(Error::Malformed(Part::Contents));
        }
        Ok(Some(base))
    }

    /// The bytes in the file.
    ///
    /// # Errors
    ///
    /// [`Error::Compressed`] for compressed contents, [`Error::MemberMoved`] if another tool has
    /// moved the member, or its header is not as written, [`Error::Malformed`] if the tables are corrupt.
    pub fn data(&self) -> Result<&'a [u8], Error> {
        if self.codec() != 0 {
            return Err(Error::Compressed {
                contents: self.index,
            });
        }
        if self.stored_size() != self.size() {
            return Err(Error::Malformed(Part::Contents));
        }
        self.stored_bytes()
    }

    fn stored_bytes(&self) -> Result<&'a [u8], Error> {
        if !self.in_default_view() {
            return match self.store.blob.get(self.offset(), self.stored_size()) {
                Some(data) => Ok(data.0),
                None => Err(Error::Malformed(Part::Contents)),
            };
        }
        let moved = Error::MemberMoved {
            contents: self.index,
        };
        let archive = self.store.archive;
        let header_offset = self.offset().checked_sub(AR_HEADER_SIZE).ok_or(moved)?;
        let header = archive.get(header_offset, AR_HEADER_SIZE).ok_or(moved)?;
        if hash_bytes(header.0) as u32 != self.header_hash() {
            return Err(moved);
        }
        let data = archive
            .get(self.offset(), self.stored_size())
            .ok_or(moved)?;
        Ok(data.0)
    }

    /// The size that `scratch` has to have for [`Contents::decompress`]: that of a base that is itself
    /// compressed.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] if the tables are corrupt.
    pub fn scratch_size(&self) -> Result<u64, Error> {
        match self.base()? {
            Some(base) if self.codec() != 0 && base.codec() != 0 => Ok(base.size()),
            _ => Ok(0),
        }
    }

    /// Copies the contents to `out`, which has their size. `decompress(codec, stored, base, out)` is called for
    /// compressed ones: the codec is 1 for zstd, `base` a prefix or dictionary; it returns whether it
    /// filled all of `out`.
    ///
    /// # Errors
    ///
    /// [`Error::Decompression`] if a buffer has another size, the function fails or the result has another
    /// hash; otherwise as [`Contents::data`].
    pub fn decompress(
        &self,
        out: &mut [u8],
        scratch: &mut [u8],
        mut decompress: impl FnMut(u8, &[u8], Option<&[u8]>, &mut [u8]) -> bool,
    ) -> Result<(), Error> {
        if self.codec() == 0 {
            let data = self.data()?;
            if out.len() != data.len() {
                return Err(Error::Decompression {
                    contents: self.index,
                });
            }
            out.copy_from_slice(data);
            return Ok(());
        }
        match self.base()? {
            None => self.unpack(out, None, &mut decompress),
            Some(base) if base.codec() == 0 => {
                self.unpack(out, Some(base.data()?), &mut decompress)
            }
            Some(base) => {
                base.unpack(scratch, None, &mut decompress)?;
                self.unpack(out, Some(scratch), &mut decompress)
            }
        }
    }

    fn unpack(
        &self,
        out: &mut [u8],
        base: Option<&[u8]>,
        decompress: &mut impl FnMut(u8, &[u8], Option<&[u8]>, &mut [u8]) -> bool,
    ) -> Result<(), Error> {
        if out.len() as u64 == self.size()
            && decompress(self.codec(), self.stored_bytes()?, base, out)
            && hash_bytes(out) == self.hash()
        {
            Ok(())
        } else {
            Err(Error::Decompression {
                contents: self.index,
            })
        }
    }

    /// Checks fields, and the contents against their hash unless they are compressed.
    pub(crate) fn verify(&self, compressed: bool) -> Result<(), Error> {
        let base = self.base()?;
        let may_have_base = self.is_variant() || self.codec() != 0;
        let is_valid = self.record[38..40] == [0; 2]
            && self.alignment() < 32
            && (base.is_none() || may_have_base)
            && base.is_none_or(|base| !base.is_variant())
            && (base.is_some() || !self.is_variant())
            && (self.in_default_view() || self.header_hash() == 0)
            && (self.codec() == 0 || compressed && !self.in_default_view());
        if !is_valid {
            return Err(Error::Malformed(Part::Contents));
        }
        if self.codec() != 0 {
            return self.stored_bytes().map(|_| ());
        }
        if hash_bytes(self.data()?) == self.hash() {
            Ok(())
        } else {
            Err(Error::HashMismatch {
                contents: self.index,
            })
        }
    }

    /// The offset of hidden contents in the blob, and their stored bytes.
    pub(crate) fn hidden(&self) -> Option<(u64, Bytes<'a>)> {
        let bytes = self.store.blob.get(self.offset(), self.stored_size())?;
        (!self.in_default_view()).then_some((self.offset(), bytes))
    }
}
