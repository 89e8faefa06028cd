//! Packages with stubs, cross-compiled by cargo as its users do it, and run by emulators: C compilers of Debian,
//! clang and cargo-zigbuild. `docs/targets.md` has the commands.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_tests::cargo::without_own_cargo;
use gpustub_tests::command::{Ran, path_with, run, succeed};
use gpustub_tests::components::{component, target_dir};
use gpustub_tests::elf::{needed, symbols};
use gpustub_tests::rustup;
use gpustub_tests::scratch::scratch;
use gpustub_tests::stubs::Machine;
use gpustub_tests::wine::{self, install_random_numbers, windows_path};
use gpustub_tests::{Result, repository};

/// Machines that rustup has a standard library for.
const MACHINES: [Machine; 6] = [
    Machine::Aarch64,
    Machine::Riscv64,
    Machine::Powerpc64le,
    Machine::S390x,
    Machine::I686,
    Machine::Arm,
];

const MINGW: &str = "x86_64-w64-mingw32-gcc";

const PRESENT: &str = "acme: 1234\nacme: 1234\nacme: available true\nopencl: -1001, 0 platforms\n";
const ABSENT: &str = "acme: 77\nacme: 77\nacme: available false\nopencl: -1001, 0 platforms\n";

/// Directory of cargo and rustc, with the standard library of all targets.
fn toolchain() -> Result<PathBuf> {
    let triples = MACHINES.map(|machine| machine.target().triple);
    let mut targets: Vec<&str> = triples.iter().map(String::as_str).collect();
    targets.extend([
        "x86_64-unknown-linux-musl",
        "x86_64-unknown-freebsd",
        wine::TRIPLE,
    ]);
    rustup::toolchain(&targets)
}

/// Project outside of the workspace, whose build script makes stubs.
struct Project {
    name: &'static str,
    dir: tempfile::TempDir,
    variables: BTreeMap<String, String>,
}

impl Project {
    /// `name`: of the package, and of the program in the shared target directory.
    fn new(name: &'static str) -> Result<Self> {
        let dir = scratch()?;
        let root = repository();
        let source = root.join("tests/programs/cross");
        fs::create_dir(dir.path().join("src"))?;
        for (file, to) in [
            ("GpuStub.toml", "GpuStub.toml"),
            ("acme.symbols", "acme.symbols"),
            ("build.rs", "build.rs"),
            ("main.rs", "src/main.rs"),
        ] {
            fs::copy(source.join(file), dir.path().join(to))?;
        }
        let root = root.display();
        let manifest = format!(
            "[package]\nname = \"{name}\"\nedition = \"2024\"\n[workspace]\n\
             [dependencies]\ngpustub = {{ path = \"{root}/crates/gpustub\" }}\n\
             [build-dependencies]\ngpustub-build = {{ path = \"{root}/gpustub-build\" }}\n"
        );
        fs::write(dir.path().join("Cargo.toml"), manifest)?;
        let variables = BTreeMap::new();
        Ok(Self {
            name,
            dir,
            variables,
        })
    }

    /// Sets a variable of a target, as `CC_<target>` or `CARGO_TARGET_<TARGET>_LINKER`.
    fn set(&mut self, name: &str, machine: Machine, value: &str) {
        let triple = machine.target().triple.replace('-', "_");
        let name = if name.starts_with("CARGO") {
            name.replace("{}", &triple.to_uppercase())
        } else {
            name.replace("{}", &triple)
        };
        self.variables.insert(name, value.to_owned());
    }

    /// cargo, or a command with its options.
    fn cargo(&self, words: &[&str]) -> Result<Command> {
        let bin = toolchain()?;
        let mut cargo = Command::new(bin.join("cargo"));
        without_own_cargo(&mut cargo);
        cargo
            .env("PATH", path_with(&bin)?)
            .env("CARGO", bin.join("cargo"))
            .env("RUSTC", bin.join("rustc"))
            .env_remove("RUSTUP_TOOLCHAIN")
            // Cargo sets it for this test; with the rustc of another toolchain it selects that one's libraries.
            .env_remove("LD_LIBRARY_PATH")
            // One for all projects: build scripts and their dependencies are those of the host.
            .env("CARGO_TARGET_DIR", target_dir().join("cross/target"))
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            .envs(&self.variables)
            .current_dir(self.dir.path())
            .args(words);
        Ok(cargo)
    }

