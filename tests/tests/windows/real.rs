//! A program of Rust, built by cargo: without libraries, and with NVIDIA's.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use gpustub_tests::cargo::without_own_cargo;
use gpustub_tests::command::{Ran, path_with, succeed};
use gpustub_tests::components::{component, target_dir};
use gpustub_tests::rustup::toolchain;
use gpustub_tests::scratch::scratch;
use gpustub_tests::windows::{TRIPLES, build_variables};
use gpustub_tests::wine::{compiler, install_random_numbers, run, windows_path, wine};
use gpustub_tests::{Result, repository};

use crate::trial::expect;

/// Wheels with the CUDA runtime, and the path of the DLL.
const RUNTIMES: [(&str, &str); 3] = [
    (
        "cudart-11.8-windows",
        "nvidia/cuda_runtime/bin/cudart64_110.dll",
    ),
    ("cudart-windows", "nvidia/cuda_runtime/bin/cudart64_12.dll"),
    ("cudart-windows", "nvidia/cu13/bin/x86_64/cudart64_13.dll"),
];

/// The program for a triple, built once.
fn build(triple: &str) -> Result<Vec<u8>> {
    static PROGRAMS: Mutex<BTreeMap<String, Vec<u8>>> = Mutex::new(BTreeMap::new());
    let mut programs = PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner);
    if !programs.contains_key(triple) {
        programs.insert(triple.to_owned(), build_app(triple)?);
    }
    Ok(programs[triple].clone())
}

fn build_app(triple: &str) -> Result<Vec<u8>> {
    let dir = scratch()?;
    let source = repository().join("tests/programs/windows/app");
    fs::create_dir(dir.path().join("src"))?;
    for file in ["GpuStub.toml", "build.rs"] {
        fs::copy(source.join(file), dir.path().join(file))?;
    }
    fs::copy(source.join("main.rs"), dir.path().join("src/main.rs"))?;
    let helper = repository().join("gpustub-build");
    let manifest = format!(
        "[package]\nname = \"windows-app\"\nedition = \"2024\"\n[workspace]\n\
         [dependencies]\ngpustub = {{ path = \"{}\" }}\n\
         [build-dependencies]\ngpustub-build = {{ path = \"{}\" }}\n",
        repository().join("crates/gpustub").display(),
        helper.display()
    );
    fs::write(dir.path().join("Cargo.toml"), manifest)?;
    let bin = toolchain(&[triple])?;
    // The target directory of the suite `cross`, whose build scripts have the same dependencies.
    let target = target_dir().join("cross/target");
    let mut cargo = Command::new(bin.join("cargo"));
    without_own_cargo(&mut cargo);
    cargo
        .current_dir(dir.path())
        .args(["build", "--quiet", "--target", triple])
        .env("PATH", path_with(&bin)?)
        .env("CARGO", bin.join("cargo"))
        .env("RUSTC", bin.join("rustc"))
        .env_remove("RUSTUP_TOOLCHAIN")
        .env_remove("LD_LIBRARY_PATH")
        .env("CARGO_TARGET_DIR", &target)
        .envs(build_variables(triple)?);
    succeed(&mut cargo)?;
    let program = target.join(triple).join("debug/windows-app.exe");
    fs::read(&program).map_err(|e| format!("{}: {e}", program.display()).into())
}

/// Runs the program in a directory of its own, with a Python environment that has these wheels.
fn run_with(
    triple: &str,
    wheels: &[&str],
    words: &[&str],
    variables: &[(&str, &str)],
) -> Result<Ran> {
    let dir = scratch()?;
    let program = dir.path().join("app.exe");
    fs::write(&program, build(triple)?)?;
    install_random_numbers(dir.path())?;
    let environment = dir.path().join("environment");
    let nvidia = environment.join("Lib/site-packages/nvidia");
    fs::create_dir_all(&nvidia)?;
    fs::write(environment.join("pyvenv.cfg"), "")?;
    for wheel in wheels {
        for entry in fs::read_dir(component(&format!("wheels/{wheel}/nvidia"))?)? {
            let entry = entry?;
            symlink(entry.path(), nvidia.join(entry.file_name()))?;
        }
    }
    let mut command = wine(&program)?;
    command.args(words).envs(variables.iter().copied());
    run(command.env("VIRTUAL_ENV", windows_path(&environment)))?.success()
}

/// Output of a C program that calls the DLL itself.
fn direct(library: &Path) -> Result<String> {
    let dir = scratch()?;
    let program = dir.path().join("direct.exe");
    let mut gcc = Command::new(compiler("c"));
    gcc.arg(repository().join("tests/programs/windows/direct.c"));
    succeed(gcc.arg("-o").arg(&program))?;
    let ran = run(wine(&program)?.arg(windows_path(library)))?;
    Ok(ran.success()?.stdout)
}

#[test]
#[ignore = "downloads standard libraries: tests/run --all"]
fn heavy_a_program_without_libraries() -> Result<()> {
    let page = fs::read_to_string(repository().join("docs/start.md"))?;
    let printed = "status 35, 0 devices\n";
    assert!(page.contains(&format!("$ cargo run\n{printed}")));
    for triple in TRIPLES {
        let ran = run_with(triple, &[], &[], &[])?;
        assert!(ran.stdout.starts_with(printed), "{triple}: {}", ran.stdout);
        let ran = run_with(triple, &[], &["compile"], &[])?;
        expect(&ran, "create 11, compile 11, no PTX\n", "")?;
        let ran = run_with(triple, &[], &["query"], &[])?;
        expect(&ran, "available false, reason true\n", "")?;
    }
    Ok(())
}

#[test]
#[ignore = "downloads standard libraries: tests/run --all"]
fn heavy_a_program_with_the_real_cuda_runtime() -> Result<()> {
    for (wheel, path) in RUNTIMES {
        let library = component(&format!("wheels/{wheel}/{path}"))?;
        let expected = direct(&library)?;
        let value = windows_path(&library);
        for triple in TRIPLES {
            let named = run_with(triple, &[], &[], &[("GPUSTUB_CUDART_PATH", &value)])?;
            assert_eq!(named.stdout, expected, "{triple}: {path}");
        }
    }
    // Of the two majors of the environment, that of the program's headers.
    let (wheel, path) = RUNTIMES[1];
    let expected = direct(&component(&format!("wheels/{wheel}/{path}"))?)?;
    for triple in TRIPLES {
        let ran = run_with(triple, &[wheel], &[], &[])?;
        assert_eq!(ran.stdout, expected, "{triple}");
    }
    Ok(())
}

/// Compiles a kernel with the NVRTC of a wheel, which opens its builtins by a bare name.
fn compiles_with(wheel: &str) -> Result<()> {
    for triple in TRIPLES {
        let ran = run_with(triple, &[wheel], &["compile"], &[])?;
        let printed = "create 0, compile 0, .visible .entry add(";
        if !ran.stdout.starts_with(printed) {
            return Err(ran.error(&format!("{triple}: {wheel}")));
        }
    }
    Ok(())
}

#[test]
#[ignore = "downloads standard libraries: tests/run --all"]
fn heavy_a_program_with_the_real_nvrtc() -> Result<()> {
    compiles_with("nvrtc-13.5-windows")
}

#[test]
#[ignore = "needs large wheels: ./tests/run --all"]
fn heavy_a_program_with_the_real_nvrtc_of_other_majors() -> Result<()> {
    compiles_with("nvrtc-11.8-windows")?;
    compiles_with("nvrtc-12.9-windows")
}
