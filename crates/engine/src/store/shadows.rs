//! Files that a compiler would read in place of its inputs, if they existed: a header in a directory that is searched
//! before that of a header of the same name.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Options whose directories are searched for headers, in this order (GCC's manual, "Directory Options").
const OPTIONS: [&str; 2] = ["-I", "-isystem"];

/// Order in which a command searches for headers.
pub(super) struct Search {
    /// Words of the command that may be files.
    files: Vec<PathBuf>,
    dirs: Vec<PathBuf>,
}

impl Search {
    pub(super) fn of(command: &Command) -> Self {
        let current_dir = command.get_current_dir().unwrap_or(Path::new(""));
        let words: Vec<&str> = command
            .get_args()
            .filter_map(|word| word.to_str())
            .collect();
        let mut dirs = Vec::new();
        for option in OPTIONS {
            for (index, word) in words.iter().enumerate() {
                dirs.extend(match word.strip_prefix(option) {
                    Some("") => words.get(index + 1).map(|dir| current_dir.join(dir)),
                    Some(dir) => Some(current_dir.join(dir)),
                    None => None,
                });
            }
        }
        Self {
            files: words.iter().map(|word| current_dir.join(word)).collect(),
            dirs,
        }
    }

    /// Paths without a file, in directories that are searched before that of an input. Headers in quotation marks are
    /// first searched beside the source.
    pub(super) fn absent(&self, inputs: &[PathBuf]) -> Vec<PathBuf> {
        let sources = self.files.iter().filter(|file| inputs.contains(file));
        let beside: Vec<&Path> = sources.filter_map(|source| source.parent()).collect();
        let mut absent = Vec::new();
        for input in inputs {
            for (index, dir) in self.dirs.iter().enumerate() {
                let Ok(name) = input.strip_prefix(dir) else {
                    continue;
                };
                let dirs = self.dirs[..index].iter().map(PathBuf::as_path);
                let paths = beside.iter().copied().chain(dirs).map(|dir| dir.join(name));
                absent.extend(paths.filter(|path| !path.exists()));
            }
        }
        absent.sort();
        absent.dedup();
        absent
    }
}
