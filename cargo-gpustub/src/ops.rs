//! Changes to files, as values: they can be shown, compared or applied.
//!
//! A file is replaced in one step: its new text goes to a hidden neighbour, reaches the disk and
//! then takes the file's name. Whoever is killed on the way leaves the old file or the new one,
//! and at most such a neighbour, which the next run that writes the file removes.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use similar::TextDiff;

use crate::error::{Error, Result};
use crate::workspace::shown;

/// One file and what it is going to hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// Where it is.
    pub path: PathBuf,
    /// How messages call it.
    pub shown: String,
    /// What it holds now; `None`: it does not exist.
    before: Option<Vec<u8>>,
    /// What it is going to hold; `None`: it is going to be removed.
    after: Option<Vec<u8>>,
    /// Whether it has to be made a program.
    becomes_program: bool,
}

impl Operation {
    /// Creates `path`, or replaces it if it exists.
    pub fn write(path: PathBuf, shown: String, after: impl Into<Vec<u8>>) -> Result<Self> {
        Self::new(path, shown, Some(after.into()))
    }

    /// Removes `path`, and its folder if nothing else is in it.
    pub fn remove(path: PathBuf, shown: String) -> Result<Self> {
        Self::new(path, shown, None)
    }

    fn new(path: PathBuf, shown: String, after: Option<Vec<u8>>) -> Result<Self> {
        let before = match fs::read(&path) {
            Ok(bytes) => Some(bytes),
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            Err(e) => return Err(Error::io("read", &path, &e)),
        };
        Ok(Self {
            path,
            shown,
            before,
            after,
            becomes_program: false,
        })
    }

    /// The same, of a file that can be run.
    pub fn executable(mut self) -> Self {
        self.becomes_program = !is_program(&self.path);
        self
    }

    /// Whether the file is as it should be already.
    pub fn is_done(&self) -> bool {
        self.before == self.after && !self.becomes_program
    }

    /// Whether there is no such file yet.
    pub fn creates(&self) -> bool {
        self.before.is_none()
    }

    /// Refuses to write into a folder of somebody else: `is_ours` says that gpustub has written the folder.
    pub fn refuse_to_replace(all: &[Self], is_ours: bool, help: &str) -> Result<()> {
        let replaces = |one: &&Self| one.before.is_some() && one.before != one.after;
        match all.iter().find(replaces) {
            Some(one) if !is_ours => {
                let message = format!("`{}` is there already, and not of gpustub", one.shown);
                Err(Error::new(message).help(help))
            }
            _ => Ok(()),
        }
    }

    /// Whether the file goes.
    pub fn removes(&self) -> bool {
        self.after.is_none()
    }

    /// `Created`, `Updated` or `Removed`, for a status line.
    pub fn verb(&self) -> &'static str {
        if self.removes() {
            "Removed"
        } else if self.creates() {
            "Created"
        } else {
            "Updated"
        }
    }

    /// The change as a unified diff; empty if there is none.
    pub fn diff(&self) -> String {
        if self.is_done() {
            return String::new();
        }
        let before = String::from_utf8_lossy(self.before.as_deref().unwrap_or_default());
        let after = String::from_utf8_lossy(self.after.as_deref().unwrap_or_default());
        // An absolute path as `git diff --no-index` has it.
        let name = self.shown.trim_start_matches('/');
        let old = if self.before.is_none() {
            "/dev/null"
        } else {
            &format!("a/{name}")
        };
        let new = if self.removes() {
            "/dev/null"
        } else {
            &format!("b/{name}")
        };
        let text = TextDiff::from_lines(&before, &after)
            .unified_diff()
            .header(old, new)
            .to_string();
        match self.becomes_program {
            true => format!("new mode 100755: {name}\n{text}"),
            false => text,
        }
    }

    /// Writes or removes the file. Does nothing if it is as it should be.
    pub fn apply(&self) -> Result<()> {
        if self.is_done() {
            return Ok(());
        }
        let Some(after) = &self.after else {
            fs::remove_file(&self.path).map_err(|e| Error::io("remove", &self.path, &e))?;
            // Not if anything else is in it.
            let _ = fs::remove_dir(folder_of(&self.path));
            return Ok(());
        };
        // A link stays a link: the file that it points to is replaced.
        let path = if self.before.is_some() {
            self.path
                .canonicalize()
                .map_err(|e| Error::io("find", &self.path, &e))?
        } else {
            self.path.clone()
        };
        let folder = folder_of(&path);
        fs::create_dir_all(folder).map_err(|e| Error::io("create", folder, &e))?;
        remove_leftovers(&path);
        let neighbour = neighbour(&path);
        replace(&path, &neighbour, after, self.becomes_program).map_err(|e| {
            let _ = fs::remove_file(&neighbour);
            Error::io("write", &self.path, &e)
        })
    }
}

