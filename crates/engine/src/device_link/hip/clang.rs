//! Finds clang, its tools and ROCm: in AMD's layout, or in that of Debian's packages.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_core::diag::MISSING_HIP_COMPILER;
use gpustub_core::directives::Directive;
use gpustub_core::text::join;

use crate::env::Env;
use crate::error::Error;
use crate::files;
use crate::fingerprint;

/// A clang for HIP, with the paths that it does not find itself.
#[derive(Debug, Clone)]
pub(in crate::device_link) struct Clang {
    program: PathBuf,
    /// Directory with `include/hip`: `--rocm-path`.
    root: PathBuf,
    /// Directory of libraries with the target's name, as Debian's packages have.
    target_lib: PathBuf,
    /// PATH of its commands: clang runs the lld and clang-offload-bundler of PATH, and those of another release reject
    /// its code.
    path: OsString,
    /// Values of the variables that it reads, and states of its files, for fingerprints.
    surroundings: String,
    /// The program, and a device library: clang does not list those that it links (19.1.7).
    files: Vec<PathBuf>,
}

/// Variables that clang reads for all code (Clang's manual, "Command Guide"; `Driver::BuildCompilation`).
pub(in crate::device_link) const READ_BY_CLANG: [&str; 4] = [
    "CPATH",
    "CPLUS_INCLUDE_PATH",
    "COMPILER_PATH",
    "CCC_OVERRIDE_OPTIONS",
];

/// Variable that it reads for HIP (`RocmInstallationDetector` of its driver).
const DEVICE_LIBRARIES: &str = "HIP_DEVICE_LIB_PATH";

/// Programs that clang runs for a device link.
const TOOLS: [&str; 2] = ["clang-offload-bundler", "lld"];

/// Directories of clang below ROCm's (6.x and before).
const LLVM_DIRECTORIES: [&str; 2] = ["lib/llvm/bin", "llvm/bin"];

impl Clang {
    /// Finds clang by HIPCXX, as CMake does, below ROCM_PATH, HIP_PATH or `/opt/rocm`, or in Debian's
    /// `/usr/lib/llvm-*`, newest first. `triple` is the target.
    pub(in crate::device_link) fn find(env: &Env, triple: &str) -> Result<Self, Error> {
        let mut tried = Vec::new();
        let mut roots = Vec::new();
        for name in ["ROCM_PATH", "HIP_PATH"] {
            match env.get(name).filter(|value| !value.is_empty()) {
                Some(root) => roots.push(PathBuf::from(root)),
                None => tried.push(name.to_owned()),
            }
        }
        let has_headers = |root: &&PathBuf| root.join("include/hip/hip_runtime.h").is_file();
        let defaults = ["/opt/rocm", "/usr"].map(PathBuf::from);
        let root = roots.iter().chain(&defaults).find(has_headers);
        let named = env.get("HIPCXX").filter(|value| !value.is_empty());
        let program = match &named {
            Some(named) => resolve(env, Path::new(named)),
            None => {
                tried.insert(0, "HIPCXX".to_owned());
                let below = roots.iter().chain(&defaults);
                let below = below.flat_map(|root| LLVM_DIRECTORIES.map(|dir| root.join(dir)));
                let mut directories = below.chain(debian_directories());
                directories
                    .find(|dir| TOOLS.iter().all(|tool| dir.join(tool).is_file()))
                    .map(|dir| dir.join("clang++"))
                    .filter(|program| program.is_file())
            }
        };
        tried.extend(["/opt/rocm", "/usr/lib/llvm-*"].map(str::to_owned));
        let Some(program) = program else {
            return Err(match named {
                Some(named) => missing(&format!(
                    "HIPCXX names {}, which does not exist",
                    Path::new(&named).display()
                )),
                None => missing(&format!(
                    "no clang with lld and clang-offload-bundler is found\n  tried: {}",
                    join(&tried, ", ")
                )),
            });
        };
        let Some(root) = root else {
            return Err(missing(&format!(
                "the headers of HIP (include/hip/hip_runtime.h) are not found\n  tried: {}",
                join(&tried, ", ")
            )));
        };
        let target_lib = root.join(format!("lib/{}", triple.replace("-unknown", "")));
        let mut files = vec![program.clone()];
        let library_dirs = [&target_lib, root];
        let libraries = library_dirs.map(|dir| dir.join("amdgcn/bitcode/ocml.bc"));
        files.extend(libraries.into_iter().filter(|file| file.is_file()));
        let mut surroundings = String::new();
        for file in &files {
            let file = fs::canonicalize(file).ok();
            let state = file.and_then(|file| fingerprint::state(&file));
            surroundings += &format!(" {state:?}");
        }
        for name in READ_BY_CLANG.into_iter().chain([DEVICE_LIBRARIES]) {
            if let Some(value) = env.get(name) {
                surroundings += &format!(" {name}={value:?}");
            }
        }
        Ok(Self {
            path: path_of_commands(env, &program),
            target_lib,
            root: root.clone(),
            program,
            surroundings,
            files,
        })
    }

