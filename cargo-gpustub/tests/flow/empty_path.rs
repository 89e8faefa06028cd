//! Commands without cargo, rustc and a C compiler, as a static binary is used in containers.

use std::fs;
use std::path::Path;
use std::process::Command;

use snapbox::cmd::cargo_bin;

use super::{ACME, cc, ended, package, write};

/// The subcommand with an empty environment, but for a `PATH` that names nothing.
fn bare(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(cargo_bin!("cargo-gpustub"));
    command
        .current_dir(directory)
        .args(arguments)
        .env_clear()
        .env("PATH", "/nonexistent");
    command
}

/// Runs and must end with this code; returns standard output and standard error.
fn ends(code: i32, directory: &Path, arguments: &[&str]) -> (String, String) {
    let output = bare(directory, arguments).output().unwrap();
    ended(code, output, arguments)
}

/// A library with a path that only one machine has, and the wheel that it is in.
fn wheel(directory: &Path) {
    write(
        directory,
        "gpu.c",
        "const char driver[] = \"libcuda.so.1\"; int gpuWork(void) { return 0; }\n",
    );
    let flags = ["-shared", "-fPIC", "-Wl,-soname,libgpu.so.1"];
    let runpath = ["-Wl,-rpath,/opt/x/lib", "-o", "libgpu.so.1", "gpu.c"];
    cc(directory, &[&flags[..], &runpath].concat());
    let dist_info = "wheel/demo-1.0.dist-info/METADATA";
    write(
        directory,
        dist_info,
        "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n",
    );
    let module = directory.join("wheel/demo/_gpu.so");
    fs::create_dir_all(module.parent().unwrap()).unwrap();
    fs::copy(directory.join("libgpu.so.1"), module).unwrap();
    let wheel = directory.join("demo-1.0-py3-none-linux_x86_64.whl");
    super::pack::pack(&directory.join("wheel"), &[], &wheel).unwrap();
}

#[test]
fn files_are_checked_without_tools() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    wheel(directory);
    for file in ["libgpu.so.1", "demo-1.0-py3-none-linux_x86_64.whl"] {
        let (_, err) = ends(1, directory, &["check", file]);
        assert!(err.contains("error[absolute-runpath]"), "{err}");
    }
    let (out, _) = ends(0, directory, &["symbols", "libgpu.so.1"]);
    assert!(
        out.contains("@soname libgpu.so.1\n") && out.contains("\ngpuWork\n"),
        "{out}"
    );
    cc(
        directory,
        &[
            "-shared",
            "-fPIC",
            "-DgpuWork=gpuRest",
            "-o",
            "libnew.so",
            "gpu.c",
        ],
    );
    let (out, _) = ends(1, directory, &["diff", "libgpu.so.1", "libnew.so"]);
    assert!(out.contains("gpuWork") && out.contains("gpuRest"), "{out}");
    let (out, _) = ends(0, directory, &["explain", "absolute-runpath"]);
    assert!(out.starts_with("absolute-runpath: "), "{out}");
}

/// The policy of the workspace around, also in a member's directory.
#[test]
fn files_in_a_workspace_are_checked_by_its_policy() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    wheel(directory);
    write(
        directory,
        "Cargo.toml",
        "[workspace]\nmembers = [\"crates/*\"]\n",
    );
    package(&directory.join("crates/a"), "a", "");
    write(
        directory,
        "GpuStub.toml",
        "schema = 1\n[policy.rules]\nabsolute-runpath = \"warn\"\n",
    );
    for (member, file) in [(".", "libgpu.so.1"), ("crates/a", "../../libgpu.so.1")] {
        let (_, err) = ends(0, &directory.join(member), &["check", file]);
        assert!(err.contains("warning[absolute-runpath]"), "{err}");
    }
    // A member has its own for its directory.
    write(
        directory,
        "crates/a/GpuStub.toml",
        "schema = 1\n[policy.rules]\nabsolute-runpath = \"deny\"\nno-such-rule = \"warn\"\n",
    );
    fs::copy(
        directory.join("libgpu.so.1"),
        directory.join("crates/a/own.so"),
    )
    .unwrap();
    let (_, err) = ends(1, directory, &["check", "libgpu.so.1", "crates/a/own.so"]);
    assert!(err.contains("warning[absolute-runpath]"), "{err}");
    assert!(err.contains("error[absolute-runpath]"), "{err}");
    assert!(err.contains("unknown rule `no-such-rule`"), "{err}");
    let (_, err) = ends(
        101,
        directory,
        &["check", "-m", "none/Cargo.toml", "libgpu.so.1"],
    );
    assert!(err.contains("error: no file `none/Cargo.toml`"), "{err}");
    let (_, err) = ends(
        1,
        Path::new("/"),
        &[
            "check",
            "-m",
            directory.join("Cargo.toml").to_str().unwrap(),
            directory.join("libgpu.so.1").to_str().unwrap(),
        ],
    );
    assert!(err.contains("warning[absolute-runpath]"), "{err}");
}

#[test]
fn stubs_are_exported_as_sources() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let stubs = [
        "export",
        "stubs",
        "cudart",
        "--header-version",
        "13",
        "--out-dir",
    ];
    let (_, err) = ends(
        0,
        directory,
        &[&stubs[..], &["out", "--sources-only"]].concat(),
    );
    assert!(
        err.contains("Generated ") && err.contains("files in out"),
        "{err}"
    );
    let arguments = [&stubs[..], &["same", "--sources-only"]].concat();
    super::ends(0, directory, &arguments);
    for file in ["src/stubs.S", "src/gpustub_table.inc", "meson.build"] {
        let [bare, usual] = ["out", "same"].map(|tree| fs::read(directory.join(tree).join(file)));
        assert_eq!(bare.unwrap(), usual.unwrap(), "{file}");
    }
    cc(
        &directory.join("out/src"),
        &[
            "-std=gnu11",
            "-fPIC",
            "-fvisibility=hidden",
            "-c",
            "runtime.c",
            "stubs.S",
        ],
    );

    let (_, err) = ends(101, directory, &[&stubs[..], &["compiled"]].concat());
    missing_compiler(&err);
    assert!(!directory.join("compiled").exists());
    // The package here would name the libraries, which cargo has to find.
    package(directory, "user", "");
    write(directory, "GpuStub.toml", ACME);
    let (_, err) = ends(101, directory, &["export", "stubs", "--out-dir", "own"]);
    assert!(err.contains("could not run `cargo metadata`"), "{err}");
    assert!(err.contains("help: install Rust"), "{err}");
}

#[test]
fn doctor_reports_a_missing_compiler() {
    let directory = tempfile::tempdir().unwrap();
    let (out, err) = ends(101, directory.path(), &["doctor"]);
    let version = env!("CARGO_PKG_VERSION");
    let architecture = std::env::consts::ARCH;
    let start = format!("gpustub     {version}\nhost        {architecture}-");
    assert!(out.starts_with(&start), "{out}");
    assert!(out.contains("C compiler  none\n"), "{out}");
    missing_compiler(&err);
}

/// One error, which names the packages that bring a compiler.
fn missing_compiler(err: &str) {
    assert!(err.starts_with("error: no C compiler for "), "{err}");
    assert!(!err.contains("error["), "{err}");
    assert!(
        err.contains("\nhelp: install one: Debian, Ubuntu: apt install gcc libc6-dev;"),
        "{err}"
    );
}