/// Changes that build on each other: a file may be changed several times.
#[derive(Debug, Default)]
pub struct Pending {
    operations: Vec<Operation>,
}

impl Pending {
    /// The text of a file as it is going to be.
    pub fn read(&self, path: &Path) -> Result<String> {
        match self.last(path) {
            Some(Some(bytes)) => Ok(String::from_utf8_lossy(bytes).into_owned()),
            _ => fs::read_to_string(path).map_err(|e| Error::io("read", path, &e)),
        }
    }

    /// Adds a change, unless the file is going to be so already.
    pub fn push(&mut self, mut operation: Operation) {
        if let Some(last) = self.last(&operation.path) {
            operation.before = last.cloned();
        }
        if !operation.is_done() {
            self.operations.push(operation);
        }
    }

    /// Adds the writing of a file.
    pub fn write(&mut self, path: &Path, text: impl Into<Vec<u8>>) -> Result<()> {
        self.push(Operation::write(path.into(), shown(path), text)?);
        Ok(())
    }

    /// Adds the removal of a file.
    pub fn remove(&mut self, path: &Path) -> Result<()> {
        self.push(Operation::remove(path.into(), shown(path))?);
        Ok(())
    }

    /// All, in the order in which they were added.
    pub fn into_operations(self) -> Vec<Operation> {
        self.operations
    }

    /// What an earlier change makes of a file, if there is one.
    fn last(&self, path: &Path) -> Option<Option<&Vec<u8>>> {
        let mut all = self.operations.iter().rev();
        let last = all.find(|operation| operation.path == path)?;
        Some(last.after.as_ref())
    }
}

/// Applies operations in order and tells of each one that was carried out.
pub fn apply(operations: &[Operation], mut done: impl FnMut(&Operation)) -> Result<()> {
    for operation in operations.iter().filter(|operation| !operation.is_done()) {
        operation.apply()?;
        done(operation);
    }
    Ok(())
}

fn replace(path: &Path, neighbour: &Path, after: &[u8], is_program: bool) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(neighbour)?;
    if let Ok(metadata) = fs::metadata(path) {
        // A new file under its name would not ask; whoever made it read-only meant it.
        if metadata.permissions().readonly() {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "the file is read-only",
            ));
        }
        file.set_permissions(metadata.permissions())?;
    }
    if is_program {
        make_program(&file)?;
    }
    file.write_all(after)?;
    file.sync_all()?;
    drop(file);
    fs::rename(neighbour, path)?;
    // The name has to reach the disk as well; only Unix can open a folder for that.
    if cfg!(unix) {
        File::open(folder_of(path))?.sync_all()?;
    }
    Ok(())
}

/// Whether a file can be run; where systems do not say, it can.
#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o100 != 0)
}

#[cfg(not(unix))]
fn is_program(_path: &Path) -> bool {
    true
}

/// Lets those run a file who can read it.
#[cfg(unix)]
fn make_program(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mut permissions = file.metadata()?.permissions();
    let mode = permissions.mode();
    permissions.set_mode(mode | (mode & 0o444) >> 2);
    file.set_permissions(permissions)
}

#[cfg(not(unix))]
fn make_program(_file: &File) -> io::Result<()> {
    Ok(())
}

