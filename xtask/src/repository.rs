//! Files of the repository.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Root of the repository.
pub fn repository() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_owned()
}

/// Paths of the files of the tree below `paths`, or of all files if there are none.
pub fn tracked(paths: &[&String]) -> Result<Vec<String>, String> {
    let mut list = Command::new("git");
    list.current_dir(repository());
    let options = ["-z", "--cached", "--others", "--exclude-standard", "--"];
    let listed = list.arg("ls-files").args(options).args(paths).output();
    let listed = listed.map_err(|e| format!("git: {e}"))?;
    if !listed.status.success() {
        return Err(String::from_utf8_lossy(&listed.stderr).into_owned());
    }
    let paths = String::from_utf8_lossy(&listed.stdout);
    Ok(paths.split_terminator('\0').map(str::to_owned).collect())
}
