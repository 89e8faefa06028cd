//! Cargo's target directory, from a build script's OUT_DIR.

use std::fs;
use std::path::{Path, PathBuf};

/// The target directory of a build script with this OUT_DIR, or with files below it; `None` in a layout that is not
/// cargo's.
pub(crate) fn find(out_dir: &Path, target: &str) -> Option<PathBuf> {
    let parent = profile_dir(cargo_out_dir(out_dir)?)?.parent()?;
    let mut root = match parent.parent() {
        Some(above) if parent.ends_with(target) && !is_tagged(parent) => above,
        _ => parent,
    };
    // rust-analyzer and cargo-llvm-cov have target directories in the target directory.
    while let Some(above) = root.parent().filter(|above| is_tagged(above)) {
        root = above;
    }
    Some(root.to_owned())
}

/// As [`find`], where a file of cargo's is: the tag of a directory that cargo created, or the lock of the profile.
pub(crate) fn find_proven(out_dir: &Path, target: &str) -> Option<PathBuf> {
    let root = find(out_dir, target)?;
    let profile = profile_dir(cargo_out_dir(out_dir)?)?;
    (is_tagged(&root) || profile.join(".cargo-lock").exists()).then_some(root)
}

/// OUT_DIR of the build script that wrote a file.
pub(crate) fn cargo_out_dir(path: &Path) -> Option<&Path> {
    let mut dirs = path.ancestors().filter(|dir| dir.ends_with("out"));
    dirs.find(|dir| profile_dir(dir).is_some())
}

/// Directory of the profile: of `<profile>/build/<package>/<hash>/out` (cargo's newer layout), or
/// of `<profile>/build/<package>-<hash>/out`.
fn profile_dir(out_dir: &Path) -> Option<&Path> {
    let mut levels = [3, 2].into_iter();
    let build = levels.find_map(|level| {
        let dir = out_dir.ancestors().nth(level)?;
        dir.ends_with("build").then_some(dir)
    })?;
    build.parent()
}

/// Whether cargo has created the directory as a target directory.
fn is_tagged(dir: &Path) -> bool {
    let tag = fs::read_to_string(dir.join("CACHEDIR.TAG"));
    tag.is_ok_and(|text| text.contains("created by cargo"))
}
