//! Copy of the repository that a test may change and build.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::succeed;
use crate::components::target_dir;
use crate::{Result, repository};

/// A copy of the repository's files, with a target directory of its own.
#[derive(Debug)]
pub struct Tree {
    root: PathBuf,
}

impl Tree {
    /// Copies all files that git tracks, or would, to `target/NAME/tree`. Files that are already
    /// there with the same contents stay, so that cargo does not build again what is unchanged.
    pub fn copy(name: &str) -> Result<Self> {
        let root = target_dir().join(name).join("tree");
        fs::create_dir_all(&root)?;
        let mut git = Command::new("git");
        git.current_dir(repository()).arg("ls-files");
        git.args(["-z", "--cached", "--others", "--exclude-standard"]);
        let listed = succeed(&mut git)?.stdout;
        let files: BTreeSet<&str> = (listed.split_terminator('\0'))
            .filter(|file| repository().join(file).is_file())
            .collect();
        remove_others(&root, &root, &files)?;
        for file in files {
            let (from, to) = (repository().join(file), root.join(file));
            let text = fs::read(&from)?;
            if !fs::read(&to).is_ok_and(|old| old == text) {
                fs::create_dir_all(to.parent().unwrap_or(&root))?;
                fs::copy(&from, &to)?;
            }
        }
        let tree = Self { root };
        tree.link_dependencies()?;
        Ok(tree)
    }

    /// Root of the copy.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Target directory of the copy.
    pub fn target_dir(&self) -> PathBuf {
        self.root.with_file_name("target")
    }

    /// Links what cargo has built of other packages, which is the same for the copy.
    fn link_dependencies(&self) -> Result<()> {
        // Packages of the workspace have no source.
        let lock = fs::read_to_string(repository().join("Cargo.lock"))?;
        let own: BTreeSet<&str> = (lock.split("[[package]]\nname = \"").skip(1))
            .filter(|package| !package.contains("\nsource = "))
            .filter_map(|package| package.split('"').next())
            .collect();
        let (from, to) = (target_dir().join("debug"), self.target_dir().join("debug"));
        let mut hashes = BTreeSet::new();
        let (mut fingerprints, mut builds) = (Vec::new(), Vec::new());
        for unit in names(&from.join(".fingerprint"))? {
            let Some((name, hash)) = unit.rsplit_once('-') else {
                continue;
            };
            if own.contains(name) {
                continue;
            }
            hashes.insert(hash.to_owned());
            if !to.join(".fingerprint").join(&unit).exists() {
                fingerprints.push(from.join(".fingerprint").join(&unit));
                builds.push(from.join("build").join(&unit));
            }
        }
        builds.retain(|build| build.exists());
        // Cargo writes into fingerprints: these are copied, not linked.
        copy(&fingerprints, &to.join(".fingerprint"), "-a")?;
        copy(&builds, &to.join("build"), "-al")?;
        for file in names(&from.join("deps"))? {
            let stem = file.split('.').next().unwrap_or_default();
            let is_other = stem
                .rsplit_once('-')
                .is_some_and(|(_, hash)| hashes.contains(hash));
            let to = to.join("deps").join(&file);
            if is_other && !to.exists() {
                fs::create_dir_all(to.parent().unwrap_or(&to))?;
                fs::hard_link(from.join("deps").join(&file), to)?;
            }
        }
        Ok(())
    }
}

fn names(directory: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    names.collect()
}

/// Copies directories with `cp`, which keeps the times that cargo compares.
fn copy(from: &[PathBuf], to: &Path, option: &str) -> Result<()> {
    fs::create_dir_all(to)?;
    if !from.is_empty() {
        let mut cp = Command::new("cp");
        succeed(cp.args([option, "-t"]).arg(to).args(from))?;
    }
    Ok(())
}

/// Removes all files below `directory` that are not among `files`, named from `root`.
fn remove_others(root: &Path, directory: &Path, files: &BTreeSet<&str>) -> Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() && !path.is_symlink() {
            remove_others(root, &path, files)?;
            // Fails unless the directory is empty.
            let _ = fs::remove_dir(&path);
        } else if !(path.strip_prefix(root)?.to_str()).is_some_and(|file| files.contains(file)) {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}
