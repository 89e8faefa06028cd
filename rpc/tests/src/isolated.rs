//! A machine that has only the files it is given: a program runs with a directory as its whole file
//! system. Files installed on the real machine cannot be found by accident.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{Ran, run, succeed};
use crate::{Result, scratch};

/// File system of a machine.
#[derive(Debug)]
pub struct Isolated {
    root: tempfile::TempDir,
}

impl Isolated {
    /// A machine without any files.
    pub fn new() -> Result<Self> {
        let root = scratch()?;
        for directory in ["proc", "tmp"] {
            fs::create_dir(root.path().join(directory))?;
        }
        Ok(Self { root })
    }

    /// Copies a program to `destination`, with the system libraries that it needs.
    pub fn install(&self, file: &Path, destination: &str) -> Result<()> {
        self.copy(file, Path::new(destination))?;
        let listed = succeed(Command::new("ldd").arg(file))?;
        // `name => /path (0x…)`, and `/lib64/ld-linux-x86-64.so.2 (0x…)`.
        for line in listed.stdout.lines() {
            let path = line.split_once("=> ").map_or(line, |(_, path)| path).trim();
            let path = path.split(" (").next().unwrap_or(path);
            if path.starts_with('/') {
                self.copy(Path::new(path), Path::new(path))?;
            }
        }
        Ok(())
    }

    /// Path on the real machine of a path on this one.
    pub fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path.trim_start_matches('/'))
    }

    /// Copies one file. Large files are hard-linked if the file system allows.
    fn copy(&self, file: &Path, destination: &Path) -> Result<()> {
        let destination = self.root.path().join(destination.strip_prefix("/")?);
        fs::create_dir_all(destination.parent().unwrap_or(&destination))?;
        let file = fs::canonicalize(file).map_err(|e| format!("{}: {e}", file.display()))?;
        if fs::hard_link(&file, &destination).is_err() {
            fs::copy(&file, &destination).map_err(|e| format!("{}: {e}", destination.display()))?;
        }
        Ok(())
    }

    /// Runs a program of this machine, without variables.
    pub fn run(&self, program: &str, arguments: &[&str]) -> Result<Ran> {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--pid", "--fork", "--mount-proc"]);
        command.arg("--map-root-user");
        command.arg(format!("--root={}", self.root.path().display()));
        let path = std::env::var_os("PATH").unwrap_or_default();
        command.env_clear().env("PATH", path);
        run(command.arg("--wd=/").arg(program).args(arguments))
    }
}
