//! Compressed offload bundles (`llvm/Object/OffloadBundle.h`).

use std::fmt;
use std::io::Read;

use gpustub_core::offload::{Compression, Container, ContainerFormat, unpack_lz4};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// Reason why a compressed bundle cannot be unpacked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnpackError {
    /// The container is not compressed as a whole.
    NotCompressed,
    /// Newer version of the form.
    Version(u32),
    /// Unknown compression method.
    Method(u16),
    /// The compressed part is damaged or cut off.
    Damaged,
    /// The stated size is above the caller's limit.
    TooLarge(usize),
}

impl fmt::Display for UnpackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotCompressed => f.write_str("it is not compressed"),
            Self::Version(version) => write!(f, "its version, {version}, is newer than gpustub"),
            Self::Method(method) => write!(f, "its compression method, {method}, is unknown"),
            Self::Damaged => f.write_str("its compressed part is damaged or cut off"),
            Self::TooLarge(size) => write!(f, "it has {size} bytes once unpacked"),
        }
    }
}

/// The bundle in a compressed bundle. It occupies a small multiple of `max_size` bytes at most.
///
/// # Errors
///
/// If the bundle states a larger size, or has another one.
pub fn unpack(container: &Container<'_>, max_size: usize) -> Result<Vec<u8>, UnpackError> {
    let size = container.unpacked_size;
    if size > max_size {
        return Err(UnpackError::TooLarge(size));
    }
    // One byte more shows that the stated size is wrong.
    let bundle = unpack_start(container, size.saturating_add(1))?;
    if bundle.len() == size {
        Ok(bundle)
    } else {
        Err(UnpackError::Damaged)
    }
}

/// The first `max_size` bytes of the bundle in a compressed bundle: its table precedes its code.
///
/// # Errors
///
/// If there is no such bundle.
pub fn unpack_start(container: &Container<'_>, max_size: usize) -> Result<Vec<u8>, UnpackError> {
    let Some(compressed) = container.compressed() else {
        return Err(match container.format {
            ContainerFormat::CompressedBundle => UnpackError::Version(container.version),
            _ => UnpackError::NotCompressed,
        });
    };
    let bundle = match container.compression {
        Some(Compression::Zlib) => inflate(compressed, max_size),
        Some(Compression::Zstd) => unzstd(compressed, max_size),
        Some(Compression::Unknown(method)) => return Err(UnpackError::Method(method)),
        Some(Compression::Lz4) | None => None,
    };
    bundle.ok_or(UnpackError::Damaged)
}

/// Code of a container's entry, or the whole of a compressed bundle, of the stated size; `None` if it has another size or
/// is damaged, or the method is unknown.
pub fn decompress(method: Compression, compressed: &[u8], size: usize) -> Option<Vec<u8>> {
    // One byte more shows that the stated size is wrong.
    let max_size = size.saturating_add(1);
    let bytes = match method {
        Compression::Zlib => inflate(compressed, max_size),
        Compression::Zstd => unzstd(compressed, max_size),
        Compression::Lz4 => unpack_lz4(compressed, size),
        Compression::Unknown(_) => None,
    };
    bytes.filter(|bytes| bytes.len() == size)
}

fn inflate(compressed: &[u8], max_size: usize) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    flate2::read::ZlibDecoder::new(compressed)
        .take(max_size as u64)
        .read_to_end(&mut bytes)
        .ok()?;
    Some(bytes)
}

fn unzstd(compressed: &[u8], max_size: usize) -> Option<Vec<u8>> {
    // The decoder refuses large windows; clang's is the whole bundle. Nothing is released before the end here, so that
    // the window may be as small as the largest block ("Zstandard Compression", RFC 8878, Frame_Header).
    const MAGIC: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];
    const WINDOW: usize = 128 << 10;
    const WINDOW_DESCRIPTOR: [u8; 2] = [0, 7 << 3];
    let [descriptor, ..] = compressed.strip_prefix(&MAGIC)? else {
        return None;
    };
    let is_single_segment = descriptor >> 5 & 1 != 0;
    let content_size = match (descriptor >> 6, is_single_segment) {
        (0, false) => 0,
        (flag, _) => 1 << flag,
    };
    let dictionary_id = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let blocks = 5 + usize::from(!is_single_segment) + dictionary_id + content_size;
    let header = [&MAGIC[..], &WINDOW_DESCRIPTOR].concat();
    let mut frame = header.chain(compressed.get(blocks..)?);
    let mut decoder = FrameDecoder::new();
    decoder.init(&mut frame).ok()?;
    let limit = BlockDecodingStrategy::UptoBytes(max_size.saturating_add(WINDOW));
    decoder.decode_blocks(&mut frame, limit).ok()?;
    let mut bytes = Vec::new();
    decoder.take(max_size as u64).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}
