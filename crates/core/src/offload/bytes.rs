//! Numbers and texts of files, which may be damaged.

/// Limit above any name of a section, target or key.
const MAX_TEXT: usize = 256;

/// A little-endian number of up to eight bytes.
pub(super) fn number(data: &[u8], offset: usize, size: usize) -> Option<usize> {
    let bytes = data.get(offset..)?.get(..size)?;
    let value = bytes
        .iter()
        .rev()
        .fold(0, |value: u64, byte| value << 8 | u64::from(*byte));
    usize::try_from(value).ok()
}

/// Text up to the next zero.
pub(super) fn text(data: &[u8], offset: usize) -> Option<&[u8]> {
    let data = data.get(offset..)?;
    data[..data.len().min(MAX_TEXT)]
        .split(|byte| *byte == 0)
        .next()
}

/// A name for messages: at most [`MAX_TEXT`] bytes of it.
pub(super) fn name(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_TEXT)]).into_owned()
}
