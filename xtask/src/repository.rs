//! Files of the repository.

use std::path::{Path, PathBuf};

/// Root of the repository.
pub fn repository() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_owned()
}
