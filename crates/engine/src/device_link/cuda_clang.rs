//! clang as a compiler of CUDA code, beside nvcc, which makes the device links.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_core::diag::MISSING_COMPILER;
use gpustub_core::directives::Directive;
use gpustub_core::gpu_arch::{Arch, ArchKind};

use super::hip::{READ_BY_CLANG, debian_directories, path_of_commands, resolve};
use super::nvcc::Nvcc;
use crate::env::Env;
use crate::error::Error;
use crate::files;
use crate::fingerprint;

/// A clang, and the toolkit whose headers, assembler and `fatbinary` it uses.
#[derive(Debug, Clone)]
pub(super) struct CudaClang {
    program: PathBuf,
    /// Toolkit directory: `--cuda-path`.
    root: PathBuf,
    path: OsString,
    /// Other inputs of a command's result, for its fingerprint.
    surroundings: String,
}

/// The id that clang 23.1 gives to each object: the hash of a variable's name, which had the name of the source
/// in front before (`GlobalValue::getGUID` of `__cuda_fatbin_wrapper`).
pub(super) const CONSTANT_ID: &str = "__nv_58a2749e7b33cb70";

impl CudaClang {
    /// Finds clang by CUDACXX, as CMake does, unless that is nvcc; then in Debian's `/usr/lib/llvm-*`, newest first, and
    /// in PATH.
    pub(super) fn find(env: &Env, nvcc: &Nvcc) -> Result<Self, Error> {
        let named = env.get("CUDACXX").filter(|value| {
            let name = Path::new(value).file_name().unwrap_or_default();
            name.to_string_lossy().contains("clang")
        });
        let program = match &named {
            Some(named) => resolve(env, Path::new(named)),
            None => debian_directories()
                .into_iter()
                .map(|dir| dir.join("clang++"))
                .find(|program| program.is_file())
                .or_else(|| resolve(env, Path::new("clang++"))),
        };
        let Some(program) = program else {
            let problem = match named {
                Some(named) => format!(
                    "CUDACXX names {}, which does not exist",
                    Path::new(&named).display()
                ),
                None => "no clang is found\n  tried: CUDACXX, /usr/lib/llvm-*, PATH".to_owned(),
            };
            return Err(Error::new(&MISSING_COMPILER, problem).help(
                "install clang (Debian, Ubuntu: apt install clang-19), set CUDACXX, or remove compiler = \"clang\"",
            ));
        };
        // It assembles with the toolkit's programs.
        let tools = ["bin/ptxas", "bin/fatbinary"].map(|tool| nvcc.root.join(tool));
        let files = [&program].into_iter().chain(&tools);
        let mut surroundings = String::new();
        for file in files {
            let file = fs::canonicalize(file).ok();
            surroundings += &format!(" {:?}", file.and_then(|file| fingerprint::state(&file)));
        }
        for name in READ_BY_CLANG {
            if let Some(value) = env.get(name) {
                surroundings += &format!(" {name}={value:?}");
            }
        }
        Ok(Self {
            path: path_of_commands(env, &program),
            root: nvcc.root.clone(),
            program,
            surroundings,
        })
    }

    /// A command that compiles relocatable code for these architectures.
    pub(super) fn compile(&self, archs: &[Arch], opt_level: &str, debug: bool) -> Command {
        let mut command = Command::new(&self.program);
        command.env("PATH", &self.path);
        let mut root = OsString::from("--cuda-path=");
        root.push(&self.root);
        command.arg(root);
        // The newer driver, the default of LLVM 22, writes objects for clang's own linker.
        command.args(["--no-offload-new-driver", "-fgpu-rdc", "-x", "cuda", "-c"]);
        // It warns of each release that is newer than itself.
        command.args(["-fPIC", "-Wno-unknown-cuda-version"]);
        command.arg(format!("-O{opt_level}"));
        if debug {
            command.args(["-Xarch_host", "-g"]);
            if opt_level != "0" {
                // At -O0 ptxas would not optimise.
                command.args(["-Xarch_device", "-gline-tables-only"]);
            }
        }
        // Without it, PTX for each architecture.
        command.arg("--no-cuda-include-ptx=all");
        for arch in archs {
            match arch.kind() {
                ArchKind::Virtual => {
                    let real = arch.as_kind(ArchKind::Real);
                    command.arg(format!("--cuda-include-ptx={real}"))
                }
                _ => command.arg(format!("--cuda-gpu-arch={arch}")),
            };
        }
        command
    }

    /// Text that fingerprints store of a command: the command, and the other inputs of its result.
    pub(super) fn key(&self, command: &Command) -> String {
        fingerprint::command_line(command) + &self.surroundings
    }

    /// Directives that make cargo watch the program.
    pub(super) fn watched(&self) -> Result<Vec<Directive>, Error> {
        let path = files::text(&self.program)?;
        Ok(vec![Directive::RerunIfChanged(path)])
    }

    /// Error for a command that did not start.
    pub(super) fn cannot_run(&self, error: &io::Error) -> Error {
        Error::io("run", &self.program, error)
    }
}

/// Next step after an error of clang.
pub(super) fn help(printed: &str) -> Option<&'static str> {
    [
        (
            "unsupported option '--no-offload-new-driver'",
            "clang 15 is the first release that can be used: set CUDACXX to a newer one",
        ),
        (
            "'curand_mtgp32_kernel.h' file not found",
            "clang includes headers of cuRAND in all CUDA code: install them into the toolkit (Debian, Ubuntu: \
             libcurand-dev; wheels: nvidia-curand), or name their directory in `compile-options`",
        ),
        (
            "'nv/target' file not found",
            "headers of cuRAND include those of CCCL: install them into the toolkit (wheels: nvidia-cuda-cccl)",
        ),
        (
            "expected function body after function declarator",
            "this release of clang does not support the toolkit's headers: clang 19 compiles with CUDA up to 12.x, clang 22 \
             with 13; set CUDACXX to another one, or CUDA_HOME to an older toolkit",
        ),
        (
            "unsupported CUDA gpu architecture",
            "clang knows the architectures of the toolkits that it was released for: use a newer one (CUDACXX), or \
             compiler = \"nvcc\"",
        ),
    ]
    .into_iter()
    .find_map(|(text, help)| printed.contains(text).then_some(help))
}
