//! Cargo projects with relocatable CUDA code, and an nvcc that logs its runs.

mod call;

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use crate::cargo::{cargo, gpustub, without_own_cargo};
use crate::command::{Ran, run, succeed};
use crate::components::target_dir;
use crate::nvcc::Toolkit;
use crate::scratch::scratch;
use crate::{Failure, Result, repository};

pub use call::Call;

/// A cargo workspace in a new directory, with a toolkit beside it. All paths contain spaces.
#[derive(Debug)]
pub struct Project {
    dir: tempfile::TempDir,
}

/// A package with an RDC library of the same name: a kernel `<name>_kernel`, which calls a device
/// function of each library that it requires, and `<name>_run`, which launches it.
#[derive(Debug, Clone, Copy)]
pub struct Library<'a> {
    /// Name of the package and of the library, used in the names of its functions.
    pub name: &'a str,
    /// Required packages, which also have such libraries.
    pub requires: &'a [&'a str],
    /// Further lines of its table in `GpuStub.toml`.
    pub table: &'a str,
    /// Architectures, as in `archs`. If the first is one of AMD, the source is of HIP.
    pub archs: &'a str,
}

impl<'a> Library<'a> {
    /// Library for `sm_80`.
    pub fn new(name: &'a str, requires: &'a [&'a str]) -> Self {
        Self {
            name,
            requires,
            table: "",
            archs: "\"sm_80\"",
        }
    }
}

impl Project {
    /// A workspace without members, whose target directory already contains gpustub-build.
    pub fn new(toolkit: Toolkit) -> Result<Self> {
        let project = Self::bare(toolkit)?;
        seed()?.copy(&project.target())?;
        project.write("Cargo.toml", WORKSPACE)?;
        project.write("Cargo.lock", &lock()?)?;
        Ok(project)
    }

    /// As [`Self::new`], for tests that need no compiler.
    pub fn without_toolkit() -> Result<Self> {
        let project = Self::empty()?;
        project.write("Cargo.toml", WORKSPACE)?;
        project.write("Cargo.lock", &lock()?)?;
        Ok(project)
    }

    /// As [`Self::new`], for builds that compile no CUDA code.
    pub fn headers_alone() -> Result<Self> {
        let project = Self::without_toolkit()?;
        seed()?.copy(&project.target())?;
        Ok(project)
    }

    /// A copy of `examples/device-link`.
    pub fn example(toolkit: Toolkit) -> Result<Self> {
        let project = Self::bare(toolkit)?;
        seed()?.copy(&project.target())?;
        let mut copy = Command::new("cp");
        let example = repository().join("examples/device-link/.");
        succeed(copy.arg("-r").arg(example).arg(project.root()))?;
        project.edit("Cargo.toml", "\"../../gpustub-build\"", &helper())?;
        Ok(project)
    }

    fn empty() -> Result<Self> {
        let dir = scratch()?;
        fs::create_dir(dir.path().join("the project"))?;
        Ok(Self { dir })
    }

    fn bare(toolkit: Toolkit) -> Result<Self> {
        let project = Self::empty()?;
        project.install(toolkit)?;
        Ok(project)
    }

    /// Installs the toolkit, with a compiler whose runs are logged.
    fn install(&self, toolkit: Toolkit) -> Result<()> {
        let (root, real_root) = (self.toolkit(), toolkit.root()?);
        fs::create_dir_all(root.join("bin"))?;
        for name in ["include", "lib"] {
            symlink(real_root.join(name), root.join(name))?;
        }
        self.log_runs(&root.join("bin/nvcc"), &real_root.join("bin/nvcc"))
    }

    /// Writes a program that runs a compiler, and logs its start and end, its directory and its arguments.
    pub fn log_runs(&self, program: &Path, compiler: &Path) -> Result<()> {
        let script = format!(
            "#!/bin/sh\n\
             printf 'begin\\t%s\\t%s\\n' \"$PWD\" \"$*\" >>'{log}'\n\
             '{compiler}' \"$@\"\n\
             code=$?\n\
             echo end >>'{log}'\n\
             exit $code\n",
            log = self.log().display(),
            compiler = compiler.display(),
        );
        executable(program, &script)
    }

