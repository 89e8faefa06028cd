//! Definitions as they are gathered.

use std::borrow::Cow;

use crate::error::Problem;
use crate::strings::ALL;
use crate::superarchive::Definition;

/// The definitions of one file. Tables of a small hostile file may give one long name to many
/// symbols, so what they add up to has a limit.
pub struct Found<'d> {
    pub list: Vec<Definition<'d>>,
    left: usize,
}

impl<'d> Found<'d> {
    pub fn new() -> Self {
        Self {
            list: Vec::new(),
            left: ALL,
        }
    }

    /// Adds a definition. Nothing can be linked with a name of no bytes.
    pub fn add(&mut self, name: impl Into<Cow<'d, [u8]>>, weak: bool) -> Result<(), Problem> {
        let name = name.into();
        if name.is_empty() {
            return Ok(());
        }
        // Indices of archives end names with it.
        if name.contains(&0) {
            return Err(Problem::Malformed("the name of a symbol has a zero byte"));
        }
        let left = self.left.checked_sub(name.len());
        self.left = left.ok_or(Problem::Malformed("its names add up to too much text"))?;
        self.list.push(Definition { name, weak });
        Ok(())
    }
}
