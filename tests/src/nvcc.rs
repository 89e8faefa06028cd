//! Programs compiled by real versions of nvcc, linked with stubs and with the libraries themselves.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use crate::command::succeed;
use crate::components::{component, target_dir, wheel_libraries};
use crate::stubs::{Machine, SOURCES, Stubs, plan_or_fail};
use crate::{Result, repository};

/// CUDA toolkit.
#[derive(Debug, Clone, Copy)]
pub struct Toolkit {
    /// Version, as in `header-version`.
    pub version: &'static str,
    compiler: &'static str,
    /// Component with its headers and libraries, if separate from the compiler.
    runtime: Option<&'static str>,
    flags: &'static [&'static str],
}

/// From wheels, as all of 13.
pub const TOOLKIT_13: Toolkit = Toolkit {
    version: "13.5",
    compiler: "wheels/nvcc-13.5/nvidia/cu13/bin/nvcc",
    runtime: Some("wheels/cudart-13.5/nvidia/cu13"),
    flags: &["-arch=sm_80"],
};

/// As [`TOOLKIT_13`], with the C++ headers of CCCL; for `heavy_` tests only.
pub const TOOLKIT_13_4: Toolkit = Toolkit {
    version: "13.4",
    compiler: "wheels/toolkit-13.4/nvidia/cu13/bin/nvcc",
    runtime: Some("wheels/cudart-13.4/nvidia/cu13"),
    flags: &["-arch=sm_80"],
};

/// From Debian.
pub const TOOLKIT_12: Toolkit = Toolkit {
    version: "12.4",
    compiler: "toolkit-12.4/bin/nvcc",
    runtime: None,
    flags: &["-arch=sm_80"],
};

/// From Debian. Supports gcc up to 11 (crt/host_config.h).
pub const TOOLKIT_11: Toolkit = Toolkit {
    version: "11.8",
    compiler: "toolkit-11.8/bin/nvcc",
    runtime: None,
    flags: &["-arch=sm_80", "-allow-unsupported-compiler"],
};

/// Files that a toolkit compiled from `tests/startup`, below the target directory.
#[derive(Debug)]
pub struct Compiled {
    directory: PathBuf,
}

/// Library that a program or library is linked with.
#[derive(Debug, Clone, Copy)]
pub enum With<'a> {
    /// The stubs.
    Stubs,
    /// This library.
    Library(&'a Path),
}

fn sources() -> PathBuf {
    repository().join("tests/startup")
}

impl Toolkit {
    /// Directory with `bin/nvcc`.
    pub fn root(&self) -> Result<PathBuf> {
        let compiler = component(self.compiler)?;
        match compiler.parent().and_then(Path::parent) {
            Some(root) => Ok(root.to_owned()),
            None => Err("a compiler is in a toolkit".into()),
        }
    }

    /// Compiles all sources, and the stubs for a program with this toolkit's headers: once per
    /// process, for all of its tests.
    pub fn compiled(&self) -> Result<Compiled> {
        /// Results by version.
        static RESULTS: Mutex<BTreeMap<&str, Result<(), String>>> = Mutex::new(BTreeMap::new());
        let directory = target_dir().join(format!("startup-{}", self.version));
        RESULTS
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry(self.version)
            .or_insert_with(|| self.compile(&directory).map_err(|failure| failure.0))
            .clone()?;
        Ok(Compiled { directory })
    }

    /// The toolkit's compiler, which finds headers and libraries; without architectures.
    pub fn nvcc(&self) -> Result<Command> {
        let mut nvcc = Command::new(component(self.compiler)?);
        if let Some(runtime) = self.runtime {
            nvcc.arg("-I").arg(component(runtime)?.join("include"));
            nvcc.arg("-L").arg(component(runtime)?.join("lib"));
        }
        Ok(nvcc)
    }

    /// A program beside the compiler: `nvlink`, `cuobjdump`.
    pub fn tool(&self, name: &str) -> Result<Command> {
        Ok(Command::new(component(self.compiler)?.with_file_name(name)))
    }

    fn compile(&self, directory: &Path) -> Result<()> {
        fs::create_dir_all(directory)?;
        for source in ["first", "second", "plugin"] {
            let mut nvcc = self.nvcc()?;
            nvcc.args(["-cudart", "shared", "-Xcompiler", "-fPIC,-g1"]);
            nvcc.args(self.flags);
            nvcc.arg("-c")
                .arg(sources().join(source).with_extension("cu"))
                .arg("-o")
                .arg(directory.join(source).with_extension("o"));
            succeed(&mut nvcc)?;
        }
        let manifest = format!(
            "schema = 1\n[stub.cuda]\nheader-version = \"{0}\"\n[stub.cudart]\nheader-version = \"{0}\"\n",
            self.version
        );
        let plan = plan_or_fail(&manifest, &[], &Machine::X86_64.target())?;
        Stubs::write(directory, &plan, "cc", &[])?.archive()?;
        Ok(())
    }
}