    /// Directory of the workspace.
    pub fn root(&self) -> PathBuf {
        self.dir.path().join("the project")
    }

    /// Directory of the toolkit.
    pub fn toolkit(&self) -> PathBuf {
        self.dir.path().join("the toolkit")
    }

    /// Directory of ROCm, after [`Self::install_rocm`].
    pub fn rocm(&self) -> PathBuf {
        self.dir.path().join("the rocm")
    }

    /// Installs ROCm.
    pub fn install_rocm(&self) -> Result<()> {
        crate::hip::install(&self.rocm())
    }

    /// Path of a file that a test creates beside the project.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Directory of cargo's outputs.
    pub fn target(&self) -> PathBuf {
        self.dir.path().join("the target")
    }

    fn log(&self) -> PathBuf {
        self.dir.path().join("the nvcc.log")
    }

    /// Writes a file of the project.
    pub fn write(&self, path: &str, text: &str) -> Result<()> {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap_or(&path))?;
        Ok(fs::write(path, text)?)
    }

    /// Replaces a text of a file.
    pub fn edit(&self, path: &str, from: &str, to: &str) -> Result<()> {
        let file = self.root().join(path);
        let text = fs::read_to_string(&file).map_err(|e| format!("{path}: {e}"))?;
        if !text.contains(from) {
            return Err(format!("{path} has no {from:?}:\n{text}").into());
        }
        Ok(fs::write(file, text.replace(from, to))?)
    }

    /// Adds a variable to a source, or a macro to a header.
    pub fn extend(&self, path: &str) -> Result<()> {
        let file = self.root().join(path);
        let text = fs::read_to_string(&file)?;
        let name = format!("added_{}", text.len());
        let line = if path.ends_with(".cuh") {
            format!("#define {name}")
        } else {
            format!("namespace {name} {{ __device__ int variable; }}")
        };
        Ok(fs::write(file, format!("{text}{line}\n"))?)
    }

    /// Adds a package with a library.
    pub fn library(&self, library: Library<'_>) -> Result<()> {
        let Library {
            name,
            requires,
            table,
            archs,
        } = library;
        let is_hip = archs.starts_with("\"gfx");
        let (include, api, extension) = if is_hip {
            ("#include <hip/hip_runtime.h>\n", "hip", "hip")
        } else {
            ("", "cuda", "cu")
        };
        let stub = if is_hip {
            "[stub.hip]\nheader-version = \"5\""
        } else {
            "[stub.cudart]\nheader-version = \"13\""
        };
        let mut dependencies = String::new();
        let (mut declarations, mut calls, mut runs) = (String::new(), String::new(), String::new());
        for required in requires {
            writeln!(dependencies, "{required} = {{ path = \"../{required}\" }}")?;
            writeln!(declarations, "__device__ int {required}_value(int);")?;
            write!(calls, " + {required}_value(x)")?;
            write!(runs, "{required}::run() + ")?;
        }
        self.write(
            &format!("{name}/Cargo.toml"),
            &format!(
                "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\
                 links = \"gpustub-{name}\"\npublish = false\n\n[dependencies]\n{dependencies}\n\
                 [build-dependencies]\n\
                 gpustub-build = {{ path = {}, features = [\"device-link\"] }}\n",
                helper()
            ),
        )?;
        self.write(&format!("{name}/build.rs"), BUILD_SCRIPT)?;
        let provide = requires.is_empty();
        self.write(
            &format!("{name}/GpuStub.toml"),
            &format!(
                "schema = 1\n\n{stub}\nprovide = {provide}\n\n\
                 [device-link.{name}]\nsources = [\"{api}/*.{extension}\"]\nrequires = {requires:?}\n\
                 archs = [{archs}]\n{table}\n"
            ),
        )?;
        self.write(
            &format!("{name}/{api}/{name}.{extension}"),
            &format!(
                "{include}{declarations}__device__ int {name}_value(int x) {{ return 1{calls}; }}\n\
                 __global__ void {name}_kernel(int *p) {{ *p = {name}_value(*p); }}\n\
                 extern \"C\" int {name}_run(void) {{\n    \
                 {name}_kernel<<<1, 1>>>(nullptr);\n    return {api}GetLastError();\n}}\n"
            ),
        )?;
        self.write(
            &format!("{name}/src/lib.rs"),
            &format!(
                "//! Launches.\n\nunsafe extern \"C\" {{\n    fn {name}_run() -> i32;\n}}\n\n\
                 /// Launches its kernel and those of required libraries. Returns 0 on success.\n\
                 pub fn run() -> i32 {{\n    {runs}unsafe {{ {name}_run() }}\n}}\n"
            ),
        )
    }

