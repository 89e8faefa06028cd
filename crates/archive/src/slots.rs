//! Hash tables of names, in the order of their hashes.

use crate::format::Records;

/// Slots of a table: each name is in its home, or at most `longest` slots behind it.
#[derive(Clone, Copy, Debug)]
pub struct Slots {
    records: Records,
    homes: u32,
    longest: u32,
}

impl Slots {
    /// A table of these slots, the last `longest` of which are the home of no name.
    pub fn new(records: Records, longest: u32) -> Option<Self> {
        let homes = records.count.checked_sub(longest)?;
        Some(Self {
            records,
            homes,
            longest,
        })
    }

    pub fn count(self) -> u32 {
        self.records.count
    }

    pub fn longest(self) -> u32 {
        self.longest
    }

    /// Offset of the first slot.
    pub fn start(self) -> u64 {
        self.records.offset
    }

    pub fn end(self) -> u64 {
        self.records.end()
    }

    /// Offset of a slot.
    pub fn offset(self, slot: u32) -> Option<u64> {
        self.records.get(slot)
    }

    /// The first slot that a name of this hash can have.
    pub fn home(self, hash: u64) -> u32 {
        (((hash >> 32) * u64::from(self.homes)) >> 32) as u32
    }

    /// Offsets of the slots that a name of this hash can have.
    pub fn walk(self, hash: u64) -> impl Iterator<Item = u64> {
        let home = self.home(hash);
        let end = match self.homes {
            0 => home,
            // At most the number of slots, and homes are less than that.
            _ => home.saturating_add(self.longest).saturating_add(1),
        };
        (home..end).filter_map(move |slot| self.offset(slot))
    }
}
