//! Edits of the dynamic section.

use object::elf::{self, DynamicTag};

use super::image::DYN;
use super::problem::Problem;
use super::strings::NewStrings;

/// The entries of a dynamic section, without `DT_NULL`.
pub(super) struct Dynamic {
    entries: Vec<(DynamicTag, u64)>,
}

impl Dynamic {
    pub(super) fn new(entries: impl Iterator<Item = (DynamicTag, u64)>) -> Self {
        Self {
            entries: entries.collect(),
        }
    }

    /// Replaces the needed libraries `before` by `after`, in their place.
    pub(super) fn set_needed(
        &mut self,
        before: &[String],
        after: &[String],
        strings: &mut NewStrings<'_>,
    ) -> Result<(), Problem> {
        let is_needed = |entry: &(DynamicTag, u64)| entry.0 == elf::DT_NEEDED;
        let first = self.entries.iter().position(is_needed).unwrap_or(0);
        let old: Vec<u64> = (self.entries.iter().filter(|e| is_needed(e)).map(|e| e.1)).collect();
        self.entries.retain(|entry| !is_needed(entry));
        for (i, name) in after.iter().enumerate() {
            let kept = before.iter().zip(&old).find(|(old, _)| *old == name);
            let offset = match kept {
                Some((_, &offset)) => offset,
                None => strings.intern(name)?.into(),
            };
            self.entries.insert(first + i, (elf::DT_NEEDED, offset));
        }
        Ok(())
    }

    /// Sets the value of a tag, which is appended if there is none.
    pub(super) fn set(&mut self, tag: DynamicTag, value: u64) {
        let mut entries = self
            .entries
            .iter_mut()
            .filter(|entry| entry.0 == tag)
            .peekable();
        if entries.peek().is_none() {
            self.entries.push((tag, value));
            return;
        }
        entries.for_each(|entry| entry.1 = value);
    }

    /// Size with one terminating entry.
    pub(super) fn size(&self) -> u64 {
        (self.entries.len() as u64 + 1) * DYN
    }

    /// The section, filled up with `DT_NULL`.
    pub(super) fn write(&self, size: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (tag, value) in &self.entries {
            bytes.extend(tag.0.to_le_bytes());
            bytes.extend(value.to_le_bytes());
        }
        bytes.resize(size as usize, 0);
        bytes
    }
}
