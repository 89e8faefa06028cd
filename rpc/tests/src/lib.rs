//! Support for the tests of RPC.
//!
//! Tests that need only a C compiler run everywhere. The others carry
//! `#[ignore = "needs …: ./tests/run"]`, which plain `cargo test` lists, and `tests/run` installs
//! the tools that they name.

#![allow(
    clippy::disallowed_methods,
    reason = "the environment names the directory of the components"
)]

pub mod cargo;
pub mod command;
pub mod compilers;
pub mod components;
pub mod isolated;
pub mod readme;

use std::fmt;
use std::path::PathBuf;

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

/// Path of this workspace.
pub fn workspace() -> PathBuf {
    let tests = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    tests
        .parent()
        .expect("tests/ is in the workspace")
        .to_owned()
}

/// New directory below cargo's target directory, so that large files can be hard-linked into it.
/// Removed when dropped, unless the environment variable `GPUSTUB_TEST_KEEP` is set.
pub fn scratch() -> Result<tempfile::TempDir> {
    let base = components::target_dir().join("gpurpc-tests");
    std::fs::create_dir_all(&base).map_err(|e| format!("cannot make {}: {e}", base.display()))?;
    let mut dir = tempfile::tempdir_in(&base)?;
    dir.disable_cleanup(std::env::var_os("GPUSTUB_TEST_KEEP").is_some());
    Ok(dir)
}
