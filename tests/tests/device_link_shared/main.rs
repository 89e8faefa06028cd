//! `type = "shared"`: RDC libraries as pairs of shared libraries, built with a real nvcc and run
//! with a recording CUDA runtime.
//!
//! `workspace`: `area` and `volume` call the device code of `base`; `one` and `behind` use `area` alone,
//! `two` and `many` both. `extensions` has libraries for C, and the static library `detail`.

mod archs;
mod build_dir;
mod changes;
mod consumers;
mod extensions;
mod installed;
mod mistakes;
mod plans;
mod products;
mod stubs;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use gpustub_tests::cargo::{cargo, gpustub};
use gpustub_tests::command::{Ran, run, succeed};
use gpustub_tests::components::target_dir;
use gpustub_tests::nvcc::{TOOLKIT_13, recorder};
use gpustub_tests::scratch::scratch;
use gpustub_tests::{Failure, Result, repository};

const TRIPLE: &str = "x86_64-unknown-linux-gnu";

/// Serializes the tests, which share one target directory, so that unchanged files are built once.
fn alone() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A copy of a workspace, and its toolkit and runtime.
struct Project {
    directory: PathBuf,
    toolkit: PathBuf,
    /// Directory of the recording runtime.
    runtime: PathBuf,
    /// Whether the runtime is preloaded.
    preloads: bool,
}

impl Project {
    /// Copies the directory `source` beside this file to `name`. Its earlier outputs are rebuilt.
    fn new(source: &str, name: &str) -> Result<Self> {
        let projects = target_dir().join("device-link-shared");
        fs::create_dir_all(&projects)?;
        let directory = projects.join(name);
        if directory.exists() {
            fs::remove_dir_all(&directory)?;
        }
        copy_source(source, &directory)?;
        // Members of two workspaces with equal names and versions share a directory of cargo's.
        let number: u32 = name.bytes().map(u32::from).sum();
        let path = directory.join("Cargo.toml");
        let text = fs::read_to_string(&path)?;
        fs::write(
            &path,
            text.replace("\"0.1.0\"\n", &format!("\"0.1.{number}\"\n")),
        )?;
        let runtime = recorder(&directory, 13)?;
        Ok(Self {
            toolkit: TOOLKIT_13.root()?,
            runtime: runtime.parent().unwrap_or(&directory).to_owned(),
            directory,
            preloads: true,
        })
    }

    /// Appends lines to a file.
    fn append(&self, file: &str, text: &str) -> Result<()> {
        let path = self.directory.join(file);
        let old = fs::read_to_string(&path).unwrap_or_default();
        Ok(fs::write(path, old + text)?)
    }

    /// Writes the finalizers of all programs that lack a build script for it.
    fn sync(&self) -> Result<()> {
        let mut words = vec!["sync", "--offline"];
        for package in [
            "base", "behind", "many", "plugin", "inner", "solid", "wide", "flat",
        ] {
            words.extend(["-p", package]);
        }
        succeed(&mut self.gpustub(&words)?)?;
        Ok(())
    }

    /// Installs the outputs of a package for C++ users.
    fn install(&self, package: &str, prefix: &Path) -> Result<Ran> {
        let words = [
            "export",
            "device-link",
            "--offline",
            "-p",
            package,
            "--target",
            TRIPLE,
        ];
        let mut install = self.gpustub(&words)?;
        succeed(install.arg("--prefix").arg(prefix))
    }

    fn target(&self) -> PathBuf {
        target_dir().join("device-link-shared/target")
    }

    fn environment(&self, command: &mut Command) {
        command
            .env("CUDA_HOME", &self.toolkit)
            .env("LD_LIBRARY_PATH", &self.runtime)
            .env("CARGO_INCREMENTAL", "0");
        for name in ["NVCC", "CUDA_PATH", "CXX", "CC"] {
            command.env_remove(name);
        }
    }

    fn cargo(&self, words: &[&str]) -> Command {
        self.cargo_into(&self.target(), words)
    }

    /// Cargo with a target directory.
    fn cargo_into(&self, target: &Path, words: &[&str]) -> Command {
        let mut command = cargo(&self.directory);
        self.environment(&mut command);
        command.args(words).arg("--offline");
        // With a target, rustc's flags do not reach the build scripts, which are thus built once.
        command.args(["--target", TRIPLE]);
        command.arg("--target-dir").arg(target);
        if self.preloads {
            // Cargo makes the loader search the real runtime first.
            let library = self.runtime.join("libcudart.so.13");
            let runner = format!("['env', 'LD_PRELOAD={}']", library.display());
            command.arg("--config");
            command.arg(format!("target.{TRIPLE}.runner={runner}"));
        }
        command
    }

    fn gpustub(&self, words: &[&str]) -> Result<Command> {
        let mut command = gpustub(words)?;
        self.environment(&mut command);
        command.current_dir(&self.directory);
        command.env("CARGO_TARGET_DIR", self.target());
        Ok(command)
    }
}

/// Copies a directory beside this file.
fn copy_source(name: &str, to: &Path) -> Result<()> {
    copy(
        &repository()
            .join("tests/tests/device_link_shared")
            .join(name),
        to,
    )
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let to = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            copy(&path, &to)?;
        } else {
            let text = fs::read_to_string(&path)?;
            let root = repository().display().to_string();
            fs::write(to, text.replace("@ROOT@", &root))?;
        }
    }
    Ok(())
}

