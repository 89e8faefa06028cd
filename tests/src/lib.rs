//! Support for the tests of gpustub.
//!
//! Tests that need only a C compiler run everywhere. The others carry
//! `#[ignore = "needs …: ./tests/run"]`, which plain `cargo test` lists, and `tests/run` installs
//! the tools that they name.

#![allow(
    clippy::disallowed_methods,
    reason = "the environment names the directory of the components"
)]

pub mod archive;
pub mod bitcode;
pub mod cargo;
pub mod clang;
pub mod command;
pub mod components;
pub mod device_properties;
pub mod elf;
pub mod hip;
pub mod isolated;
pub mod loader;
pub mod measure;
pub mod msvc;
pub mod nvcc;
pub mod opener;
pub mod pair;
pub mod rdc;
pub mod readme;
pub mod recipes;
pub mod rustup;
pub mod scratch;
pub mod stubs;
pub mod tree;
pub mod windows;
pub mod wine;
pub mod wine_arm64;

use std::fmt;
use std::path::{Path, PathBuf};

/// Result of a test, for `?`.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

/// Reason why a test failed, for the reader of the report. `?` creates it from any error or text.
pub struct Failure(pub String);

/// The test harness prints the debug form of an error: here the plain text.
impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<E: fmt::Display> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

/// Path of the repository.
pub fn repository() -> PathBuf {
    let tests = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    tests
        .parent()
        .expect("tests/ is in the repository")
        .to_owned()
}

/// All files below a directory.
pub fn files_below(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(files_below(&path)?);
        } else {
            files.push(path);
        }
    }
    Ok(files)
}