    /// Program of a target.
    fn program(&self, triple: &str) -> PathBuf {
        target_dir().join(format!("cross/target/{triple}/debug/{}", self.name))
    }

    /// The library of the program, for a machine.
    fn library(&self, machine: Machine) -> Result<PathBuf> {
        let library = self.dir.path().join("libacme.so.1");
        let mut cc = Command::new(machine.compiler("c"));
        cc.args(["-shared", "-fPIC", "-Wl,-soname,libacme.so.1", "-o"])
            .arg(&library)
            .arg(repository().join("tests/programs/cross/acme.c"));
        succeed(&mut cc)?;
        Ok(library)
    }

    /// Runs the program by cargo, with the library and without it.
    fn check(&self, machine: Machine) -> Result<()> {
        let triple = machine.target().triple;
        let library = self.library(machine)?;
        for (path, expected) in [(library, PRESENT), (self.dir.path().join("none"), ABSENT)] {
            let mut cargo = self.cargo(&["run", "--quiet", "--target", &triple])?;
            cargo.env("GPUSTUB_ACME_PATH", path);
            let ran = succeed(&mut cargo)?;
            if ran.stdout != expected {
                return Err(ran.error(&format!("expected {expected:?}")));
            }
        }
        Ok(())
    }
}

/// Emulator with the cross compiler's C library.
fn runner(machine: Machine) -> String {
    match machine {
        Machine::I686 => "qemu-i386 -L /usr/i686-linux-gnu".to_owned(),
        _ => machine.emulator().join(" "),
    }
}

/// Checks each machine, and reports all failures.
fn each_machine(check: impl Fn(Machine) -> Result<()>) -> Result<()> {
    let failed = MACHINES.iter().filter_map(|&machine| {
        let failure = check(machine).err()?;
        Some(format!("{}: {}", machine.label(), failure.0))
    });
    let failed: Vec<String> = failed.collect();
    if failed.is_empty() {
        return Ok(());
    }
    Err(failed.join("\n").into())
}

#[test]
#[ignore = "downloads standard libraries: tests/run --all"]
fn heavy_gcc_builds_for_each_target() -> Result<()> {
    each_machine(|machine| {
        let mut project = Project::new("gcc")?;
        let gcc = machine.compiler("c");
        project.set("CC_{}", machine, &gcc);
        project.set("CARGO_TARGET_{}_LINKER", machine, &gcc);
        project.set("CARGO_TARGET_{}_RUNNER", machine, &runner(machine));
        project.check(machine)
    })
}

/// Debian's gcc of the target is what the `cc` crate finds by itself.
#[test]
#[ignore = "downloads standard libraries: tests/run --all"]
fn heavy_gcc_is_found_without_a_variable() -> Result<()> {
    each_machine(|machine| {
        let mut project = Project::new("gcc-found")?;
        project.set("CARGO_TARGET_{}_LINKER", machine, &machine.compiler("c"));
        project.set("CARGO_TARGET_{}_RUNNER", machine, &runner(machine));
        project.check(machine)
    })
}

#[test]
#[ignore = "downloads standard libraries: tests/run --all"]
fn heavy_clang_builds_for_each_target() -> Result<()> {
    each_machine(|machine| {
        let mut project = Project::new("clang")?;
        let gnu = machine.gnu_triple().ok_or("no cross compiler")?;
        project.set("CC_{}", machine, "clang");
        // Debian's cross headers are not below a sysroot, where clang would find them.
        let flags = format!("--target={gnu} -idirafter /usr/{gnu}/include");
        project.set("CFLAGS_{}", machine, &flags);
        project.set("CARGO_TARGET_{}_LINKER", machine, &machine.compiler("c"));
        project.set("CARGO_TARGET_{}_RUNNER", machine, &runner(machine));
        project.check(machine)
    })
}

