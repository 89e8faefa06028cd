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
        let list = succeed(&mut git)?.stdout;
        let files: BTreeSet<&str> = (list.split_terminator('\0'))
            .filter(|file| repository().join(file).is_file())
            .collect();
        remove_others(&root, &root, &files)?;
        for file in files {
            let (original, copy) = (repository().join(file), root.join(file));
            let bytes = fs::read(&original)?;
            if !fs::read(&copy).is_ok_and(|old| old == bytes) {
                fs::create_dir_all(copy.parent().unwrap_or(&root))?;
                fs::copy(&original, &copy)?;
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
        let members: BTreeSet<&str> = (lock.split("[[package]]\nname = \"").skip(1))
            .filter(|package| !package.contains("\nsource = "))
            .filter_map(|package| package.split('"').next())
            .collect();
        let (original, copy) = (target_dir().join("debug"), self.target_dir().join("debug"));
        let mut hashes = BTreeSet::new();
        let (mut fingerprints, mut builds) = (Vec::new(), Vec::new());
        for unit in names(&original.join(".fingerprint"))? {
            let Some((name, hash)) = unit.rsplit_once('-') else {
                continue;
            };
            if members.contains(name) {
                continue;
            }
            hashes.insert(hash.to_owned());
            if !copy.join(".fingerprint").join(&unit).exists() {
                fingerprints.push(original.join(".fingerprint").join(&unit));
                builds.push(original.join("build").join(&unit));
            }
        }
        builds.retain(|build| build.exists());
        // Cargo writes into fingerprints: these are copied, not linked.
        copy_into(&copy.join(".fingerprint"), &fingerprints, "-a")?;
        copy_into(&copy.join("build"), &builds, "-al")?;
        for file in names(&original.join("deps"))? {
            let stem = file.split('.').next().unwrap_or_default();
            let is_dependency = stem
                .rsplit_once('-')
                .is_some_and(|(_, hash)| hashes.contains(hash));
            let link = copy.join("deps").join(&file);
            if is_dependency && !link.exists() {
                fs::create_dir_all(link.parent().unwrap_or(&link))?;
                fs::hard_link(original.join("deps").join(&file), link)?;
            }
        }
        Ok(())
    }
}

fn names(directory: &Path) -> Result<Vec<String>> {
    fs::read_dir(directory)
        .into_iter()
        .flatten()
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect()
}

/// Copies directories with `cp`, which keeps the times that cargo compares.
fn copy_into(target: &Path, directories: &[PathBuf], option: &str) -> Result<()> {
    fs::create_dir_all(target)?;
    if !directories.is_empty() {
        let mut cp = Command::new("cp");
        succeed(cp.args([option, "-t"]).arg(target).args(directories))?;
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