    /// Adds a package without CUDA code. `manifest` follows `[package]` in its `Cargo.toml`,
    /// dependencies last.
    pub fn package(&self, name: &str, manifest: &str, files: &[(&str, &str)]) -> Result<()> {
        self.write(
            &format!("{name}/Cargo.toml"),
            &format!(
                "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\
                 publish = false\n\n{manifest}"
            ),
        )?;
        for (path, text) in files {
            self.write(&format!("{name}/{path}"), text)?;
        }
        Ok(())
    }

    /// `cargo` in the workspace, with the toolkit.
    pub fn cargo(&self, words: &[&str]) -> Command {
        let mut command = cargo(&self.root());
        command.args(words);
        self.environment(&mut command);
        command
    }

    /// `cargo gpustub` in the workspace.
    pub fn gpustub(&self, words: &[&str]) -> Result<Command> {
        let mut command = gpustub(words)?;
        command.current_dir(self.root());
        self.environment(&mut command);
        Ok(command)
    }

    /// A shell command in the workspace, with the toolkit.
    pub fn shell(&self, line: &str) -> Command {
        let mut command = Command::new("bash");
        without_own_cargo(command.current_dir(self.root()).args(["-euc", line]));
        self.environment(&mut command);
        command
    }

    fn environment(&self, command: &mut Command) {
        for name in BUILD_VARIABLES {
            command.env_remove(name);
        }
        command.env("CUDA_HOME", self.toolkit());
        let rocm = self.rocm();
        command.envs(rocm.is_dir().then_some(("ROCM_PATH", rocm)));
        command.env("CARGO_TARGET_DIR", self.target());
        command.env("CARGO_NET_OFFLINE", "true");
        command.env("CARGO_INCREMENTAL", "0");
        command.env("GPUSTUB_CUDART_PATH", "off");
    }

    /// Writes the finalizers, and builds.
    pub fn build(&self) -> Result<Ran> {
        succeed(&mut self.gpustub(&["sync"])?)?;
        succeed(&mut self.cargo(&["build", "-j2"]))
    }

    /// Output of a command that must fail.
    pub fn refused(&self, words: &[&str]) -> Result<String> {
        let ran = run(&mut self.cargo(words))?;
        if ran.status.success() {
            Err(ran.error("nothing was refused"))
        } else {
            Ok(ran.stderr)
        }
    }

    /// Path of an output of cargo's development build.
    pub fn built(&self, name: &str) -> PathBuf {
        self.target().join("debug").join(name)
    }

    /// Directories of the shared libraries that programs are linked with.
    pub fn library_dirs(&self) -> Result<Vec<PathBuf>> {
        let mut directories = Vec::new();
        for entry in fs::read_dir(self.built("build"))? {
            let directory = entry?.path().join("out/gpustub/device-link/link/lib");
            directories.extend(directory.is_dir().then_some(directory));
        }
        Ok(directories)
    }

    /// Sorted runs of nvcc since the last call of this function.
    pub fn calls(&self) -> Result<Vec<Call>> {
        let mut calls: Vec<_> = self
            .read_log()?
            .lines()
            .filter_map(|line| line.strip_prefix("begin\t"))
            .map(Call::parse)
            .collect();
        calls.sort();
        Ok(calls)
    }

    /// Numbers of architectures that the compilations and the device links were for, since the last call of this
    /// function.
    pub fn code_counts(&self) -> Result<(Vec<usize>, Vec<usize>)> {
        let log = self.read_log()?;
        let runs = log.lines().filter(|line| line.starts_with("begin\t"));
        let (links, compilations): (Vec<&str>, Vec<&str>) =
            runs.partition(|line| line.contains("-dlink "));
        let count = |lines: Vec<&str>| {
            let counts = lines.iter().map(|line| line.matches("-gencode ").count());
            counts.filter(|count| *count > 0).collect()
        };
        Ok((count(compilations), count(links)))
    }