/// `cargo zigbuild` of this project.
fn zigbuild(project: &Project, target: &str) -> Result<Command> {
    let mut command = project.cargo(&[])?;
    let caches = target_dir().join("cross");
    let mut zigbuild = Command::new(component("cargo-zigbuild/bin/cargo-zigbuild")?);
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => zigbuild.env(name, value),
            None => zigbuild.env_remove(name),
        };
    }
    command.env_clear();
    zigbuild
        .current_dir(project.dir.path())
        .env("PYTHONPATH", component("ziglang")?)
        .env("ZIG_GLOBAL_CACHE_DIR", caches.join("zig"))
        .env("CARGO_ZIGBUILD_CACHE_DIR", caches.join("zigbuild"))
        .args(["zigbuild", "--quiet", "--target", target]);
    Ok(zigbuild)
}

/// Newest version of glibc that a program needs, as (major, minor).
fn glibc_of(program: &Path) -> Result<(u32, u32)> {
    let names = symbols("--dyn-syms", program)?;
    let versions = names.iter().filter_map(|symbol| {
        let version = symbol.name.split_once("@GLIBC_")?.1;
        let mut numbers = version.split('.').map(str::parse::<u32>);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
    });
    Ok(versions.max().ok_or("no version of glibc")?)
}

/// Version of glibc behind the triple. zig links libraries of its own for powerpc64le that need 2.32; programs without
/// stubs do, too.
fn zig_glibc(machine: Machine) -> (u32, u32) {
    match machine {
        Machine::Riscv64 => (2, 29),
        Machine::Powerpc64le => (2, 32),
        _ => (2, 17),
    }
}

#[test]
#[ignore = "downloads standard libraries: tests/run --all"]
fn heavy_cargo_zigbuild_keeps_to_the_version_of_glibc() -> Result<()> {
    each_machine(|machine| {
        let project = Project::new("zigbuild")?;
        let triple = machine.target().triple;
        let (major, minor) = zig_glibc(machine);
        succeed(&mut zigbuild(
            &project,
            &format!("{triple}.{major}.{minor}"),
        )?)?;
        let program = project.program(&triple);
        let newest = glibc_of(&program)?;
        if newest > (major, minor) {
            return Err(format!("needs glibc {newest:?}, not {major}.{minor}").into());
        }
        let library = project.library(machine)?;
        for (path, expected) in [
            (library, PRESENT),
            (project.dir.path().join("none"), ABSENT),
        ] {
            let runner = runner(machine);
            let mut words = runner.split(' ');
            let mut emulator = Command::new(words.next().unwrap_or_default());
            emulator.args(words).arg(&program);
            let ran = succeed(emulator.env("GPUSTUB_ACME_PATH", path))?;
            if ran.stdout != expected {
                return Err(ran.error(&format!("expected {expected:?}")));
            }
        }
        Ok(())
    })
}

/// No emulator here runs programs of FreeBSD.
#[test]
#[ignore = "downloads standard libraries: tests/run --all"]
fn heavy_program_for_freebsd_links() -> Result<()> {
    let project = Project::new("freebsd")?;
    let triple = "x86_64-unknown-freebsd";
    succeed(&mut zigbuild(&project, triple)?)?;
    let program = project.program(triple);
    let names = symbols("--symbols", &program).or_else(|_| symbols("--dyn-syms", &program))?;
    assert!(!names.is_empty());
    let needed = needed(&program)?;
    assert!(
        needed
            .iter()
            .all(|name| !name.contains("OpenCL") && !name.contains("acme")),
        "{needed:?}"
    );
    Ok(())
}

/// Cargo does not report the default of the target to build scripts.
#[test]
#[ignore = "downloads standard libraries: tests/run --all"]
fn heavy_static_musl_is_refused_and_dynamic_musl_is_built() -> Result<()> {
    let project = Project::new("musl")?;
    let build = ["build", "--quiet", "--target", "x86_64-unknown-linux-musl"];
    let ran = run(&mut project.cargo(&build)?)?;
    assert!(
        !ran.status.success() && ran.stderr.contains("error[static-libc]"),
        "{}",
        ran.stderr
    );
    let mut dynamic = project.cargo(&["check", "--quiet", "--target", build[3]])?;
    succeed(dynamic.env("RUSTFLAGS", "-Ctarget-feature=-crt-static"))?;
    Ok(())
}

