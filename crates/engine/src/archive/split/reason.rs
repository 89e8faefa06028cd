//! How modules are split, and why they are not.

/// Reason why a module is not split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unsplit(pub(super) &'static str);

pub(super) type Result<T> = std::result::Result<T, Unsplit>;

/// How members are written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Options {
    /// Without the processor, source file name and producer, as canonical bitcode.
    pub(super) canonical: bool,
}
