//! Support for the tests of gpustub.
//!
//! Tests that need a C compiler only run everywhere; those that need more carry
//! `#[ignore = "needs …: ./tests/run"]`, which plain `cargo test` lists, and `tests/run` installs
//! what they name.

#![allow(
    clippy::disallowed_methods,
    reason = "tests are told by the environment where components lie"
)]

pub mod bitcode;
pub mod cargo;
pub mod clang;
pub mod command;
pub mod components;
pub mod elf;
pub mod isolated;
pub mod nvcc;
pub mod pair;
pub mod rdc;
pub mod readme;
pub mod recipes;
pub mod stubs;
pub mod tree;

use std::fmt;
use std::path::PathBuf;

/// What a test gives back, by `?`.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

/// Why a test failed, for the person who reads the report. Made by `?` from any error or text.
pub struct Failure(pub String);

/// The test harness prints the debug form of an error: here the text as it is.
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

/// The repository.
pub fn repository() -> PathBuf {
    let tests = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    tests
        .parent()
        .expect("tests/ lies in the repository")
        .to_owned()
}

/// A new folder below cargo's target folder, so that large files can be hard-linked into it.
/// Removed when dropped, unless the environment variable `GPUSTUB_TEST_KEEP` is set.
pub fn scratch() -> Result<tempfile::TempDir> {
    let base = components::target_dir().join("gpustub-tests");
    std::fs::create_dir_all(&base).map_err(|e| format!("cannot make {}: {e}", base.display()))?;
    let mut dir = tempfile::tempdir_in(&base)?;
    dir.disable_cleanup(std::env::var_os("GPUSTUB_TEST_KEEP").is_some());
    Ok(dir)
}
