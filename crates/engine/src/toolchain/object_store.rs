//! Objects that the packages of a target directory share: the run time is the same in all of them, and adapters in those
//! that declare the same libraries.
//!
//! ```text
//! <target directory>/gpustub-objects/
//!     <hash>/         hash of a preprocessed source, a command and the compiler's report; locked by the process that compiles
//!         object      the object, then a hash of it
//! ```
//!
//! The store only saves time: where it cannot be read or written, each build script compiles its sources.

use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Toolchain;
use super::msvc::Family;
use super::tool::words;
use crate::files;
use crate::lock::Lock;
use crate::target_dir;

/// Size of a hash as text.
const HASH_SIZE: usize = 16;

/// Flags of objects with files beside them. Zig adds the last one, with another file each time; it has a cache of its own.
const FLAGS_WITH_FILES: [&str; 4] = ["-coverage", "-fprofile-", "split-dwarf", "-dependency-file"];

/// Age at which an object is removed.
const MAX_AGE: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Entry of the store for an object.
pub(super) struct Entry {
    dir: PathBuf,
    /// Held while the object is compiled, so that other packages wait for it.
    lock: Option<Lock>,
}

impl Entry {
    /// Copies the object to its place. Returns whether the store has it; if not, other packages wait until it is kept, or
    /// the entry is dropped.
    pub(super) fn fetch(&mut self, object: &Path) -> bool {
        if self.copy(object) {
            return true;
        }
        if fs::create_dir_all(&self.dir).is_ok() {
            self.lock = Lock::wait(&self.dir);
        }
        // Another package may have compiled it meanwhile.
        self.copy(object)
    }

    fn copy(&self, object: &Path) -> bool {
        let bytes = fs::read(self.file()).unwrap_or_default();
        match bytes.split_last_chunk::<HASH_SIZE>() {
            Some((bytes, hash)) if hash_of(&[bytes]).as_bytes() == hash => {
                files::write_if_changed(object, bytes).is_ok()
            }
            _ => false,
        }
    }

    /// Adds the object, and removes old ones.
    pub(super) fn keep(self, object: &Path) {
        if let Ok(mut bytes) = fs::read(object) {
            let hash = hash_of(&[&bytes]);
            bytes.extend_from_slice(hash.as_bytes());
            let _ = files::write_if_changed(&self.file(), &bytes);
        }
        let entries = self.dir.parent().and_then(|store| fs::read_dir(store).ok());
        for entry in entries.into_iter().flatten().flatten() {
            let modified = entry.metadata().and_then(|metadata| metadata.modified());
            if modified.is_ok_and(|time| time.elapsed().is_ok_and(|age| age > MAX_AGE)) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }

    fn file(&self) -> PathBuf {
        self.dir.join("object")
    }
}

impl Toolchain {
    /// Entry for the object of a C source, in the target directory that `dir` is part of. `None` if there is no such
    /// directory, or the compiler fails.
    pub(super) fn entry(&self, dir: &Path, defines: &[&str], source: &str) -> Option<Entry> {
        let root = target_dir::find_proven(dir, &self.target.triple)?;
        // cl writes the directory into the preprocessed source.
        if self.family != Family::Gnu {
            return None;
        }
        let mut command = self.compiler.command(dir);
        self.add_flags(&mut command, &self.optional_flags(dir), defines);
        // `-v` reports what the preprocessed source does not have: release and programs of the compiler, and flags from
        // files and variables.
        let output = command.args(["-E", "-v", source]).output().ok()?;
        if !output.status.success() {
            return None;
        }
        let (words, report) = (words(&command), String::from_utf8_lossy(&output.stderr));
        if (FLAGS_WITH_FILES.iter()).any(|flag| words.contains(flag) || report.contains(flag)) {
            return None;
        }
        let mut source = String::from_utf8_lossy(&output.stdout);
        // Flags and report name the directory, in whose place the compiler writes another name. So does the source with
        // this flag.
        let directory = dir.to_str()?;
        if report.contains("-fworking-directory") {
            source = source.replace(directory, "").into();
        }
        let hash = hash_of(&[
            env!("CARGO_PKG_VERSION").as_bytes(),
            words.replace(directory, "").as_bytes(),
            report.replace(directory, "").as_bytes(),
            source.as_bytes(),
        ]);
        Some(Entry {
            dir: root.join("gpustub-objects").join(hash),
            lock: None,
        })
    }
}

/// Hash of contents: SipHash, as in the store of device code (`store/hash.rs`).
fn hash_of(parts: &[&[u8]]) -> String {
    let mut hasher = DefaultHasher::new();
    for part in parts {
        hasher.write_usize(part.len());
        hasher.write(part);
    }
    format!("{:016x}", hasher.finish())
}
