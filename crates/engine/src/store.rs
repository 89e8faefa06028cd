//! Outputs that all build scripts of a target directory share: what `cargo build` compiled, `cargo
//! clippy` finds here.
//!
//! ```text
//! <target directory>/gpustub-store/
//!     <step>/                hash of a command and its surroundings; locked by the process that runs it
//!         <inputs>/          hash of the contents of the files that the command read
//!             record         the step, these files with their hashes, files that would be read in place of
//!                            them if they existed, and hashes of the outputs
//!             0, 1 …         outputs, of which OUT_DIR has hard links
//!     <step>.<process>       entry that is being written
//!     pruned                 time of the last pruning (`prune.rs`)
//! ```
//!
//! An entry is complete before it is renamed to its place, and its hashes are compared at each use.
//! The store only saves time: where it cannot be read or written, each build script runs its
//! commands itself.

mod hash;
mod prune;
mod record;
mod shadows;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use crate::files;
use crate::lock::Lock;
use crate::target_dir;
use hash::{Hashes, hash_text};
use record::{ABSENT, FILE_NAME, Record};
use shadows::Search;

/// The store of a target directory.
pub(crate) struct Store {
    /// Target directory of cargo.
    root: PathBuf,
    out_dir: PathBuf,
    /// Triple of the target, part of each step.
    target: String,
    hashes: Hashes,
}

/// Version of this crate, part of each step: it adds to what commands make.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Name of the store in the target directory.
const NAME: &str = "gpustub-store";

impl Store {
    /// The store for a build script with this OUT_DIR; `None` in a layout that is not cargo's.
    pub(crate) fn find(out_dir: &Path, target: &str) -> Option<Self> {
        let root = target_dir::find(out_dir, target)?;
        let out_dir = target_dir::cargo_out_dir(out_dir)?;
        Some(Self {
            root,
            out_dir: out_dir.to_owned(),
            target: target.to_owned(),
            hashes: Hashes::default(),
        })
    }

    fn dir(&self) -> PathBuf {
        self.root.join(NAME)
    }

    /// The step of a command, whose text in fingerprints is `key`. Names of OUT_DIRs, in the
    /// command and in `paths`, have no part in it: `cargo build` and `cargo clippy` have different
    /// ones.
    pub(crate) fn step(&self, command: &Command, key: &str, paths: &[PathBuf]) -> Step<'_> {
        let dir = command.get_current_dir().unwrap_or(Path::new(""));
        let mut out_dirs = vec![self.out_dir.clone()];
        let words = command.get_args().map(Path::new);
        for path in words.chain(paths.iter().map(PathBuf::as_path)) {
            match target_dir::cargo_out_dir(path).filter(|out_dir| out_dir.starts_with(&self.root))
            {
                Some(out_dir) if out_dirs.iter().all(|known| known != out_dir) => {
                    out_dirs.push(out_dir.to_owned());
                }
                _ => {}
            }
        }
        let mut step = Step {
            store: self,
            key: String::new(),
            dir: PathBuf::new(),
            out_dirs,
            search: Search::of(command),
            lock: None,
        };
        step.key = step.abstract_text(&format!("{VERSION} {} {dir:?} {key}", self.target));
        step.dir = self.dir().join(hash_text(&step.key));
        step
    }
}

/// A command whose outputs are shared.
pub(crate) struct Step<'a> {
    store: &'a Store,
    /// Text that determines the outputs, together with the contents of the inputs.
    key: String,
    dir: PathBuf,
    /// OUT_DIRs that have numbers in the key.
    out_dirs: Vec<PathBuf>,
    /// Directories of headers, and files that the command names.
    search: Search,
    lock: Option<Lock>,
}

/// Outputs of an entry, which were linked into their places.
pub(crate) struct Fetched {
    /// Files that the command read.
    pub(crate) inputs: Vec<PathBuf>,
    /// Text that the command printed.
    pub(crate) printed: String,
}