/// NVIDIA's library for servers with AArch64 works without a driver.
#[test]
#[ignore = "downloads standard libraries: tests/run --all"]
fn heavy_real_cuda_runtime_of_aarch64_is_bound() -> Result<()> {
    let machine = Machine::Aarch64;
    let mut project = Project::new("cudart")?;
    project.set("CARGO_TARGET_{}_LINKER", machine, &machine.compiler("c"));
    project.set("CARGO_TARGET_{}_RUNNER", machine, &runner(machine));
    let library = component("wheels/cudart-12.4-aarch64/nvidia/cuda_runtime/lib/libcudart.so.12")?;
    let mut cargo = project.cargo(&["run", "--quiet", "--target"])?;
    cargo
        .arg(machine.target().triple)
        .current_dir(repository().join("examples/hello-gpu"))
        .env("GPUSTUB_CUDART_PATH", library);
    succeed(&mut cargo)?.expect_in_order(&[
        "cudart",
        "12.4 ",
        "3 of 3",
        "cudart:",
        "runtime 12.4",
    ])?;
    Ok(())
}

/// Runs a package's program for Windows under wine, by cargo.
fn run_by_wine(project: &Project, package: &Path, variables: &[(&str, PathBuf)]) -> Result<Ran> {
    let directory = target_dir().join("cross/wine");
    fs::create_dir_all(&directory)?;
    install_random_numbers(&directory)?;
    let mut cargo = project.cargo(&["run", "--quiet", "--target", wine::TRIPLE])?;
    cargo
        .current_dir(package)
        .env("CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER", wine::PROGRAM)
        .envs(wine::variables()?)
        .env("WINEPATH", windows_path(&directory));
    for (name, path) in variables {
        cargo.env(name, windows_path(path));
    }
    succeed(&mut cargo)
}

#[test]
#[ignore = "downloads standard libraries: tests/run --all"]
fn heavy_program_for_windows_calls_a_dll() -> Result<()> {
    let project = Project::new("windows")?;
    let library = project.dir.path().join("acme64_1.dll");
    let mut gcc = Command::new(MINGW);
    gcc.args(["-shared", "-o"]).arg(&library);
    succeed(gcc.arg(repository().join("tests/programs/cross/acme.c")))?;
    // wine's OpenCL.dll finds the platforms of this machine.
    let platforms = |text: &str| -> String {
        let lines = text.lines().filter(|line| !line.starts_with("opencl"));
        lines.map(|line| format!("{line}\n")).collect()
    };
    for (path, expected) in [
        (library, PRESENT),
        (project.dir.path().join("none"), ABSENT),
    ] {
        let variables = [("GPUSTUB_ACME_PATH", path)];
        let ran = run_by_wine(&project, project.dir.path(), &variables)?;
        if platforms(&ran.stdout) != platforms(expected) {
            return Err(ran.error(&format!("expected {expected:?}")));
        }
    }
    Ok(())
}

/// The example finds NVIDIA's DLLs in the wheels of a virtual environment. The library of CUDA 13 names no error without a
/// driver, under wine.
#[test]
#[ignore = "downloads standard libraries: tests/run --all"]
fn heavy_example_for_windows_binds_the_real_cuda_runtime() -> Result<()> {
    let project = Project::new("example")?;
    let environment = scratch()?;
    let package = repository().join("examples/hello-gpu");
    let site = environment.path().join("Lib/site-packages/nvidia");
    fs::create_dir_all(&site)?;
    fs::write(environment.path().join("pyvenv.cfg"), "")?;
    let absent = run_by_wine(&project, &package, &[])?;
    absent.expect_in_order(&[
        "cuda     -        -          no: nvcuda.dll not found",
        "cudart   -        -          no: cudart64_13.dll, cudart64_12.dll, cudart64_110.dll not found",
    ])?;
    let wheels = component("wheels/cudart-windows/nvidia")?;
    std::os::unix::fs::symlink(wheels.join("cuda_runtime"), site.join("cuda_runtime"))?;
    let variables = [("VIRTUAL_ENV", environment.path().to_owned())];
    run_by_wine(&project, &package, &variables)?.expect_in_order(&[
        "cudart   12.9     3 of 3",
        "nvidia/cuda_runtime/bin/cudart64_12.dll",
        "cudart:",
        "runtime 12.9, no device (cudaGetDeviceCount: CUDA driver version is insufficient",
    ])?;
    Ok(())
}
