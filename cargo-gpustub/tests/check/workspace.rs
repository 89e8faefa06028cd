//! Cases with a workspace: `[workspace]` of a case.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde::Deserialize;

use crate::{Result, pack};

/// Preparation before the check. There is a package `demo` with an empty program, unless the case
/// has files of these names.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Workspace {
    /// Dependencies of `demo`, each with its enabled features: empty crates of these names.
    #[serde(default)]
    crates: BTreeMap<String, Vec<String>>,
    /// Arguments of the check.
    #[serde(default)]
    arguments: Vec<String>,
    /// Leaves the tree unchanged instead of running `sync` on it.
    #[serde(default)]
    stale: bool,
    /// Directories to pack in place, by the name of the archive.
    #[serde(default)]
    pack: BTreeMap<String, String>,
}

impl Workspace {
    /// Adds the missing files.
    pub fn prepare(&self, directory: &Path) -> Result<()> {
        let mut manifest = package("demo") + "[dependencies]\n";
        let mut helper = package("gpustub-build");
        helper += "[workspace]\n";
        write(directory, "../gpustub-build/Cargo.toml", &helper)?;
        write(
            directory,
            "../gpustub-build/src/lib.rs",
            "pub fn build() {}\n",
        )?;
        for (name, features) in &self.crates {
            let lines: String = features
                .iter()
                .map(|name| format!("{name} = []\n"))
                .collect();
            let text = package(name) + "[workspace]\n[features]\n" + &lines;
            write(directory, &format!("../{name}/Cargo.toml"), &text)?;
            write(directory, &format!("../{name}/src/lib.rs"), "")?;
            manifest += &format!("{name} = {{ path = \"../{name}\", features = {features:?} }}\n");
        }
        manifest += "[build-dependencies]\ngpustub-build = { path = \"../gpustub-build\" }\n";
        if !directory.join("Cargo.toml").exists() {
            write(directory, "Cargo.toml", &manifest)?;
            if !directory.join("src/lib.rs").exists() {
                write(directory, "src/main.rs", "fn main() {}\n")?;
            }
        }
        for (archive, content) in &self.pack {
            pack::pack(&directory.join(content), &[], &directory.join(archive))?;
        }
        if !self.stale {
            let mut sync = Command::new(env!("CARGO_BIN_EXE_cargo-gpustub"));
            self.run_in(sync.args(["gpustub", "sync", "--workspace"]), directory);
            let output = sync.output()?;
            let err = String::from_utf8_lossy(&output.stderr).into_owned();
            // 1: the files are written, and `sync` has reported some of the findings.
            let is_written = matches!(output.status.code(), Some(0 | 1));
            if !is_written && !err.contains("has no GpuStub.toml") {
                return Err(err.into());
            }
        }
        Ok(())
    }

    /// Sets the environment of a command, and the arguments if it is the check.
    pub fn run_in(&self, command: &mut Command, directory: &Path) {
        if command.get_args().any(|argument| argument == "check") {
            command.args(&self.arguments);
        }
        command
            .current_dir(directory)
            .env("CARGO_NET_OFFLINE", "true")
            .env("CUDA_HOME", "/nonexistent")
            .env("ROCM_PATH", "/nonexistent");
    }
}

fn package(name: &str) -> String {
    format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n")
}

fn write(directory: &Path, name: &str, text: &str) -> Result<()> {
    let path = directory.join(name);
    fs::create_dir_all(path.parent().ok_or("no parent directory")?)?;
    Ok(fs::write(path, text)?)
}
