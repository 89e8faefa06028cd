//! The wrapper that Apple's tools put around bitcode.

use super::bits::word;
use super::codes::MAGIC;
use crate::error::Problem;

/// Bitcode without its wrapper (LLVM's `BitCodeFormat.rst`, "Bitcode Wrapper Format").
pub fn unwrapped(data: &[u8]) -> Result<&[u8], Problem> {
    if data.starts_with(b"BC") {
        return Ok(data);
    }
    let bitcode = word(data, 8)
        .zip(word(data, 12))
        .and_then(|(offset, size)| {
            let (offset, size) = (offset as usize, size as usize);
            data.get(offset..offset.checked_add(size)?)
        })
        .ok_or(Problem::Truncated("wrapped bitcode"))?;
    if bitcode.starts_with(MAGIC) {
        Ok(bitcode)
    } else {
        Err(Problem::Malformed(
            "contents of the bitcode wrapper are not bitcode",
        ))
    }
}
