//! Graphs of packages: supported ones, and those that are refused before they can fail at run time.

use std::fs;
use std::process::Command;

use gpustub_tests::Result;
use gpustub_tests::command::{run, succeed};
use gpustub_tests::nvcc::{TOOLKIT_13, recorder};
use gpustub_tests::rdc::{Library, Project};

use crate::Record;

/// `a` and `c` require `b`.
fn three_libraries() -> Result<Project> {
    let project = Project::new(TOOLKIT_13)?;
    project.library(Library::new("b", &[]))?;
    project.library(Library::new("a", &["b"]))?;
    project.library(Library::new("c", &["b"]))?;
    Ok(project)
}

/// A program that runs the code of these packages.
fn program(project: &Project, name: &str, packages: &[&str]) -> Result<()> {
    let mut manifest = String::from("[dependencies]\n");
    let mut main = String::from("fn main() {\n");
    for package in packages {
        manifest += &format!("{package} = {{ path = \"../{package}\" }}\n");
        main += &format!("    assert_eq!({package}::run(), 0);\n");
    }
    main += "}\n";
    project.package(name, &manifest, &[("src/main.rs", &main)])
}

/// A plugin that runs the code of a package.
fn plugin(project: &Project, name: &str, package: &str) -> Result<()> {
    let source = format!(
        "#[no_mangle]\npub extern \"C\" fn {name}() {{\n    assert_eq!({package}::run(), 0);\n}}\n"
    );
    project.package(
        name,
        &format!(
            "[lib]\ncrate-type = [\"cdylib\"]\n\n[dependencies]\n{package} = {{ path = \"../{package}\" }}\n"
        ),
        &[("src/lib.rs", &source)],
    )
}

/// A program shares the libraries of a diamond; two plugins of one process have a copy each.
#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_a_diamond_and_two_plugins_with_a_common_library() -> Result<()> {
    let project = three_libraries()?;
    program(&project, "tip", &["a", "c"])?;
    plugin(&project, "first", "a")?;
    plugin(&project, "second", "c")?;
    project.build()?;
    let library = recorder(&project.path("recorder"), 13)?;
    let record = Record::run(&mut Command::new(project.built("tip")), &library)?;
    record.expect(&[("tip", &["a_kernel", "b_kernel", "c_kernel"])], 3)?;

    let (source, host) = (project.path("host.c"), project.path("host"));
    fs::write(
        &source,
        "#include <dlfcn.h>\n#include <stdio.h>\n\
         int main(int count, char **words) {\n\
             for (int i = 1; i + 1 < count; i += 2) {\n\
                 void *library = dlopen(words[i], RTLD_NOW | RTLD_GLOBAL);\n\
                 void (*run)(void) = library ? (void (*)(void))dlsym(library, words[i + 1]) : 0;\n\
                 if (!run) { puts(dlerror()); return 1; }\n\
                 run();\n\
             }\n\
             return 0;\n\
         }\n",
    )?;
    succeed(
        Command::new("cc")
            .arg(&source)
            .args(["-ldl", "-o"])
            .arg(&host),
    )?;
    let mut command = Command::new(&host);
    for name in ["first", "second"] {
        command
            .arg(project.built(&format!("lib{name}.so")))
            .arg(name);
    }
    let record = Record::run(&mut command, &library)?;
    let (first, second) = (&["a_kernel", "b_kernel"][..], &["b_kernel", "c_kernel"][..]);
    record.expect(&[("libfirst.so", first), ("libsecond.so", second)], 4)
}

/// Parts of an error of a build script, as cargo prints it.
#[track_caller]
fn expect(output: &str, parts: &[&str]) {
    for part in parts {
        assert!(output.contains(part), "{part:?} is missing from\n{output}");
    }
}

#[test]
#[ignore = "needs CUDA's compiler: ./tests/run"]
fn a_missing_architecture_is_refused() -> Result<()> {
    let project = Project::new(TOOLKIT_13)?;
    project.library(Library::new("b", &[]))?;
    project.library(Library {
        archs: "\"sm_90\"",
        ..Library::new("a", &["b"])
    })?;
    let output = project.refused(&["build", "-j2"])?;
    expect(
        &output,
        &[
            "missing-arch",
            "`b` has sm_80; the device link of package a needs sm_90",
            "compile `b` for sm_90 as well",
        ],
    );
    Ok(())
}

