//! Decompression by libzstd.

use zstd_safe::DCtx;

use crate::contents::ZSTD;

/// Decompresses a zstd frame: a function for [`Contents::decompress`](crate::Contents::decompress).
///
/// Memory that libzstd allocates does not depend on the frame: the result is written to `out` directly.
///
/// ```
/// # use gpustub_archive::SuperArchive;
/// # let bytes = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sample.a"));
/// # let archive = SuperArchive::parse(bytes)?;
/// # const LIMIT: u64 = 1 << 20;
/// for contents in archive.contents() {
///     let contents = contents?;
///     // Sizes are the file's: limit them.
///     let (size, scratch_size) = (contents.size(), contents.scratch_size()?);
///     assert!(size <= LIMIT && scratch_size <= LIMIT);
///     let (mut out, mut scratch) = (vec![0; size as usize], vec![0; scratch_size as usize]);
///     contents.decompress(&mut out, &mut scratch, gpustub_archive::zstd)?;
/// }
/// # Ok::<(), gpustub_archive::Error>(())
/// ```
pub fn zstd(codec: u8, stored: &[u8], base: Option<&[u8]>, out: &mut [u8]) -> bool {
    let Some(mut context) = DCtx::try_create().filter(|_| codec == ZSTD) else {
        return false;
    };
    if let Some(base) = base {
        if context.ref_prefix(base).is_err() {
            return false;
        }
    }
    context.decompress(out, stored) == Ok(out.len())
}
