//! Directory in which paths in reports for code hosts begin.

use std::fs;
use std::path::{Component, Path, PathBuf};

use gpustub_core::diag::Origin;

use crate::display_path::slashes;
use crate::environment::variable;

/// The root of the repository, if the CI service names it and it has the file, else the current directory: code hosts read
/// paths as relative to the repository, also of a step with `working-directory`.
#[derive(Debug)]
pub struct Base {
    current: PathBuf,
    /// Directories that paths may begin in, in order of precedence.
    directories: Vec<PathBuf>,
}

impl Base {
    /// The base of this process.
    pub fn of_process() -> Self {
        let repository = variable("GITHUB_WORKSPACE").map(PathBuf::from);
        let current = std::env::current_dir().unwrap_or_default();
        Self::new(repository.as_deref(), &current)
    }

    /// The base of a process in the directory `current`.
    pub fn new(repository: Option<&Path>, current: &Path) -> Self {
        let mut directories = Vec::new();
        if let Some(repository) = repository {
            directories.push(normalized(repository));
            // The system names the current directory without symbolic links.
            directories.extend(fs::canonicalize(repository));
        }
        directories.push(current.to_owned());
        Self {
            current: current.to_owned(),
            directories,
        }
    }

    /// The location with a path that begins here, without `.` and `..`.
    pub fn origin(&self, origin: &Origin) -> Origin {
        Origin {
            file: self.path(&origin.file),
            ..origin.clone()
        }
    }

    /// A file of another directory keeps its absolute path, or one with `..` at its start.
    fn path(&self, file: &str) -> String {
        let path = normalized(&self.current.join(file));
        let path = match self.inner(&path) {
            Some(inner) => inner.to_owned(),
            None if Path::new(file).has_root() => path,
            None => {
                let directory = self.inner(&self.current).unwrap_or(Path::new(""));
                normalized(&directory.join(file))
            }
        };
        match slashes(&path) {
            path if path.is_empty() => ".".to_owned(),
            path => path,
        }
    }

    /// The path within the first directory that has it.
    fn inner<'a>(&self, path: &'a Path) -> Option<&'a Path> {
        let mut directories = self.directories.iter();
        directories.find_map(|directory| path.strip_prefix(directory).ok())
    }
}

/// A path without `.`, and without `..` except at its start.
fn normalized(path: &Path) -> PathBuf {
    let mut normalized = PathBuf::new();
    for component in path.components() {
        match (component, normalized.components().next_back()) {
            (Component::CurDir, _)
            | (Component::ParentDir, Some(Component::RootDir | Component::Prefix(_))) => {}
            (Component::ParentDir, Some(Component::Normal(_))) => {
                normalized.pop();
            }
            _ => normalized.push(component),
        }
    }
    normalized
}
