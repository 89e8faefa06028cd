//! A string table that grows at its end.

use memchr::memmem;

use super::problem::EditProblem;

/// A string table: that of the image, and strings to append.
pub(super) struct NewStrings<'t> {
    old: &'t [u8],
    pub(super) added: Vec<u8>,
}

impl<'t> NewStrings<'t> {
    pub(super) fn new(old: &'t [u8]) -> Self {
        Self {
            old,
            added: Vec::new(),
        }
    }

    /// Size of the table with the new strings.
    pub(super) fn size(&self) -> u64 {
        (self.old.len() + self.added.len()) as u64
    }

    /// Offset of a string, which is appended unless a string of the table ends with it.
    pub(super) fn intern(&mut self, text: &str) -> Result<u32, EditProblem> {
        let text = [text.as_bytes(), b"\0"].concat();
        let offset = if let Some(offset) = memmem::find(self.old, &text) {
            offset
        } else if let Some(offset) = memmem::find(&self.added, &text) {
            self.old.len() + offset
        } else {
            let offset = self.old.len() + self.added.len();
            self.added.extend(&text);
            offset
        };
        u32::try_from(offset).map_err(|_| EditProblem::Layout("the string table is full"))
    }
}
