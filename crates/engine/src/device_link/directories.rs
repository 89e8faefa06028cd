//! Directories that paths of `GpuStub.toml` are relative to.

use std::path::{Path, PathBuf};

use gpustub_core::manifest::in_out_dir;

/// Base directories of a package.
#[derive(Debug, Clone, Copy)]
pub struct Directories<'a> {
    /// Directory of `GpuStub.toml`.
    pub package: &'a Path,
    /// `OUT_DIR`; `None` before the build script runs.
    pub out_dir: Option<&'a Path>,
}

impl<'a> Directories<'a> {
    /// Base directory of one path, and the path relative to it.
    pub(super) fn split<'p>(&self, path: &'p str) -> (Option<&'a Path>, &'p str) {
        match in_out_dir(path) {
            Some(rest) => (self.out_dir, rest),
            None => (Some(self.package), path),
        }
    }

    /// Joins base and path; `None` for a path in an unknown `OUT_DIR`.
    pub(super) fn resolve(&self, path: &str) -> Option<PathBuf> {
        let (base, rest) = self.split(path);
        // No slash at the end.
        Some(base?.join(rest).components().collect())
    }
}
