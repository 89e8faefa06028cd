//! Designs of the repair, compared: which library provides a function, for the repaired library and for
//! others in the process.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use gpustub_image::edit::EditRequest;
use gpustub_tests::Result;
use gpustub_tests::command::{run, succeed};
use serde::Deserialize;

use crate::images::{Images, request};

#[derive(Deserialize)]
struct Table {
    case: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Case {
    name: String,
    load_by: String,
    files: Vec<String>,
    expect: BTreeMap<String, Vec<i32>>,
}

/// The repaired library: `f` calls the function.
const IMAGE: &str = "extern int cudaMalloc(void); int f(void) { return cudaMalloc(); }";
/// An innocent library: `g` does.
const INNOCENT: &str = "extern int cudaMalloc(void); int g(void) { return cudaMalloc(); }";
/// Interposer, as users write them.
const PRELOAD: &str = "int cudaMalloc(void) { return 99; }";
/// Program with these libraries.
const PROGRAM: &str = r#"
#include <stdio.h>
__attribute__((weak)) int f(void), g(void);
int main(void) { if (f) printf("%d ", f()); if (g) printf("%d ", g()); return 0; }
"#;
/// Stub without a version node. Versions of libc give it the version table that ld.so insists on.
const PLAIN_STUB: &str =
    "#include <stdlib.h>\nint cudaMalloc(void) { return getenv(\"STUB\") ? 0 : 35; }";

const RUNPATH: &str = "-Wl,-rpath,$ORIGIN:$ORIGIN/real:$ORIGIN/stub";

/// The repaired library of each design, and the other libraries.
fn build(images: &Images) -> Result<()> {
    let soname = |name: &str| format!("-Wl,-soname,{name}.so");
    let library = |name: &str, source: &str, link: &[&str]| {
        let soname = soname(name);
        let flags = [&["-shared", "-fPIC", &soname, RUNPATH], link].concat();
        images.compile(&format!("{name}.so"), source, &flags)
    };
    images.library(
        "stub/libgpustub_plain.so",
        PLAIN_STUB,
        "libgpustub_plain.so",
        None,
    )?;
    images.library(
        "stub/libgpustub_node.so",
        "int cudaMalloc(void) { return 35; }",
        "libgpustub_node.so",
        Some("libcudart.so.12 { global: *; };"),
    )?;
    // Linked against a runtime without versions, whose name is that of the real one.
    images.library("unversioned.so", PRELOAD, "libcudart.so.12", None)?;
    library("plain", INNOCENT, &["@unversioned.so"])?;
    library("versioned", INNOCENT, &["@real/libcudart.so.12"])?;
    library("preload", PRELOAD, &[])?;

    let image = library("image", IMAGE, &["@real/libcudart.so.12"])?;
    for name in ["own", "original", "removed", "patchelf"] {
        fs::create_dir(images.path(name))?;
    }
    images.repair(&image, "own/image.so", &request())?;
    let mut original = EditRequest {
        stub: "libgpustub_node.so".into(),
        ..request()
    };
    original.libraries[0].node = "libcudart.so.12".into();
    images.repair(&image, "original/image.so", &original)?;
    fs::copy(&image, images.path("patchelf/image.so"))?;
    let mut patchelf = Command::new("patchelf");
    patchelf.args(["--replace-needed", "libcudart.so.12", "libgpustub_plain.so"]);
    succeed(patchelf.arg(images.path("patchelf/image.so")))?;
    let removed = library("image", IMAGE, &["@stub/libgpustub_plain.so"])?;
    fs::rename(removed, images.path("removed/image.so"))?;
    Ok(())
}

/// Results of a case with the image of a design, and what the loader said.
fn results(images: &Images, case: &Case, design: &str) -> Result<(Vec<i32>, String)> {
    fs::copy(
        images.path(&format!("{design}/image.so")),
        images.path("image.so"),
    )?;
    let file = |name: &str| match name {
        "real12" => "real/libcudart.so.12".to_owned(),
        "real13" => "real/libcudart.so.13".to_owned(),
        name => format!("{name}.so"),
    };
    let loaded = case.files.iter().filter(|file| *file != "preload");
    let mut command = match &case.load_by[..] {
        "dlopen" => {
            let mut command = Command::new(images.path("load"));
            for name in loaded {
                match name.strip_prefix("global ") {
                    Some(name) => command.arg(format!("+{}", images.path(&file(name)).display())),
                    None => command.arg(images.path(&file(name))),
                };
            }
            command
        }
        _ => {
            let files: Vec<String> = loaded.map(|name| format!("@{}", file(name))).collect();
            let mut flags = vec!["-Wl,--no-as-needed,--allow-shlib-undefined", RUNPATH];
            flags.extend(files.iter().map(|file| &file[..]));
            Command::new(images.compile("program", PROGRAM, &flags)?)
        }
    };
    if case.files.contains(&"preload".to_owned()) {
        command.env("LD_PRELOAD", images.path("preload.so"));
    }
    let ran = run(command.env("LD_BIND_NOW", "1"))?.success()?;
    let numbers = ran.stdout.split_whitespace().map(str::parse).collect();
    let numbers: Result<_, std::num::ParseIntError> = numbers;
    Ok((numbers?, ran.stderr))
}

#[test]
#[ignore = "needs patchelf: ./tests/run"]
fn only_an_own_node_keeps_libraries_apart() -> Result<()> {
    let images = Images::new()?;
    build(&images)?;
    let table: Table = toml::from_str(include_str!("bindings.toml"))?;
    let mut faults = Vec::new();
    for case in &table.case {
        assert_eq!(case.expect.len(), 4, "{}", case.name);
        for (design, expected) in &case.expect {
            let (found, messages) = results(&images, case, design)?;
            let name = format!("{}, {}, {design}", case.name, case.load_by);
            if found != *expected {
                faults.push(format!("{name}: {found:?}, expected {expected:?}"));
            }
            // The loader checks versions silently in dlopen (dl-open.c).
            let warns = case.load_by == "program" && design == "patchelf";
            if warns != messages.contains("no version information available") {
                faults.push(format!("{name}: {messages:?}"));
            }
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
    Ok(())
}

/// The loader's own account of the binding.
#[test]
fn imports_bind_to_the_node_of_the_stub() -> Result<()> {
    let images = Images::new()?;
    let flags = [
        "-shared",
        "-fPIC",
        "@real/libcudart.so.12",
        "@real/libcuda.so.1",
    ];
    let image = images.compile("image.so", crate::images::USER, &flags)?;
    let repaired = images.repair(&image, "repaired.so", &request())?;
    let mut load = Command::new(images.path("load"));
    let ran = succeed(load.arg(repaired).env("LD_DEBUG", "bindings"))?;
    for (function, node) in [
        ("cudaMalloc", "GPUSTUB_p_cudart"),
        ("cudaFree", "GPUSTUB_p_cudart"),
        ("cuInit", "GPUSTUB_p_cuda"),
    ] {
        let end = format!("libgpustub_p.so [0]: normal symbol `{function}' [{node}]");
        let bound = ran.stderr.lines().any(|line| line.ends_with(&end));
        assert!(bound, "{function}\n{}", ran.stderr);
    }
    Ok(())
}
