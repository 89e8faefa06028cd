//! Definitions of one file, as a reader finds them.

use std::borrow::Cow;

use crate::error::Problem;

/// Limit of the total length of all names of one file. Names share suffixes, so a small hostile
/// table could otherwise expand to terabytes of text.
pub const MAX_NAMES_LENGTH: usize = 256 * 1024 * 1024;

/// A symbol that a member defines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition<'d> {
    /// Name as linkers resolve it.
    pub name: Cow<'d, [u8]>,
    /// Whether another definition may replace it.
    pub binding: Binding,
}

/// Whether another definition may replace a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Binding {
    /// None may.
    Strong,
    /// Any may: weak or common. Modules of bitcode have several forms of it.
    Weak,
    /// Equal ones may: it is in a group of which linkers keep one.
    Comdat,
}

impl Binding {
    /// Weak or strong.
    pub fn weak_if(weak: bool) -> Self {
        if weak { Self::Weak } else { Self::Strong }
    }
}

/// Collects the definitions of one file. Tables of a small hostile file may give one long name to
/// many symbols, so the total length of the names is limited.
pub struct Collector<'d> {
    pub definitions: Vec<Definition<'d>>,
    /// Remaining length of names.
    remaining_length: usize,
}

impl<'d> Collector<'d> {
    pub fn new() -> Self {
        Self {
            definitions: Vec::new(),
            remaining_length: MAX_NAMES_LENGTH,
        }
    }

    /// Adds a definition. Empty names are skipped: no reference can have them.
    pub fn add(&mut self, name: impl Into<Cow<'d, [u8]>>, binding: Binding) -> Result<(), Problem> {
        let name = name.into();
        if name.is_empty() {
            return Ok(());
        }
        // Archive indices end names with a zero byte.
        if name.contains(&0) {
            return Err(Problem::Malformed("symbol name contains a zero byte"));
        }
        self.remaining_length = self
            .remaining_length
            .checked_sub(name.len())
            .ok_or(Problem::Malformed("names add up to too much text"))?;
        self.definitions.push(Definition { name, binding });
        Ok(())
    }
}
