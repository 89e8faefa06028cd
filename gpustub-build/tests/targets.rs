//! Builds without stubs: for targets that have none, and with the libraries themselves.
#![cfg(unix)]

#[path = "tools/package.rs"]
mod package;
#[path = "../../crates/engine/tests/tools/mod.rs"]
mod tools;

use std::fs;

use gpustub_build::Output;
use package::Package;
use tools::tool_output;

fn lines(output: &Output) -> Vec<String> {
    output.directives.iter().map(ToString::to_string).collect()
}

/// A target without trampolines: no stubs, and no error.
#[test]
fn packages_build_for_every_target() {
    for (triple, arch, os, env) in [
        ("i686-pc-windows-msvc", "x86", "windows", "msvc"),
        ("i686-pc-windows-gnu", "x86", "windows", "gnu"),
        ("aarch64-apple-ios", "aarch64", "ios", ""),
        ("aarch64-linux-android", "aarch64", "android", ""),
        ("sparc64-unknown-linux-gnu", "sparc64", "linux", "gnu"),
        ("riscv64gc-unknown-freebsd", "riscv64", "freebsd", ""),
    ] {
        let build = |targets: &str, link: &str| {
            let manifest = format!("schema = 1\n[stub.nvrtc]\n{targets}\n");
            let mut package = Package::new(&format!("target/{triple}"), &manifest);
            package.set("TARGET", triple);
            package.set("CARGO_CFG_TARGET_ARCH", arch);
            package.set("CARGO_CFG_TARGET_OS", os);
            package.set("CARGO_CFG_TARGET_ENV", env);
            package.set("GPUSTUB_NVRTC_LINK", link);
            let output = package.output();
            assert!(!package.dir.join("out").exists(), "{triple}");
            let mut lines = lines(&output);
            lines.retain(|line| !line.starts_with("cargo::rerun-if"));
            lines
        };
        let warnings = build("", "");
        assert!(
            warnings[0].contains(&format!("no stubs for the target {triple}"))
                && warnings
                    .iter()
                    .all(|line| line.starts_with("cargo::warning=")),
            "{warnings:?}"
        );
        let lines = build("targets = [\"*-linux-musl\"]", "");
        assert_eq!(lines, [""; 0], "{triple}");
        // The library itself can be linked everywhere.
        let lines = build("", "dylib");
        assert_eq!(lines[0], "cargo::rustc-link-lib=dylib=nvrtc", "{triple}");
    }
}

/// Distributions link the library that they package.
#[test]
fn a_variable_links_the_library_itself() {
    let mut package = Package::new("linked", "schema = 1\n[stub.nvrtc]\n[stub.opencl]\n");
    package.set("GPUSTUB_NVRTC_LINK", "dylib");
    package.set("GPUSTUB_OPENCL_LINK", "stub");
    let output = package.output();
    assert_eq!(output.stubs, ["opencl"]);
    let stand_ins = package.dir.join("out/gpustub/link");
    assert!(stand_ins.join("libOpenCL.a").exists());
    assert!(!stand_ins.join("libnvrtc.a").exists());
    let lines = lines(&output);
    for expected in [
        "cargo::rerun-if-env-changed=GPUSTUB_NVRTC_LINK",
        "cargo::rerun-if-env-changed=GPUSTUB_OPENCL_LINK",
        "cargo::rustc-link-lib=dylib=nvrtc",
        "cargo::rustc-link-arg=-lnvrtc",
    ] {
        assert!(
            lines.iter().any(|l| l == expected),
            "{expected} in {lines:#?}"
        );
    }
    let nm = tool_output("nm", &["--defined-only"], &output.stub_library.unwrap());
    assert!(
        !nm.contains("nvrtcVersion") && nm.contains("gpustub_load"),
        "{nm}"
    );

    package.set("GPUSTUB_NVRTC_LINK", "static");
    let error = package.error();
    assert!(
        error.contains("GPUSTUB_NVRTC_LINK: \"static\"") && error.contains("`dylib`"),
        "{error}"
    );
}

/// In an empty directory: only the run time is built.
#[test]
fn variables_link_all_libraries_themselves() {
    let mut package = Package::new("all-linked", "schema = 1\n[stub.nvrtc]\n[stub.opencl]\n");
    package.set("GPUSTUB_NVRTC_LINK", "dylib");
    package.set("GPUSTUB_OPENCL_LINK", "dylib");
    let output = package.output();
    assert_eq!(output.stubs, [""; 0]);
    let lines = lines(&output);
    for name in ["nvrtc", "OpenCL"] {
        let expected = format!("cargo::rustc-link-lib=dylib={name}");
        assert!(lines.contains(&expected), "{expected} in {lines:#?}");
    }
    let nm = tool_output("nm", &["--defined-only"], &output.stub_library.unwrap());
    assert!(nm.contains("gpustub_load"), "{nm}");
}

/// Packages that share an image have a `GpuStub.toml` each: only the environment reaches all of them.
#[test]
fn a_variable_omits_the_notes_of_all_libraries() {
    let mut package = Package::new(
        "notes",
        "schema = 1\n[stub.nvrtc]\n[stub.opencl]\ndlopen-note = \"recommended\"\n",
    );
    assert_eq!(note_count(&package), 2);
    package.set("GPUSTUB_DLOPEN_NOTES", "on");
    assert_eq!(note_count(&package), 2);
    package.set("GPUSTUB_DLOPEN_NOTES", "off");
    assert_eq!(note_count(&package), 0);
    package.set("GPUSTUB_DLOPEN_NOTES", "0");
    let error = package.error();
    assert!(
        error.contains("GPUSTUB_DLOPEN_NOTES: \"0\"") && error.contains("`off`"),
        "{error}"
    );
}

fn note_count(package: &Package) -> usize {
    let lines = lines(&package.output());
    let variable = "cargo::rerun-if-env-changed=GPUSTUB_DLOPEN_NOTES".to_owned();
    assert!(lines.contains(&variable), "{lines:#?}");
    let table = fs::read_to_string(package.dir.join("out/gpustub/gpustub_table.inc")).unwrap();
    table.matches("GPUSTUB_NOTE(").count()
}
