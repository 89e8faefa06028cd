//! Bytes that grow.

use crate::memory::{LARGE, PrivatePages};

/// Bytes that grow within a reserved capacity. A large capacity is pages of the system, which go back to it when the
/// bytes are dropped; those beyond the bytes take no memory.
#[derive(Debug, Default)]
pub(crate) struct GrowingBytes {
    small: Vec<u8>,
    large: Option<Large>,
}

#[derive(Debug)]
struct Large {
    pages: PrivatePages,
    size: usize,
}

impl GrowingBytes {
    pub fn bytes(&self) -> &[u8] {
        match &self.large {
            Some(large) => &large.pages[..large.size],
            None => &self.small,
        }
    }

    pub fn into_vec(self) -> Vec<u8> {
        match &self.large {
            Some(_) => self.bytes().to_vec(),
            None => self.small,
        }
    }

    /// Makes room for `capacity` bytes in all. Returns whether there is memory for them.
    pub fn reserve(&mut self, capacity: usize) -> bool {
        let current_capacity = match &self.large {
            Some(large) => large.pages.len(),
            None => self.small.capacity(),
        };
        if capacity <= current_capacity {
            return true;
        }
        if capacity < LARGE {
            let additional = capacity - self.small.len();
            return self.small.try_reserve_exact(additional).is_ok();
        }
        let Some(mut pages) = PrivatePages::new(capacity) else {
            return false;
        };
        let size = self.bytes().len();
        pages[..size].copy_from_slice(self.bytes());
        self.small = Vec::new();
        self.large = Some(Large { pages, size });
        true
    }

    /// Appends bytes, for which there is room.
    pub fn append(&mut self, bytes: &[u8]) {
        match &mut self.large {
            Some(large) => {
                let end = large.size + bytes.len();
                large.pages[large.size..end].copy_from_slice(bytes);
                large.size = end;
            }
            None => self.small.extend_from_slice(bytes),
        }
    }

    /// Appends `count` copies of a byte, for which there is room.
    pub fn fill(&mut self, byte: u8, count: usize) {
        match &mut self.large {
            Some(large) => {
                let end = large.size + count;
                large.pages[large.size..end].fill(byte);
                large.size = end;
            }
            None => self.small.resize(self.small.len() + count, byte),
        }
    }

    /// Releases what has room for more bytes. Pages that were never written take no memory.
    pub fn shrink_to_fit(&mut self) {
        self.small.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_stay_the_same_as_they_grow() {
        let mut bytes = GrowingBytes::default();
        let mut expected = Vec::new();
        for capacity in [1, 100, LARGE - 1, LARGE, LARGE + 5, 3 * LARGE] {
            assert!(bytes.reserve(capacity));
            let count = capacity - expected.len();
            let text: Vec<u8> = (0..count / 2).map(|index| index as u8).collect();
            bytes.append(&text);
            bytes.fill(7, count - text.len());
            expected.extend_from_slice(&text);
            expected.resize(capacity, 7);
            assert!(bytes.reserve(capacity / 2));
            bytes.shrink_to_fit();
            assert!(bytes.bytes() == expected, "{capacity}");
        }
        assert!(bytes.into_vec() == expected);
        assert!(!GrowingBytes::default().reserve(usize::MAX / 2));
    }
}
