//! The wrapper that Apple's tools put around bitcode.

use super::codes::MAGIC;
use crate::error::Problem;

/// Bitcode without its wrapper (LLVM's `BitCodeFormat.rst`, "Bitcode Wrapper Format").
pub fn unwrapped(data: &[u8]) -> Result<&[u8], Problem> {
    if data.starts_with(b"BC") {
        return Ok(data);
    }
    let word = |at: usize| {
        let bytes = data.get(at..at + 4)?.try_into().ok()?;
        Some(u32::from_le_bytes(bytes) as usize)
    };
    let inner = word(8)
        .zip(word(12))
        .and_then(|(at, size)| data.get(at..at.checked_add(size)?));
    let inner = inner.ok_or(Problem::Truncated("wrapped bitcode"))?;
    if inner.starts_with(MAGIC) {
        Ok(inner)
    } else {
        Err(Problem::Malformed(
            "contents of the bitcode wrapper are not bitcode",
        ))
    }
}
