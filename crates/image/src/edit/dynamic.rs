//! Edits of the dynamic section.

use object::elf::{self, DynamicTag};

use super::image::DYN;
use super::problem::EditProblem;
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
    ) -> Result<(), EditProblem> {
        let first = self
            .entries
            .iter()
            .position(|(tag, _)| *tag == elf::DT_NEEDED)
            .unwrap_or(0);
        let mut old_offsets = Vec::new();
        self.entries.retain(|&(tag, offset)| {
            if tag == elf::DT_NEEDED {
                old_offsets.push(offset);
            }
            tag != elf::DT_NEEDED
        });
        for (i, name) in after.iter().enumerate() {
            let kept = before.iter().position(|old_name| old_name == name);
            let offset = match kept.and_then(|index| old_offsets.get(index)) {
                Some(&offset) => offset,
                None => strings.intern(name)?.into(),
            };
            self.entries.insert(first + i, (elf::DT_NEEDED, offset));
        }
        Ok(())
    }

    /// Sets the value of a tag, which is appended if there is none.
    pub(super) fn set(&mut self, tag: DynamicTag, value: u64) {
        let mut is_present = false;
        for entry in &mut self.entries {
            if entry.0 == tag {
                entry.1 = value;
                is_present = true;
            }
        }
        if !is_present {
            self.entries.push((tag, value));
        }
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