impl Compiled {
    /// Links the program of two objects with device code.
    pub fn program(&self, output: &Path, with: With<'_>) -> Result<()> {
        self.link(output, &["first.o", "second.o"], with)
    }

    /// Links the shared library with device code.
    pub fn plugin(&self, output: &Path, with: With<'_>) -> Result<()> {
        self.link(output, &["plugin.o", "-shared", "-Wl,-z,defs"], with)
    }

    fn link(&self, output: &Path, words: &[&str], with: With<'_>) -> Result<()> {
        let mut link = Command::new("c++");
        link.current_dir(&self.directory).args(words);
        match with {
            With::Stubs => link.arg(format!("{SOURCES}/libgpustub_stubs.a")),
            With::Library(library) => link.arg(library),
        };
        succeed(link.args(["-pthread", "-ldl", "-o"]).arg(output))?;
        Ok(())
    }
}

/// The program that loads and unloads the shared library.
pub fn host(dir: &Path) -> Result<PathBuf> {
    let program = dir.join("host");
    let mut cc = Command::new("cc");
    cc.arg(sources().join("host.c"));
    succeed(cc.args(["-ldl", "-o"]).arg(&program))?;
    Ok(program)
}

/// A runtime of this major that records its calls, alone in its own directory.
pub fn recorder(dir: &Path, major: u32) -> Result<PathBuf> {
    let version = major * 1000 + 10;
    let definitions = [format!("-DMAJOR={major}"), format!("-DVERSION={version}")];
    record(
        &dir.join(format!("recorder-{major}")),
        soname(major),
        &definitions,
    )
}

/// As [`recorder`], for HIP.
pub fn hip_recorder(dir: &Path) -> Result<PathBuf> {
    let definitions = ["-DHIP", "-DVERSION=60000000"].map(str::to_owned);
    record(&dir.join("recorder-hip"), "libamdhip64.so.6", &definitions)
}

/// Compiles a recorder, never unloaded with a plugin that needs it, as if stubs had loaded it.
fn record(directory: &Path, soname: &str, definitions: &[String]) -> Result<PathBuf> {
    fs::create_dir_all(directory)?;
    let library = directory.join(soname);
    let mut cc = Command::new("cc");
    cc.args([
        "-shared",
        "-fPIC",
        "-Wall",
        "-Wextra",
        "-O1",
        "-Wl,-z,nodelete",
    ])
    .args(definitions)
    .arg(format!("-Wl,-soname,{soname}"))
    .arg(sources().join("recorder.c"));
    succeed(cc.args(["-ldl", "-o"]).arg(&library))?;
    Ok(library)
}

/// Programs not compiled by nvcc: `hooks.c` with the stubs of `id`, and with a library.
pub fn hooks(dir: &Path, id: &str, flags: &[&str], library: &Path) -> Result<[PathBuf; 2]> {
    let source = sources().join("hooks.c");
    let object = dir.join("hooks.o");
    let mut cc = Command::new("cc");
    cc.args(["-c", "-O1", "-Wall", "-Wextra"]).args(flags);
    succeed(cc.arg(source).arg("-o").arg(&object))?;
    link_both(dir, id, &object, library)
}

/// The program of `device.hip`, whose host code clang compiles.
pub fn hip_program(dir: &Path, library: &Path) -> Result<[PathBuf; 2]> {
    let object = dir.join("device.o");
    let mut clang = Command::new("clang++");
    clang.args([
        "-x",
        "hip",
        "--cuda-host-only",
        "-nogpuinc",
        "-nogpulib",
        "-fPIC",
        "-c",
    ]);
    clang
        .arg(sources().join("device.hip"))
        .arg("-o")
        .arg(&object);
    succeed(&mut clang)?;
    link_both(dir, "hip", &object, library)
}

/// An object linked with the stubs of `id`, and with a library.
fn link_both(dir: &Path, id: &str, object: &Path, library: &Path) -> Result<[PathBuf; 2]> {
    let plan = plan_or_fail(
        &format!("schema = 1\n[stub.{id}]\nheader-version = \"none\"\n"),
        &[],
        &Machine::X86_64.target(),
    )?;
    let stubs = Stubs::write(dir, &plan, "cc", &[])?.archive()?;
    let (stubbed, direct) = (dir.join("stubbed"), dir.join("direct"));
    for (program, input) in [(&stubbed, stubs.as_path()), (&direct, library)] {
        let mut link = Command::new("c++");
        link.arg(object).arg(input).args(["-pthread", "-ldl", "-o"]);
        succeed(link.arg(program))?;
    }
    Ok([stubbed, direct])
}

/// Path of a real runtime, by the version in its component's name.
pub fn runtime(version: &str) -> Result<PathBuf> {
    let major = version.split('.').next().unwrap_or(version).parse()?;
    Ok(wheel_libraries(&format!("cudart-{version}"))?.join(soname(major)))
}

/// The same soname for every 11.x.
fn soname(major: u32) -> &'static str {
    match major {
        11 => "libcudart.so.11.0",
        12 => "libcudart.so.12",
        _ => "libcudart.so.13",
    }
}