#[test]
#[ignore = "needs CUDA's compiler: ./tests/run"]
fn an_architecture_that_nvcc_does_not_know_is_named() -> Result<()> {
    let project = Project::new(TOOLKIT_13)?;
    project.library(Library {
        archs: "\"sm_35\"",
        ..Library::new("b", &[])
    })?;
    let output = project.refused(&["build", "-j2"])?;
    expect(
        &output,
        &[
            "GpuStub.toml:10:10: error[nvcc-error]: the CUDA toolkit at ",
            " does not support `sm_35`, which device-link.b requests",
            "Unsupported gpu architecture 'compute_35'",
            "use a supported one: sm_75 sm_80 ",
            " compute_75 compute_80 ",
        ],
    );
    Ok(())
}

/// The mangled name is `_ZN3geo4areaEi`, and the object is in cargo's directories.
#[test]
#[ignore = "needs CUDA's compiler: ./tests/run"]
fn undefined_device_symbols_are_reported_with_source_names() -> Result<()> {
    let project = Project::new(TOOLKIT_13)?;
    project.library(Library::new("b", &[]))?;
    let kernel = "namespace geo { __device__ int area(int); }\n\
                  __global__ void more(int *p) { *p = geo::area(*p); }\n";
    project.write("b/cuda/more.cu", kernel)?;
    // A kernel without launches is left out, and its undefined callees are not reported.
    succeed(&mut project.cargo(&["build", "-j2"]))?;
    let launched = format!("{kernel}void launch() {{ more<<<1, 1>>>(nullptr); }}\n");
    project.write("b/cuda/more.cu", &launched)?;
    let output = project.refused(&["build", "-j2"])?;
    let source = project.root().join("b/cuda/more.cu");
    let missing = format!(
        "Undefined reference to 'geo::area(int)' in '{}'",
        source.display()
    );
    expect(&output, &[&missing, "help: the library that defines it"]);
    Ok(())
}

#[test]
#[ignore = "needs CUDA's compiler: ./tests/run"]
fn missing_headers_are_reported_with_their_library() -> Result<()> {
    let project = Project::new(TOOLKIT_13)?;
    project.library(Library {
        table: "include-dirs = [\"include\"]",
        ..Library::new("b", &[])
    })?;
    project.write("b/include/b.cuh", "#pragma once\n")?;
    project.library(Library::new("a", &["b"]))?;
    project.edit("a/GpuStub.toml", "requires = [\"b\"]", "requires = []")?;
    project.edit(
        "a/cuda/a.cu",
        "__device__ int b_value",
        "#include \"b.cuh\"\n__device__ int b_value",
    )?;
    let output = project.refused(&["build", "-j2"])?;
    expect(
        &output,
        &[
            "fatal error: b.cuh: No such file",
            "help: device-link.b of b 0.1.0 has b.cuh: write \"b\" into `requires` of [device-link.a] (GpuStub.toml:",
        ],
    );
    Ok(())
}

/// nvlink warns about their stacks, whose size has no bound known to it.
#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_recursion_and_calls_by_pointer_are_linked() -> Result<()> {
    let project = Project::new(TOOLKIT_13)?;
    project.library(Library::new("b", &[]))?;
    let kernel = "__device__ int (*chosen)(int);\n\
                  __device__ int deep(int n);\n\
                  __global__ void more(int *p) { *p = deep(*p) + chosen(*p); }\n\
                  void launch() { more<<<1, 1>>>(nullptr); }\n";
    project.write("b/cuda/more.cu", kernel)?;
    let deep = "__device__ int deep(int n) { int a[8]; a[n % 8] = n; \
                return n < 2 ? 1 : deep(n - 1) * a[n % 7] + deep(a[n % 5]); }\n";
    project.write("b/cuda/deep.cu", deep)?;
    let ran = succeed(&mut project.cargo(&["build", "-j2"]))?;
    expect(&ran.stderr, &["warning : Stack size for entry function "]);
    Ok(())
}

