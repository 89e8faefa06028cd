//! A machine that has just the files it is given: a program runs with a folder as its whole file
//! system. What is installed on the real machine cannot be found by accident.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{Ran, run, succeed};
use crate::{Result, scratch};

/// The file system of a machine.
#[derive(Debug)]
pub struct Isolated {
    root: tempfile::TempDir,
}

impl Isolated {
    /// A machine with nothing on it.
    pub fn new() -> Result<Self> {
        let root = scratch()?;
        for folder in ["proc", "tmp"] {
            fs::create_dir(root.path().join(folder))?;
        }
        Ok(Self { root })
    }

    /// Puts a program or library to `place`, with the system libraries that it asks for.
    pub fn install(&self, file: &Path, place: &str) -> Result<()> {
        self.copy(file, Path::new(place))?;
        for library in system_libraries(file)? {
            self.copy(&library, &library)?;
        }
        Ok(())
    }

    /// Puts all shared libraries of a folder into the folder `place`, under their names.
    pub fn install_all(&self, folder: &Path, place: &str) -> Result<()> {
        for entry in fs::read_dir(folder)? {
            let file = entry?.path();
            if file.is_file() && file.to_string_lossy().contains(".so") {
                let name = file
                    .file_name()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned();
                self.install(&file, &format!("{place}/{name}"))?;
            }
        }
        Ok(())
    }

    /// Large files are linked, not copied, where the file system allows.
    fn copy(&self, file: &Path, place: &Path) -> Result<()> {
        let to = self.root.path().join(place.strip_prefix("/")?);
        if to.exists() {
            return Ok(());
        }
        fs::create_dir_all(to.parent().unwrap_or(&to))?;
        let file = fs::canonicalize(file).map_err(|e| format!("{}: {e}", file.display()))?;
        if fs::hard_link(&file, &to).is_err() {
            fs::copy(&file, &to).map_err(|e| format!("{}: {e}", to.display()))?;
        }
        Ok(())
    }

    /// Runs a program of this machine, with these variables and no others.
    pub fn run(&self, program: &str, variables: &[(&str, &str)]) -> Result<Ran> {
        let mut command = Command::new("unshare");
        command.args([
            "--map-root-user",
            "--mount",
            "--pid",
            "--fork",
            "--mount-proc",
        ]);
        command
            .arg(format!("--root={}", self.root.path().display()))
            .arg("--wd=/")
            .arg(program);
        let path = std::env::var_os("PATH").unwrap_or_default();
        command
            .env_clear()
            .env("PATH", path)
            .envs(variables.iter().copied());
        run(&mut command)
    }
}

/// The loader and the system's libraries that a file asks for, by `ldd`. What `ldd` does not find
/// is left out: a library may lie beside the file, or be what a test leaves out.
fn system_libraries(file: &Path) -> Result<BTreeSet<PathBuf>> {
    let listed = succeed(Command::new("ldd").arg(file))?;
    // `name => /path (0x…)`, and `/lib64/ld-linux-x86-64.so.2 (0x…)`.
    let paths = listed.stdout.lines().filter_map(|line| {
        let path = line.split_once("=> ").map_or(line, |(_, path)| path).trim();
        path.starts_with('/')
            .then(|| PathBuf::from(path.split(" (").next().unwrap_or(path)))
    });
    let system = ["/lib", "/lib64", "/usr/lib", "/usr/lib64"];
    Ok(paths
        .filter(|path| system.iter().any(|folder| path.starts_with(folder)))
        .collect())
}
