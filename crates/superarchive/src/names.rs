//! Interned names, each hashed once.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::ops::Index;

use gpustub_archive::hash::hash_bytes;

use crate::ids::{IndexVec, NameId};

/// Names, numbered by first occurrence.
#[derive(Debug, Default)]
pub struct Names<'n> {
    names: IndexVec<NameId, Hashed<'n>>,
    ids: HashMap<Hashed<'n>, NameId, FastHash>,
}

/// A name or contents, with the hash that the tables have.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Hashed<'n> {
    pub hash: u64,
    pub bytes: &'n [u8],
}

impl<'n> Hashed<'n> {
    pub fn new(bytes: &'n [u8]) -> Self {
        let hash = hash_bytes(bytes);
        Self { hash, bytes }
    }
}

impl<'n> Names<'n> {
    /// The id of a name, which is added if it is new.
    pub fn intern(&mut self, bytes: &'n [u8]) -> NameId {
        let name = Hashed::new(bytes);
        *(self.ids.entry(name)).or_insert_with(|| self.names.push(name))
    }

    /// The id of a name that was added.
    pub fn find(&self, bytes: &'n [u8]) -> Option<NameId> {
        self.ids.get(&Hashed::new(bytes)).copied()
    }

    /// Number of names.
    pub fn count(&self) -> usize {
        self.names.len()
    }
}

impl<'n> Index<NameId> for Names<'n> {
    type Output = Hashed<'n>;

    fn index(&self, id: NameId) -> &Hashed<'n> {
        &self.names[id]
    }
}

impl Hash for Hashed<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// Hash builder for keys of names, numbers and hashes. The order of the maps is not used.
pub type FastHash = BuildHasherDefault<FastHasher>;

/// Mixes each part of a key with one multiplication.
#[derive(Default)]
pub struct FastHasher(u64);

impl Hasher for FastHasher {
    fn finish(&self) -> u64 {
        // The upper bits of a product are the better ones; maps use the lower ones.
        self.0.rotate_left(32)
    }

    fn write_u64(&mut self, part: u64) {
        self.0 = (self.0.rotate_left(5) ^ part).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn write_u32(&mut self, part: u32) {
        self.write_u64(part.into());
    }

    fn write_usize(&mut self, part: usize) {
        self.write_u64(part as u64);
    }

    fn write(&mut self, bytes: &[u8]) {
        self.write_u64(hash_bytes(bytes));
    }
}
