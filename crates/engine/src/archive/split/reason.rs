//! Options of a split, and reasons against it.

/// Reason why a module is not split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unsplit(pub(super) &'static str);

pub(super) type Result<T> = std::result::Result<T, Unsplit>;

/// Form of the members.
#[derive(Debug, Clone, Copy)]
pub(super) struct Options {
    /// Without the processor, source file name and producer, as canonical bitcode.
    pub(super) canonical: bool,
}
