//! Interned names, each hashed once.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::ops::Index;

use gpustub_archive::hash::hash_bytes;

use crate::ids::{IndexVec, NameId};

/// Names, numbered by first occurrence.
#[derive(Debug, Default)]
pub struct Names<'n> {
    names: IndexVec<NameId, Name<'n>>,
    ids: HashMap<Name<'n>, NameId, PrecomputedHash>,
}

/// A name, and its hash in the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Name<'n> {
    pub hash: u64,
    pub bytes: &'n [u8],
}

impl<'n> Names<'n> {
    /// The id of a name, which is added if it is new.
    pub fn intern(&mut self, bytes: &'n [u8]) -> NameId {
        let hash = hash_bytes(bytes);
        let name = Name { hash, bytes };
        *(self.ids.entry(name)).or_insert_with(|| self.names.push(name))
    }

    /// Number of names.
    pub fn count(&self) -> usize {
        self.names.len()
    }
}

impl<'n> Index<NameId> for Names<'n> {
    type Output = Name<'n>;

    fn index(&self, id: NameId) -> &Name<'n> {
        &self.names[id]
    }
}

impl Hash for Name<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// Hash builder for keys that are hashes, or have one.
pub type PrecomputedHash = BuildHasherDefault<PrecomputedHasher>;

/// Passes a hash through.
#[derive(Default)]
pub struct PrecomputedHasher(u64);

impl Hasher for PrecomputedHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 ^= hash_bytes(bytes);
    }
}