/// The workspace, with the finalizers that `sync` writes, completely built.
fn workspace() -> Result<&'static Project> {
    static WORKSPACE: LazyLock<Result<Project, String>> = LazyLock::new(|| {
        let build = || {
            let project = Project::new("workspace", "workspace")?;
            project.sync()?;
            succeed(&mut project.cargo(&["build"]))?;
            Ok(project)
        };
        build().map_err(|Failure(why)| why)
    });
    WORKSPACE.as_ref().map_err(|why| Failure(why.clone()))
}

/// Registrations of a program: the image of each fat binary, of each kernel and of each launch.
#[derive(Debug, PartialEq, Eq)]
struct Record {
    opened: Vec<String>,
    kernels: Vec<String>,
    launched: Vec<String>,
}

impl Record {
    fn parse(ran: &Ran) -> Self {
        Self {
            opened: images(ran, "record open ", 1),
            kernels: images(ran, "record function ", 1),
            launched: images(ran, "record launch ", 0),
        }
    }

    /// One fat binary in `opened`, with the kernels of these libraries, some of which are launched.
    fn new(opened: &str, kernels: &[&str], launched: &[&str]) -> Self {
        Self {
            opened: vec![opened.to_owned()],
            kernels: kernels.iter().map(|name| format!("lib{name}.so")).collect(),
            launched: launched
                .iter()
                .map(|name| format!("lib{name}.so"))
                .collect(),
        }
    }
}

/// Sorted images in the records of a kind, `IMAGE+OFFSET`, which is a word of each line.
fn images(ran: &Ran, kind: &str, word: usize) -> Vec<String> {
    let mut images = Vec::new();
    for line in ran.stderr.lines() {
        // libcudadevrt, which a device link may contain, has kernels of its own.
        if line.contains("_cuda_device_runtime_cu_") {
            continue;
        }
        let address = line
            .strip_prefix(kind)
            .and_then(|line| line.split(' ').nth(word));
        if let Some(image) = address.and_then(|address| address.split('+').next()) {
            images.push(image.to_owned());
        }
    }
    images.sort();
    images
}

fn expect(ran: Ran, expected: &Record) -> Result<()> {
    let ran = ran.success()?;
    let record = Record::parse(&ran);
    if record != *expected || !ran.stdout.contains("status 0") {
        return Err(ran.error(&format!("{record:?}\ninstead of\n{expected:?}")));
    }
    Ok(())
}

/// Runs each program of the workspace by cargo, with these words for it.
fn programs(project: &Project, words: &[&str]) -> Result<()> {
    let final_link = Record::new("libarea_final.so", &["area", "base"], &["area"]);
    let [two, many] = ["two", "many"]
        .map(|name| Record::new(name, &["area", "base", "volume"], &["area", "volume"]));
    for (name, expected) in [
        ("one", &final_link),
        ("behind", &final_link),
        ("two", &two),
        ("many", &many),
    ] {
        let mut cargo = project.cargo(&["run", "--quiet", "-p", name]);
        expect(run(cargo.args(words))?, expected)?;
    }
    Ok(())
}

#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_a_chain_uses_its_final_and_a_diamond_has_a_link_of_its_own() -> Result<()> {
    let _alone = alone();
    let project = workspace()?;
    programs(project, &[])?;
    succeed(&mut project.cargo(&["test", "--quiet", "-p", "one", "-p", "area"]))?;
    Ok(())
}

#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_bfd_links_the_same_programs() -> Result<()> {
    let _alone = alone();
    let flags = format!("target.{TRIPLE}.rustflags=['-Clinker-features=-lld']");
    programs(workspace()?, &["--config", &flags])
}

/// Command of a program that opens libraries, and calls a function of each: pairs of arguments.
fn opens(dir: &Path, library: &Path, function: &str) -> Result<Command> {
    let source = dir.join("host.c");
    fs::write(
        &source,
        "#include <dlfcn.h>\n#include <stdio.h>\nint main(int n, char **words) {\n\
         \x20   for (int i = 1; i + 1 < n; i += 2) {\n\
         \x20       void *library = dlopen(words[i], RTLD_NOW);\n\
         \x20       int (*run)(void) = library ? (int (*)(void))dlsym(library, words[i + 1]) : 0;\n\
         \x20       if (!run) return puts(dlerror()), 1;\n\
         \x20       printf(\"status %d\\n\", run());\n    }\n    return 0;\n}\n",
    )?;
    let host = dir.join("host");
    let mut cc = Command::new("cc");
    succeed(cc.arg(&source).args(["-ldl", "-o"]).arg(&host))?;
    let mut command = Command::new(host);
    command.arg(library).arg(function);
    Ok(command)
}

/// A cdylib hides its symbols; its final has them.
#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_an_opened_library_for_c_has_its_final() -> Result<()> {
    let _alone = alone();
    let project = workspace()?;
    succeed(&mut project.cargo(&["build", "-p", "plugin"]))?;
    let dir = scratch()?;
    // As in a release: all needed libraries in one directory.
    let shipped = dir.path().join("shipped");
    project.install("area", &shipped)?;
    let plugin = shipped.join("lib/libplugin.so");
    fs::copy(
        project.target().join(TRIPLE).join("debug/libplugin.so"),
        &plugin,
    )?;
    let path = [project.runtime.clone(), shipped.join("lib")];
    let path = std::env::join_paths(path)?;
    let mut command = opens(dir.path(), &plugin, "plugin_run")?;
    command.env("LD_LIBRARY_PATH", path);
    let expected = Record::new("libarea_final.so", &["area", "base"], &["area"]);
    expect(run(&mut command)?, &expected)
}