#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_two_kinds_of_runtime_are_refused() -> Result<()> {
    let project = Project::new(TOOLKIT_13)?;
    project.library(Library::new("b", &[]))?;
    project.library(Library {
        table: "cudart = \"static\"",
        ..Library::new("a", &["b"])
    })?;
    let output = project.refused(&["build", "-j2"])?;
    expect(&output, &["mixed-cudart"]);
    Ok(())
}

/// Two packages declare a library of one name; the program's closure would have both.
#[test]
#[ignore = "needs CUDA's compiler: ./tests/run"]
fn two_packages_with_one_library_are_refused() -> Result<()> {
    let project = Project::new(TOOLKIT_13)?;
    project.library(Library::new("b", &[]))?;
    project.library(Library::new("d", &[]))?;
    project.edit("d/GpuStub.toml", "[device-link.d]", "[device-link.b]")?;
    project.edit("d/GpuStub.toml", "provide = true", "provide = false")?;
    program(&project, "tip", &["b", "d"])?;
    // Reported before the build, and by the build.
    let synced = run(&mut project.gpustub(&["sync"])?)?;
    assert!(!synced.status.success());
    expect(&synced.stderr, &["error[duplicate-device-symbol]"]);
    let output = project.refused(&["build", "-j2"])?;
    expect(
        &output,
        &[
            "error[duplicate-device-symbol]: device-link.b is declared by ",
            "b 0.1.0",
            "d 0.1.0",
            "give each library of a program a name of its own",
        ],
    );
    Ok(())
}

/// Cargo passes no link arguments to build scripts: linking is impossible, and the plan says so.
#[test]
fn code_in_a_build_dependency_is_refused() -> Result<()> {
    let project = Project::without_toolkit()?;
    project.library(Library::new("b", &[]))?;
    project.package(
        "tip",
        "[build-dependencies]\nb = { path = \"../b\" }\n",
        &[
            ("build.rs", "fn main() {\n    b::run();\n}\n"),
            ("src/main.rs", "fn main() {}\n"),
        ],
    )?;
    let ran = run(&mut project.gpustub(&["plan"])?)?;
    assert!(
        !ran.status.success(),
        "{}",
        ran.error("nothing was refused").0
    );
    expect(
        &ran.stderr,
        &[
            "error[device-code-in-build-script]: `tip/build-script` ",
            "cargo passes no link arguments to them",
        ],
    );
    Ok(())
}

/// An archive as the cc crate creates it from two sources: with its own device link.
#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_an_archive_with_a_device_link_is_refused() -> Result<()> {
    let project = Project::new(TOOLKIT_13)?;
    project.library(Library::new("b", &[]))?;
    for words in [
        ["-dc", "cuda/b.cu", "-o", "b.o"],
        ["-dlink", "b.o", "-o", "b_dlink.o"],
    ] {
        let mut nvcc = Command::new(project.toolkit().join("bin/nvcc"));
        nvcc.current_dir(project.root().join("b"));
        nvcc.args(["-arch=sm_80", "-Xcompiler", "-fPIC"]);
        succeed(nvcc.args(words))?;
    }
    let mut ar = Command::new("ar");
    ar.current_dir(project.root().join("b"));
    succeed(ar.args(["crs", "libb.a", "b.o", "b_dlink.o"]))?;
    project.edit(
        "b/GpuStub.toml",
        "sources = [\"cuda/*.cu\"]",
        "prebuilt = \"libb.a\"",
    )?;
    let output = project.refused(&["build", "-j2"])?;
    expect(
        &output,
        &[
            "device-linked-archive",
            "b/libb.a was archived with a device link; nvlink would skip all of it",
            "`[device-link.*]` with `sources` instead of the cc crate",
        ],
    );

    // An archive of its objects alone is accepted.
    fs::remove_file(project.root().join("b/libb.a"))?;
    let mut ar = Command::new("ar");
    ar.current_dir(project.root().join("b"));
    succeed(ar.args(["crs", "libb.a", "b.o"]))?;
    program(&project, "tip", &["b"])?;
    project.build()?;
    let library = recorder(&project.path("recorder"), 13)?;
    let record = Record::run(&mut Command::new(project.built("tip")), &library)?;
    record.expect(&[("tip", &["b_kernel"])], 1)
}
