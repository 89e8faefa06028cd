//! A machine that has only the files it is given: a program runs with a directory as its whole file
//! system. Files installed on the real machine cannot be found by accident.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Result;
use crate::command::{Ran, run, succeed};
use crate::scratch::scratch;

/// File system of a machine.
#[derive(Debug)]
pub struct Isolated {
    root: tempfile::TempDir,
    has_proc: bool,
}

impl Isolated {
    /// A machine without any files.
    pub fn new() -> Result<Self> {
        let root = scratch()?;
        for directory in ["proc", "tmp"] {
            fs::create_dir(root.path().join(directory))?;
        }
        let has_proc = true;
        Ok(Self { root, has_proc })
    }

    /// Leaves `/proc` empty, as in a plain chroot.
    pub fn without_proc(&mut self) {
        self.has_proc = false;
    }

    /// Copies a program or library to `path`, with the system libraries that it needs.
    pub fn install(&self, file: &Path, path: &str) -> Result<()> {
        self.copy(file, Path::new(path))?;
        for library in system_libraries(file)? {
            self.copy(&library, &library)?;
        }
        Ok(())
    }

    /// Copies all shared libraries of a directory into the directory `target`, under their names.
    pub fn install_all(&self, directory: &Path, target: &str) -> Result<()> {
        for entry in fs::read_dir(directory)? {
            let file = entry?.path();
            if file.is_file() && file.to_string_lossy().contains(".so") {
                let name = file.file_name().unwrap_or_default().to_string_lossy();
                self.install(&file, &format!("{target}/{name}"))?;
            }
        }
        Ok(())
    }

    /// Path on the real machine of a path on this one.
    pub fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path.trim_start_matches('/'))
    }

    /// Copies one file to `path`. Large files are hard-linked if the file system allows.
    pub fn copy(&self, file: &Path, path: &Path) -> Result<()> {
        let copy = self.root.path().join(path.strip_prefix("/")?);
        if copy.exists() {
            return Ok(());
        }
        fs::create_dir_all(copy.parent().unwrap_or(&copy))?;
        let file = fs::canonicalize(file).map_err(|e| format!("{}: {e}", file.display()))?;
        if fs::hard_link(&file, &copy).is_err() {
            fs::copy(&file, &copy).map_err(|e| format!("{}: {e}", copy.display()))?;
        }
        Ok(())
    }

    /// Runs a program of this machine, with only these variables.
    pub fn run(&self, program: &str, variables: &[(&str, &str)]) -> Result<Ran> {
        self.run_with(program, &[], variables)
    }

    /// As [`Self::run`], with arguments.
    pub fn run_with(
        &self,
        program: &str,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Result<Ran> {
        let mut command = self.command(&["--map-root-user"]);
        command.arg(program).args(arguments);
        command.envs(variables.iter().copied());
        run(&mut command)
    }

    /// As [`Self::run_with`], by a user for whom the program, owned by root, has the set-user-ID
    /// bit. Requires root.
    pub fn run_set_user_id(
        &self,
        program: &str,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Result<Ran> {
        fs::set_permissions(self.root.path(), fs::Permissions::from_mode(0o755))?;
        let file = self.path(program);
        let copy = file.with_extension("copy"); // the file itself may be a link to one in use
        fs::copy(&file, &copy)?;
        fs::rename(&copy, &file)?;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o4755))?;
        let mut command = self.command(&["--setuid=65534", "--setgid=65534"]);
        command.arg(program).args(arguments);
        command.envs(variables.iter().copied());
        run(&mut command)
    }

    /// Command that runs a program of this machine.
    fn command(&self, options: &[&str]) -> Command {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--pid", "--fork"]);
        if self.has_proc {
            command.arg("--mount-proc");
        }
        command.args(options);
        command.arg(format!("--root={}", self.root.path().display()));
        command.arg("--wd=/");
        let path = std::env::var_os("PATH").unwrap_or_default();
        command.env_clear().env("PATH", path);
        command
    }
}

/// The loader and the system libraries that a file needs, by `ldd`. Libraries that `ldd` does not
/// find are left out: they may be beside the file, or absent on purpose.
pub fn system_libraries(file: &Path) -> Result<BTreeSet<PathBuf>> {
    let system_directories = ["/lib", "/lib64", "/usr/lib", "/usr/lib64"];
    let mut libraries = BTreeSet::new();
    // `name => /path (0x…)`, and `/lib64/ld-linux-x86-64.so.2 (0x…)`.
    for line in succeed(Command::new("ldd").arg(file))?.stdout.lines() {
        let path = line.split_once("=> ").map_or(line, |(_, path)| path).trim();
        let path = Path::new(path.split(" (").next().unwrap_or(path));
        if system_directories
            .iter()
            .any(|directory| path.starts_with(directory))
        {
            libraries.insert(path.to_owned());
        }
    }
    Ok(libraries)
}
