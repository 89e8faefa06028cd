//! Values with their byte ranges in a file.

use std::ops::Range;

/// A value and its byte range in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spanned<T> {
    /// The value.
    pub value: T,
    /// Byte range.
    pub span: Range<usize>,
}

/// The values without their byte ranges.
pub(crate) fn values<T: Clone>(spanned: &[Spanned<T>]) -> Vec<T> {
    spanned
        .iter()
        .map(|spanned| spanned.value.clone())
        .collect()
}
