//! A package, from the first command to the run of its program.

use std::fs;
use std::process::Command;

use gpustub_tests::cargo::program;
use gpustub_tests::command::{run, succeed};
use gpustub_tests::scratch::scratch;
use gpustub_tests::wine::windows_path;
use gpustub_tests::{Result, repository, wine};

use crate::host::Host;

const MANIFEST: &str =
    "[package]\nname = \"user\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n";

const MAIN: &str = "unsafe extern \"C\" { fn cudaGetDeviceCount(count: *mut i32) -> i32; }\n\
    fn main() {\n    let mut count = 7;\n    let status = unsafe { cudaGetDeviceCount(&mut count) };\n    \
    println!(\"status {status}, {count} devices\");\n}\n";

/// Files that `add` writes.
const WRITTEN: [&str; 4] = ["Cargo.toml", "GpuStub.toml", "GpuStub.lock", "build.rs"];

const ADD: [&str; 5] = ["gpustub", "add", "cudart", "--header-version", "12.9"];

#[test]
#[ignore = "downloads cargo and rustc of Windows: tests/run --all"]
fn heavy_a_package_is_written_checked_built_and_run() -> Result<()> {
    let (host, here) = (Host::new()?.with_c_compiler()?, scratch()?);
    for dir in [host.dir(), here.path()] {
        fs::create_dir(dir.join("src"))?;
        fs::write(dir.join("Cargo.toml"), MANIFEST)?;
        fs::write(dir.join("src/main.rs"), MAIN)?;
    }
    let dir = host.dir();
    host.cargo(dir, &ADD)?.success()?;
    let mut native = Command::new(program("cargo-gpustub")?);
    succeed(native.current_dir(here.path()).args(ADD))?;
    for file in WRITTEN {
        let text = fs::read_to_string(dir.join(file))?;
        assert_eq!(text, fs::read_to_string(here.path().join(file))?, "{file}");
    }

    let helper = windows_path(&repository().join("gpustub-build"));
    let patch = format!("[patch.crates-io]\ngpustub-build = {{ path = '{helper}' }}\n");
    let manifest = fs::read_to_string(dir.join("Cargo.toml"))?;
    fs::write(dir.join("Cargo.toml"), manifest + &patch)?;
    // The versions that the tests have downloaded.
    fs::copy(repository().join("Cargo.lock"), dir.join("Cargo.lock"))?;
    host.cargo(dir, &["gpustub", "sync", "--check"])?
        .success()?;
    let plan = host.cargo(dir, &["gpustub", "plan"])?.success()?;
    plan.expect_in_order(&[
        "user 0.1.0 (GpuStub.toml)\n",
        "load names  cudart64_12.dll, ",
    ])?;
    host.cargo(dir, &["build", "--quiet"])?.success()?;
    let program = dir.join("target/debug/user.exe");
    wine::install_random_numbers(&dir.join("target/debug"))?;
    let ran = run(&mut wine::wine(&program)?)?.success()?;
    assert_eq!(ran.stdout.trim_end(), "status 35, 0 devices");
    let checked = host
        .cargo(dir, &["gpustub", "check", "--build"])?
        .success()?;
    assert!(
        checked.stderr.contains("Checked 1 package: nothing found"),
        "{checked:?}"
    );
    let doctor = host.cargo(dir, &["gpustub", "doctor"])?.success()?;
    doctor.expect_in_order(&[
        "host        x86_64-pc-windows-gnu\n",
        "C compiler  gcc.exe: ",
        "\nGpuStub.toml\n  cudart: unavailable: cudart64_12.dll, ",
    ])?;
    host.cargo(dir, &["gpustub", "remove", "cudart"])?
        .success()?;
    Ok(())
}

/// Without a package all libraries of Windows are examined. Their stubs need a compiler, whose absence has a remedy.
#[test]
#[ignore = "downloads a standard library: tests/run --all"]
fn heavy_doctor_names_a_compiler_of_windows() -> Result<()> {
    let ran = Host::new()?.gpustub(&["doctor"])?;
    assert_eq!(ran.status.code(), Some(101), "{ran:?}");
    let expected =
        "help: install one: MSYS2 (https://www.msys2.org): pacman -S mingw-w64-x86_64-gcc, ";
    assert!(ran.stderr.contains(expected), "{}", ran.stderr);
    assert!(!ran.stderr.contains("missing-load-name"), "{}", ran.stderr);
    Ok(())
}