fn folder_of(path: &Path) -> &Path {
    path.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// The hidden name beside `path`. It holds the process's number: two runs at once must not write
/// to one neighbour, or the first to finish would publish the other's half.
fn neighbour(path: &Path) -> PathBuf {
    path.with_file_name(format!("{}{}", prefix(path), std::process::id()))
}

fn prefix(path: &Path) -> String {
    format!(
        ".{}.gpustub-",
        path.file_name().unwrap_or_default().to_string_lossy()
    )
}

/// Removes the neighbours of runs that were killed. A run that still lives and loses its
/// neighbour to this fails with an error, its file untouched.
fn remove_leftovers(path: &Path) {
    let prefix = prefix(path);
    for entry in fs::read_dir(folder_of(path))
        .into_iter()
        .flatten()
        .flatten()
    {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(&prefix));
        if number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit())) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(folder: &Path, name: &str, after: &str) -> Operation {
        Operation::write(folder.join(name), name.into(), after).unwrap()
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn create_update_and_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let create = operation(folder.path(), "sub/a.toml", "one\n");
        assert_eq!(create.verb(), "Created");
        assert_eq!(
            create.diff(),
            "--- /dev/null\n+++ b/sub/a.toml\n@@ -0,0 +1 @@\n+one\n"
        );
        create.apply().unwrap();

        let update = operation(folder.path(), "sub/a.toml", "two\n");
        assert_eq!(update.verb(), "Updated");
        assert_eq!(
            update.diff(),
            "--- a/sub/a.toml\n+++ b/sub/a.toml\n@@ -1 +1 @@\n-one\n+two\n"
        );
        update.apply().unwrap();

        let same = operation(folder.path(), "sub/a.toml", "two\n");
        assert!(same.is_done());
        assert_eq!(same.diff(), "");
        assert_eq!(names(&folder.path().join("sub")), ["a.toml"]);
    }

    #[test]
    fn a_removed_file_takes_its_empty_folder_along() {
        let folder = tempfile::tempdir().unwrap();
        operation(folder.path(), "sub/a", "one\n").apply().unwrap();
        operation(folder.path(), "sub/b", "two\n").apply().unwrap();
        let remove = |name: &str| Operation::remove(folder.path().join(name), name.into()).unwrap();
        let first = remove("sub/a");
        assert_eq!(first.verb(), "Removed");
        assert_eq!(
            first.diff(),
            "--- a/sub/a\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n"
        );
        first.apply().unwrap();
        assert_eq!(names(&folder.path().join("sub")), ["b"]);
        assert!(remove("sub/a").is_done());
        remove("sub/b").apply().unwrap();
        assert!(names(folder.path()).is_empty());
    }

    #[test]
    fn later_changes_build_on_earlier_ones() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "one\n").unwrap();
        let mut pending = Pending::default();
        pending.write(&path, "one\n").unwrap();
        pending.write(&path, "one\ntwo\n").unwrap();
        let text = pending.read(&path).unwrap() + "three\n";
        pending.write(&path, text).unwrap();
        let operations = pending.into_operations();
        assert_eq!(operations.len(), 2);
        assert!(operations[1].diff().contains(" one\n two\n+three\n"));
        apply(&operations, |_| {}).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "one\ntwo\nthree\n");
    }

    #[test]
    fn a_failure_between_operations_leaves_whole_files() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("c"), "old").unwrap();
        fs::create_dir(folder.path().join("b")).unwrap();
        // The second one cannot take the name of a folder.
        let blocked = Operation {
            path: folder.path().join("b"),
            shown: "b".into(),
            before: None,
            after: Some("new".into()),
            becomes_program: false,
        };
        let operations = [
            operation(folder.path(), "a", "new"),
            blocked,
            operation(folder.path(), "c", "new"),
        ];
        let mut done = Vec::new();
        let error = apply(&operations, |o| done.push(o.shown.clone())).unwrap_err();
        assert!(error.message.contains("could not write"), "{error}");
        assert_eq!(done, ["a"]);
        assert_eq!(names(folder.path()), ["a", "b", "c"]);
        assert_eq!(fs::read_to_string(folder.path().join("a")).unwrap(), "new");
        assert_eq!(fs::read_to_string(folder.path().join("c")).unwrap(), "old");
    }

    #[test]
    fn leftovers_of_a_killed_run_go() {
        let folder = tempfile::tempdir().unwrap();
        for name in [
            ".a.gpustub-1",
            ".a.gpustub-4000000000",
            ".a.gpustub-",
            ".a.gpustub-x",
        ] {
            fs::write(folder.path().join(name), "half").unwrap();
        }
        operation(folder.path(), "a", "whole").apply().unwrap();
        assert_eq!(names(folder.path()), [".a.gpustub-", ".a.gpustub-x", "a"]);
    }

    #[cfg(unix)]
    #[test]
    fn programs_can_be_run() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let program = || operation(folder.path(), "p", "#!/bin/sh\n").executable();
        program().apply().unwrap();
        assert!(program().is_done());
        let path = folder.path().join("p");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert_eq!(program().diff(), "new mode 100755: p\n");
        program().apply().unwrap();
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o750
        );
        assert!(program().is_done());
    }

    #[cfg(unix)]
    #[test]
    fn permissions_and_links_stay() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().join("real");
        fs::write(&real, "old").unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
        symlink("real", folder.path().join("link")).unwrap();
        operation(folder.path(), "link", "new").apply().unwrap();
        assert!(folder.path().join("link").is_symlink());
        assert_eq!(fs::read_to_string(&real).unwrap(), "new");
        assert_eq!(
            fs::metadata(&real).unwrap().permissions().mode() & 0o777,
            0o640
        );
    }
}