impl Step<'_> {
    /// Links the outputs of the step with the present inputs into their places, if the store has
    /// them, or when another process has made them. Otherwise other processes wait until the step
    /// is kept or dropped.
    pub(crate) fn fetch(&mut self, outputs: &[&Path]) -> Option<Fetched> {
        self.find(outputs).or_else(|| {
            fs::create_dir_all(&self.dir).ok()?;
            self.lock = Lock::wait(&self.dir);
            self.find(outputs)
        })
    }

    fn find(&self, outputs: &[&Path]) -> Option<Fetched> {
        for entry in fs::read_dir(&self.dir).ok()?.flatten() {
            let dir = entry.path();
            let Some(record) = self.read(&dir, outputs.len()) else {
                let _ = fs::remove_dir_all(&dir);
                continue;
            };
            let Some(inputs) = self.unchanged_inputs(&record) else {
                continue;
            };
            if self.place(&dir, &record, outputs).is_none() {
                let _ = fs::remove_dir_all(&dir);
                continue;
            }
            prune::set_used(&dir.join(FILE_NAME), SystemTime::now());
            return Some(Fetched {
                inputs,
                printed: record.printed,
            });
        }
        None
    }

    /// The files that the command read, if all are as they were.
    fn unchanged_inputs(&self, record: &Record) -> Option<Vec<PathBuf>> {
        let mut inputs = Vec::new();
        for (hash, path) in &record.inputs {
            let path = self.concrete(path);
            if hash == ABSENT {
                if path.exists() {
                    return None;
                }
            } else if self.store.hashes.of(&path)? == *hash {
                inputs.push(path);
            } else {
                return None;
            }
        }
        Some(inputs)
    }

    fn read(&self, dir: &Path, outputs: usize) -> Option<Record> {
        let record = Record::read(&dir.join(FILE_NAME))?;
        (record.key == self.key && record.outputs.len() == outputs).then_some(record)
    }

    fn place(&self, dir: &Path, record: &Record, outputs: &[&Path]) -> Option<()> {
        for (number, (output, hash)) in outputs.iter().zip(&record.outputs).enumerate() {
            let file = dir.join(number.to_string());
            if self.store.hashes.of(&file).as_ref() != Some(hash) {
                return None;
            }
            let new = files::sibling(output);
            let _ = fs::remove_file(&new);
            link_or_copy(&file, &new)?;
            fs::rename(&new, output).ok()?;
            // If both are one file, renaming does nothing.
            let _ = fs::remove_file(&new);
        }
        Some(())
    }

    /// Adds the outputs of the step, which were made of these inputs.
    pub(crate) fn keep(self, inputs: &[PathBuf], outputs: &[&Path], printed: &str) {
        if self.add(inputs, outputs, printed).is_some() {
            let now = SystemTime::now();
            prune::limit_entries(&self.dir, now);
            prune::run_daily(&self.store.dir(), now);
        }
    }

    fn add(&self, inputs: &[PathBuf], outputs: &[&Path], printed: &str) -> Option<()> {
        let hashes = &self.store.hashes;
        let mut record = Record {
            key: self.key.clone(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            printed: printed.to_owned(),
        };
        for input in inputs {
            let path = self.abstract_text(input.to_str()?);
            record.inputs.push((hashes.of(input)?, path));
        }
        for path in self.search.absent(inputs) {
            let path = self.abstract_text(path.to_str()?);
            record.inputs.push((ABSENT.to_owned(), path));
        }
        for output in outputs {
            record.outputs.push(hashes.of(output)?);
        }
        let mut name = self.dir.as_os_str().to_owned();
        name.push(format!(".{}", std::process::id()));
        let new = PathBuf::from(name);
        fs::create_dir_all(&self.dir).ok()?;
        fs::create_dir(&new).ok()?;
        let entry = self.dir.join(record.name());
        let result = self.write(&record, outputs, &new).and_then(|()| {
            // Another process may have added the same entry.
            fs::rename(&new, entry).ok()
        });
        if result.is_none() {
            let _ = fs::remove_dir_all(&new);
        }
        result
    }

    fn write(&self, record: &Record, outputs: &[&Path], dir: &Path) -> Option<()> {
        for (number, output) in outputs.iter().enumerate() {
            link_or_copy(output, &dir.join(number.to_string()))?;
        }
        fs::write(dir.join(FILE_NAME), record.render()?).ok()
    }

    /// Text with numbers for OUT_DIRs.
    fn abstract_text(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (number, dir) in self.out_dirs.iter().enumerate() {
            if let Some(dir) = dir.to_str() {
                text = text.replace(dir, &placeholder(number));
            }
        }
        text
    }

    /// The path whose OUT_DIR has a number.
    fn concrete(&self, path: &str) -> PathBuf {
        for (number, dir) in self.out_dirs.iter().enumerate() {
            if let Some(rest) = path.strip_prefix(&placeholder(number)) {
                return dir.join(rest.trim_start_matches('/'));
            }
        }
        path.into()
    }
}

fn placeholder(number: usize) -> String {
    format!("$OUT_DIR[{number}]")
}

/// Links a file to a second name; a copy on file systems without hard links.
fn link_or_copy(from: &Path, to: &Path) -> Option<()> {
    match fs::hard_link(from, to) {
        Ok(()) => Some(()),
        Err(_) => fs::copy(from, to).ok().map(|_| ()),
    }
}

#[cfg(test)]
mod tests;