    /// Number of runs, and the highest number at once, since the last call of this function.
    pub fn most_at_once(&self) -> Result<(usize, usize)> {
        let (mut runs, mut running, mut max_running) = (0, 0, 0);
        for line in self.read_log()?.lines() {
            match line {
                "end" => running -= 1,
                _ => {
                    runs += 1;
                    running += 1;
                    max_running = max_running.max(running);
                }
            }
        }
        Ok((runs, max_running))
    }

    fn read_log(&self) -> Result<String> {
        let log = self.log();
        if !log.exists() {
            return Ok(String::new());
        }
        let text = fs::read_to_string(&log)?;
        fs::remove_file(log)?;
        Ok(text)
    }
}

/// Variables that change a build.
const BUILD_VARIABLES: [&str; 12] = [
    "NVCC",
    "CUDA_HOME",
    "CUDA_PATH",
    "NVCC_CCBIN",
    "NVCC_PREPEND_FLAGS",
    "NVCC_APPEND_FLAGS",
    "RUSTC_WRAPPER",
    "RUSTFLAGS",
    "CXX",
    "HIPCXX",
    "HIP_PATH",
    "ROCM_PATH",
];

/// Manifest of every project at first. Without debug information it is smaller and builds faster.
const WORKSPACE: &str = "[workspace]\nresolver = \"2\"\nmembers = [\"*\"]\nexclude = [\"extra\"]\n\n\
                         [profile.dev]\ndebug = false\n";

const BUILD_SCRIPT: &str = "fn main() {\n    gpustub_build::finalize();\n}\n";

/// Path of gpustub-build, in TOML syntax.
fn helper() -> String {
    format!("{:?}", repository().join("gpustub-build"))
}

/// Lock file of the repository's example, for every project.
fn lock() -> Result<String> {
    // Cargo removes the packages of the example itself.
    let path = repository().join("examples/device-link/Cargo.lock");
    Ok(fs::read_to_string(path)?)
}

/// Writes a shell script that can be executed.
pub fn executable(path: &Path, text: &str) -> Result<()> {
    fs::create_dir_all(path.parent().unwrap_or(path))?;
    fs::write(path, text)?;
    Ok(fs::set_permissions(
        path,
        fs::Permissions::from_mode(0o755),
    )?)
}

/// Target directory in which gpustub-build is built.
struct Seed(PathBuf);

impl Seed {
    fn copy(&self, target: &Path) -> Result<()> {
        let mut copy = Command::new("cp");
        succeed(copy.arg("-a").arg("--").arg(&self.0).arg(target))?;
        Ok(())
    }
}

/// Built once per process, for all of its tests.
fn seed() -> Result<Seed> {
    static TARGET: LazyLock<Result<PathBuf, String>> =
        LazyLock::new(|| make_seed().map_err(|Failure(message)| message));
    Ok(Seed(TARGET.clone()?))
}

fn make_seed() -> Result<PathBuf> {
    let target = target_dir().join("rdc-seed");
    let dir = scratch()?;
    let manifest = format!(
        "[package]\nname = \"seed\"\nedition = \"2021\"\n[workspace]\n[lib]\npath = \"lib.rs\"\n\
         [profile.dev]\ndebug = false\n[build-dependencies]\n\
         gpustub-build = {{ path = {}, features = [\"device-link\"] }}\n",
        helper()
    );
    let root = dir.path();
    fs::write(root.join("Cargo.toml"), manifest)?;
    fs::write(root.join("Cargo.lock"), lock()?)?;
    fs::write(root.join("lib.rs"), "")?;
    fs::write(root.join("build.rs"), "fn main() {}\n")?;
    let mut build = cargo(root);
    build.args(["build", "--quiet", "--offline", "--target-dir"]);
    build.arg(&target).env("CARGO_INCREMENTAL", "0");
    succeed(&mut build)?;
    Ok(target)
}
