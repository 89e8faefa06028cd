//! Names, each hashed once.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

use gpustub_archive::hash;

/// Names, numbered as they first come.
#[derive(Debug, Default)]
pub struct Names<'n> {
    all: Vec<Name<'n>>,
    numbers: HashMap<Name<'n>, usize, AsItIs>,
}

/// A name, and its hash as the tables have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Name<'n> {
    pub hash: u64,
    pub bytes: &'n [u8],
}

impl<'n> Names<'n> {
    /// The number of a name.
    pub fn number(&mut self, bytes: &'n [u8]) -> usize {
        let hash = hash::of(bytes);
        let name = Name { hash, bytes };
        *self.numbers.entry(name).or_insert_with(|| {
            self.all.push(name);
            self.all.len() - 1
        })
    }

    pub fn get(&self, number: usize) -> Name<'n> {
        self.all[number]
    }

    pub fn count(&self) -> usize {
        self.all.len()
    }
}

impl Hash for Name<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// For keys that are hashes, or have one.
pub type AsItIs = BuildHasherDefault<Hashed>;

#[derive(Default)]
pub struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 ^= hash::of(bytes);
    }
}