    /// A command of clang for HIP, by its older driver.
    fn base(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.env("PATH", &self.path);
        let mut add = |option: &str, value: &Path| {
            let mut word = OsString::from(option);
            word.push(value);
            command.arg(word);
        };
        add("--rocm-path=", &self.root);
        // `--rocm-path` does not lead to Debian's device libraries.
        let device_libraries = self.target_lib.join("amdgcn/bitcode");
        if device_libraries.is_dir() {
            add("--rocm-device-lib-path=", &device_libraries);
        }
        // Objects of the newer driver register their kernels by a section of the whole image (LLVM 19): only a device
        // link in the same image could be over them, and one over some of them would register all.
        command.arg("--no-offload-new-driver");
        command
    }

    /// A command for relocatable code.
    pub(super) fn command(&self) -> Command {
        let mut command = self.base();
        command.arg("-fgpu-rdc");
        command
    }

    /// A command that compiles a source to a module, as `hipcc --genco`: an offload bundle of code objects, also of one.
    pub(in crate::device_link) fn compile_module(&self) -> Command {
        let mut command = self.base();
        command.args(["-x", "hip", "--cuda-device-only"]);
        command
    }

    /// A command that compiles relocatable code.
    pub(in crate::device_link) fn compile(&self) -> Command {
        let mut command = self.command();
        command.args(["-x", "hip", "-c", "-fPIC"]);
        command
    }

    /// Text that fingerprints store of a command: the command, and the other inputs of its result.
    pub(in crate::device_link) fn key(&self, command: &Command) -> String {
        fingerprint::command_line(command) + &self.surroundings
    }

    /// Directives that make cargo watch its files.
    pub(in crate::device_link) fn watched(&self) -> Result<Vec<Directive>, Error> {
        let files = self.files.iter();
        files
            .map(|file| Ok(Directive::RerunIfChanged(files::text(file)?)))
            .collect()
    }

    /// Error for a command that did not start.
    pub(in crate::device_link) fn cannot_run(&self, error: &io::Error) -> Error {
        Error::io("run", &self.program, error)
    }

    /// Directory of the HIP runtime, if it is below ROCm's.
    pub(in crate::device_link) fn library_dir(&self) -> Option<PathBuf> {
        [self.root.join("lib"), self.target_lib.clone()]
            .into_iter()
            .find(|dir| dir.join("libamdhip64.so").exists())
    }
}

/// Help for an error of clang about the bitcode that it links into all code for AMD.
pub(in crate::device_link) fn device_library_help(printed: &str) -> Option<String> {
    let (_, rest) = printed.split_once("cannot find ROCm device library")?;
    let arch = rest.strip_prefix(" for gfx").map(|arch| {
        let end = arch.find(|c: char| !c.is_ascii_alphanumeric() && c != '-');
        &arch[..end.unwrap_or(arch.len())]
    });
    Some(match arch {
        Some(arch) => format!(
            "the ROCm that was found has no oclc_isa_version_*.bc for gfx{arch}: set ROCM_PATH to a later one, or remove it from \
             `archs`"
        ),
        None => "install the bitcode that clang links into all code for AMD (Debian, Ubuntu: apt install rocm-device-libs), or \
                 set ROCM_PATH to a directory with amdgcn/bitcode"
            .to_owned(),
    })
}

/// The program that a name with or without a directory means.
pub(in crate::device_link) fn resolve(env: &Env, program: &Path) -> Option<PathBuf> {
    if program.components().count() > 1 {
        return program.is_file().then(|| program.to_owned());
    }
    let path = env.peek("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|dir| dir.join(program))
        .find(|file| file.is_file())
}

/// Directories of LLVM's releases in Debian's packages, newest first.
pub(in crate::device_link) fn debian_directories() -> Vec<PathBuf> {
    let mut releases: Vec<(u32, PathBuf)> = Vec::new();
    for entry in fs::read_dir("/usr/lib").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let release = name.to_str().and_then(|name| name.strip_prefix("llvm-"));
        if let Some(release) = release.and_then(|release| release.parse().ok()) {
            releases.push((release, entry.path().join("bin")));
        }
    }
    releases.sort();
    releases.into_iter().rev().map(|(_, dir)| dir).collect()
}

/// PATH with the directory of the program, and of the file that it is a link to, in front.
pub(in crate::device_link) fn path_of_commands(env: &Env, program: &Path) -> OsString {
    let target = fs::canonicalize(program).unwrap_or_default();
    let path = env.peek("PATH").unwrap_or_default();
    let mut directories: Vec<PathBuf> = [program, &target]
        .iter()
        .filter_map(|program| program.parent())
        .map(Path::to_owned)
        .collect();
    directories.extend(std::env::split_paths(&path));
    std::env::join_paths(directories).unwrap_or(path)
}

fn missing(problem: &str) -> Error {
    Error::new(&MISSING_HIP_COMPILER, problem).help(
        "install ROCm (Debian, Ubuntu: apt install hipcc clang-tools-15 lld-15), or set ROCM_PATH or HIPCXX; \
         `optional = true` builds without the library",
    )
}
