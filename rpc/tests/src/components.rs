//! Paths of the real components that `tests/run` installs.

use std::path::{Path, PathBuf};

use crate::{Result, workspace};

/// Variable that names the directory of the components.
const VARIABLE: &str = "GPUSTUB_TEST_COMPONENTS";

/// Cargo's target directory, which contains this test.
pub fn target_dir() -> PathBuf {
    let executable = std::env::current_exe().expect("a test knows its own path");
    executable
        .ancestors()
        .find(|directory| directory.join("CACHEDIR.TAG").is_file())
        .map_or_else(|| workspace().join("target"), Path::to_owned)
}

/// Path of a file or directory below the components' directory, by default that of the repository. An error says how
/// to install it.
pub fn component(name: &str) -> Result<PathBuf> {
    let path = std::env::var_os(VARIABLE)
        .map_or_else(|| workspace().join("../target/components"), PathBuf::from)
        .join(name);
    if path.exists() {
        return Ok(path);
    }
    let path = path.display();
    Err(format!("{path} is missing: ./tests/run --all --components-only puts it in place").into())
}
