//! Places where stubs look for DLLs, in the order of `docs/targets.md`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_tests::Result;
use gpustub_tests::command::{Ran, succeed};
use gpustub_tests::wine::{compiler_libraries, run, windows_path};

use crate::trial::{Trial, expect};

const MANIFEST: &str = "schema = 1\n[stub.cuda]\nheader-version = \"12\"\n[stub.cudart]\nheader-version = \"12\"\n\
    search-dirs = [\"$ORIGIN/own\"]\n[stub.nvrtc]\n";

/// Directories with the CUDA runtime, in the order in which they are searched.
const PLACES: [&str; 8] = [
    "own",
    "venv/Lib/site-packages/nvidia/cuda_runtime/bin",
    "conda/Library/bin",
    "",
    "added",
    "cuda/bin/x64",
    "cuda/bin",
    "path",
];

/// Directories that are never searched: the current one, and a relative one of `PATH`.
const ELSEWHERE: [&str; 2] = ["current", "current/relative"];

struct Machine {
    trial: Trial,
    /// The fake of all libraries.
    library: PathBuf,
}

impl Machine {
    fn new() -> Result<Self> {
        let trial = Trial::new()?;
        fs::create_dir_all(trial.dir().join("build"))?;
        let library = trial.library("build/toolkit.dll", "programs/windows/toolkit.c", &[])?;
        let archives = [trial.stubs("", MANIFEST)?];
        let source = ["programs/windows/found.c"];
        trial.link("program.exe", &source, &archives, &[])?;
        fs::create_dir_all(trial.dir().join("conda/conda-meta"))?;
        Ok(Self { trial, library })
    }

    fn install(&self, directory: &str, name: &str) -> Result<PathBuf> {
        let directory = self.trial.dir().join(directory);
        fs::create_dir_all(&directory)?;
        let path = directory.join(name);
        fs::copy(&self.library, &path)?;
        Ok(path)
    }

    fn run(&self) -> Result<Ran> {
        let place = |directory: &str| windows_path(&self.trial.dir().join(directory));
        let mut command = self.trial.command()?;
        let paths = [
            windows_path(&compiler_libraries()?),
            "relative".to_owned(),
            place("path"),
        ];
        command
            .arg(place("added"))
            .current_dir(self.trial.dir().join("current"))
            .env("WINEPATH", paths.join(";"))
            .env("VIRTUAL_ENV", place("venv"))
            .env("CONDA_PREFIX", place("conda"))
            .env("CUDA_PATH", place("cuda"));
        run(&mut command)?.success()
    }
}

fn found(path: &Path) -> String {
    format!("12090 {}\n", windows_path(path).replace('\\', "/"))
}

#[test]
#[ignore = "needs mingw-w64 and wine: ./tests/run"]
fn places_of_a_toolkit_in_their_order() -> Result<()> {
    let machine = Machine::new()?;
    for directory in ELSEWHERE {
        machine.install(directory, "cudart64_12.dll")?;
    }
    let mut installed = Vec::new();
    for directory in PLACES {
        installed.push(machine.install(directory, "cudart64_12.dll")?);
    }
    // Those of the driver are in System32 only.
    for directory in ["", "path", "added", "current"] {
        machine.install(directory, "nvcuda.dll")?;
    }
    for library in installed {
        let ran = machine.run()?;
        expect(&ran, &(found(&library) + "driver 100, nvrtc 11\n"), "")?;
        fs::remove_file(library)?;
    }
    expect(&machine.run()?, "0 none\ndriver 100, nvrtc 11\n", "")
}

#[test]
#[ignore = "needs mingw-w64 and wine: ./tests/run"]
fn files_that_a_library_opens_by_a_bare_name() -> Result<()> {
    let machine = Machine::new()?;
    fs::create_dir_all(machine.trial.dir().join("current"))?;
    let bin = "venv/Lib/site-packages/nvidia/cuda_nvrtc/bin";
    machine.install(bin, "nvrtc64_120_0.dll")?;
    expect(&machine.run()?, "0 none\ndriver 100, nvrtc 7\n", "")?;
    machine.install(bin, "nvrtc-builtins64_129.dll")?;
    expect(&machine.run()?, "0 none\ndriver 100, nvrtc 0\n", "")
}

/// A delayed import is the program's own, with its own helper.
#[test]
#[ignore = "needs mingw-w64 and wine: ./tests/run"]
fn delayed_imports_of_a_program() -> Result<()> {
    let trial = Trial::new()?;
    trial.library("trap1.dll", "traps/override/lib.c", &[])?;
    trial.library("other.dll", "programs/windows/other.c", &[])?;
    fs::write(
        trial.dir().join("other.def"),
        "LIBRARY other.dll\nEXPORTS\nother_value\n",
    )?;
    let mut dlltool = Command::new("x86_64-w64-mingw32-dlltool");
    dlltool.current_dir(trial.dir());
    succeed(dlltool.args(["-d", "other.def", "-y", "libother.a"]))?;
    let archives = [trial.trap_stubs("", &trial.functions("trap1.dll")?, None)?];
    let source = ["programs/windows/delayed.c"];
    trial.link("program.exe", &source, &archives, &["libother.a"])?;
    expect(&trial.run(&[])?, "passed\n", "")
}
