//! Values with their byte ranges in a file.

use std::ops::Range;

/// A value and its byte range in the file.
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(PartialEq, Eq, Clone)]
pub struct Spanned<T> {
    /// The value.
    pub value: T,
    /// Byte range.
    pub span: Range<usize>,
}

/// The values without their byte ranges.
pub(crate) fn values<T: Clone>(spanned: &[Spanned<T>]) -> Vec<T> {
    let mut values = Vec::new();
    for spanned in spanned {
        values.push(spanned.value.clone());
    }
    values
}
