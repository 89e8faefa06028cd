//! Results of making symbols of a member undefined.

/// A variant of a member.
#[derive(Debug)]
pub struct Undefined {
    pub data: Vec<u8>,
    /// Positions of symbols that compilers may have inlined into others: the one-definition rule lets them
    /// assume that all definitions are equal.
    pub inlined: Vec<usize>,
}

/// The position of a symbol that cannot be undefined, and the reason.
pub type Refused = (usize, &'static str);
