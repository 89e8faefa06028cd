//! Contents of super-archives that are compressed.

use std::collections::HashMap;

use gpustub_archive::{Contents, Error, SuperArchive};

/// Limit on the size of contents, in all.
const MAX_SIZE: u64 = 4 << 30;

/// Decompressed contents of a super-archive, from which members borrow.
#[derive(Debug, Default)]
pub struct Decompressed {
    /// By the indices of contents.
    bytes: HashMap<usize, Vec<u8>>,
    size: u64,
}

impl Decompressed {
    /// Decompresses contents, if they are compressed and new.
    ///
    /// # Errors
    ///
    /// [`Error::Compressed`] without the feature `zstd`, [`Error::Decompression`] if the contents are damaged or all
    /// together have more than 4 GiB; otherwise those of [`Contents::data`].
    pub fn add(&mut self, contents: &Contents<'_>) -> Result<(), Error> {
        let index = contents.index();
        if contents.is_compressed() && !self.bytes.contains_key(&index) {
            self.size = self.size.saturating_add(contents.size());
            if self.size > MAX_SIZE {
                return Err(Error::Decompression {
                    contents: index as u32,
                });
            }
            self.bytes.insert(index, decompress(contents)?);
        }
        Ok(())
    }

    /// Bytes of contents that were added, or are not compressed.
    ///
    /// # Errors
    ///
    /// The errors of [`Contents::data`].
    pub fn data<'d>(&'d self, contents: &Contents<'d>) -> Result<&'d [u8], Error> {
        match self.bytes.get(&contents.index()) {
            Some(bytes) => Ok(bytes),
            None => contents.data(),
        }
    }
}

/// Verifies a super-archive with its compressed contents.
///
/// # Errors
///
/// The errors of [`SuperArchive::verify`] and [`Decompressed::add`].
pub fn verify(archive: &SuperArchive<'_>) -> Result<(), Error> {
    archive.verify()?;
    for contents in archive.contents() {
        Decompressed::default().add(&contents?)?;
    }
    Ok(())
}

/// Bytes of a zstd frame, of the stated size; `None` if it has another one, or is damaged.
#[cfg(feature = "zstd")]
pub fn decompress_frame(frame: &[u8], size: usize) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(size).ok()?;
    bytes.resize(size, 0);
    gpustub_archive::zstd(gpustub_archive::ZSTD, frame, None, &mut bytes).then_some(bytes)
}

#[cfg(feature = "zstd")]
fn decompress(contents: &Contents<'_>) -> Result<Vec<u8>, Error> {
    /// Limit on the size of one. The frame of a hostile file may have a thousandth of it.
    const MAX_CONTENTS_SIZE: u64 = 1 << 30;
    let failed = Error::Decompression {
        contents: contents.index() as u32,
    };
    let scratch_size = contents.scratch_size()?;
    if scratch_size.max(contents.size()) > MAX_CONTENTS_SIZE {
        return Err(failed);
    }
    let (mut bytes, mut scratch) = (Vec::new(), Vec::new());
    for (buffer, size) in [(&mut bytes, contents.size()), (&mut scratch, scratch_size)] {
        let size = usize::try_from(size).map_err(|_| failed)?;
        buffer.try_reserve_exact(size).map_err(|_| failed)?;
        buffer.resize(size, 0);
    }
    contents.decompress(&mut bytes, &mut scratch, gpustub_archive::zstd)?;
    Ok(bytes)
}

#[cfg(not(feature = "zstd"))]
fn decompress(contents: &Contents<'_>) -> Result<Vec<u8>, Error> {
    Err(Error::Compressed {
        contents: contents.index() as u32,
    })
}
