//! Hashes of contents.
//!
//! `DefaultHasher` is SipHash of 64 bits, which no input of a build is made to collide with.
//! Another release of Rust may have another one: entries of both then have different names.

use std::fs::File;
use std::hash::{DefaultHasher, Hasher};
use std::io::Read;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use gpustub_core::by_name::ByName;

use crate::fingerprint;

/// Hash of a text, as a file name.
pub(super) fn hash_text(text: &str) -> String {
    let mut hasher = DefaultHasher::new();
    hasher.write(text.as_bytes());
    name(&hasher)
}

fn name(hasher: &DefaultHasher) -> String {
    format!("{:016x}", hasher.finish())
}

/// Hashes of files, each of which is read once as long as it stays as it is: many sources include
/// one header.
#[derive(Default)]
pub(super) struct Hashes(Mutex<ByName<String>>);

impl Hashes {
    /// Hash of a file, if it can be read.
    pub(super) fn of(&self, path: &Path) -> Option<String> {
        let state = fingerprint::state(path)?;
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(hash) = known.get(&state) {
            return Some(hash.clone());
        }
        drop(known);
        let hash = hash_file(path)?;
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(&state, hash.clone());
        Some(hash)
    }
}

fn hash_file(path: &Path) -> Option<String> {
    let mut file = File::open(path).ok()?;
    let mut hasher = DefaultHasher::new();
    let mut buffer = vec![0; 1 << 16];
    let mut size = 0;
    loop {
        let read = file.read(&mut buffer).ok()?;
        if read == 0 {
            hasher.write_usize(size);
            return Some(name(&hasher));
        }
        size += read;
        hasher.write(&buffer[..read]);
    }
}
