//! Temporary directories.

use crate::{Result, components};

/// As in a directory that cargo created: gpustub keeps objects in it, so that all tests share one run time.
const TAG: &str = "Signature: 8a477f597d28d172789f06886806bc55\n# created by cargo\n";

/// New directory below cargo's target directory, so that large files can be hard-linked into it.
/// Removed when dropped, unless the environment variable `GPUSTUB_TEST_KEEP` is set.
pub fn scratch() -> Result<tempfile::TempDir> {
    let base = components::target_dir().join("gpustub-tests");
    std::fs::create_dir_all(&base).map_err(|e| format!("cannot make {}: {e}", base.display()))?;
    let tag = base.join("CACHEDIR.TAG");
    if !tag.exists() {
        std::fs::write(&tag, TAG).map_err(|e| format!("cannot write {}: {e}", tag.display()))?;
    }
    let mut dir = tempfile::tempdir_in(&base)?;
    dir.disable_cleanup(std::env::var_os("GPUSTUB_TEST_KEEP").is_some());
    Ok(dir)
}
