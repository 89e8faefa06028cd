//! Relocatable HIP code in packages, built by cargo and Debian's clang: registrations at program start, the code of each
//! architecture, and what is refused. HIP's runtime is a recorder: no device of AMD is at hand.

mod installed;
mod modules;
mod prebuilt;
mod shared;
mod targets;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use gpustub_tests::Result;
use gpustub_tests::command::{Ran, run, succeed};
use gpustub_tests::components::component;
use gpustub_tests::nvcc::{TOOLKIT_13, hip_recorder, recorder};
use gpustub_tests::rdc::{Call, Library, Project};

const ARCHS: &str = "\"gfx90a\", \"gfx1030\"";

/// Adds a package with a HIP library. `table` has further lines of its table.
fn library(project: &Project, name: &str, requires: &[&str], table: &str) -> Result<()> {
    project.library(Library {
        archs: ARCHS,
        table,
        ..Library::new(name, requires)
    })
}

const STUB: &str = "[stub.hip]\nheader-version = \"5\"\nprovide = true\n";
const USED_STUB: &str = "[stub.hip]\nheader-version = \"5\"\nprovide = false\n";

/// `tip`, whose library `top` requires `base`.
fn project() -> Result<Project> {
    let project = Project::headers_alone()?;
    project.install_rocm()?;
    library(&project, "base", &[], "")?;
    library(&project, "top", &["base"], "")?;
    let needs = "[dependencies]\ntop = { path = \"../top\" }\n";
    let main = "fn main() {\n    assert_eq!(top::run(), 0);\n}\n";
    project.package("tip", needs, &[("src/main.rs", main)])?;
    Ok(project)
}

/// Builds with the project's ROCm.
fn build(project: &Project, words: &[&str]) -> Result<Ran> {
    succeed(&mut project.gpustub(&["sync"])?)?;
    run(&mut project.cargo(&[&["build", "-j2"], words].concat()))
}

/// Words of each line of a recorder's output that begins with `kind`.
fn records(text: &str, kind: &str) -> Vec<Vec<String>> {
    let mut records = Vec::new();
    for line in text.lines() {
        let mut words = line.split(' ').map(str::to_owned);
        if words.next().as_deref() == Some("record") && words.next().as_deref() == Some(kind) {
            records.push(words.collect());
        }
    }
    records
}

/// Kernels of both libraries are registered once, in one code object, and launched.
fn expect_registered(ran: &Ran) {
    assert_eq!(records(&ran.stderr, "open").len(), 1, "{}", ran.stderr);
    let mut kernels: Vec<String> = records(&ran.stderr, "function")
        .iter()
        .flat_map(|words| {
            words
                .iter()
                .filter(|word| word.contains("_kernel"))
                .cloned()
        })
        .collect();
    kernels.sort();
    kernels.dedup();
    assert_eq!(
        kernels,
        ["_Z10top_kernelPi", "_Z11base_kernelPi"],
        "{}",
        ran.stderr
    );
    assert_eq!(records(&ran.stderr, "launch").len(), 2, "{}", ran.stderr);
}

/// The device code of just these architectures is in the program, and has the kernels of both libraries.
fn expect_code(program: &Path, scratch: &Path, archs: &[&str]) -> Result<()> {
    let image = fs::read(program)?;
    let magic = b"__CLANG_OFFLOAD_BUNDLE__";
    let start = image
        .windows(magic.len())
        .position(|window| window == magic);
    let bundle = &image[start.ok_or("the program has no bundle")?..];
    fs::write(scratch.join("bundle"), bundle)?;
    // The table of the bundle, and the first bytes of its code.
    let table = String::from_utf8_lossy(&bundle[..bundle.len().min(4096)]);
    assert_eq!(
        table.matches("-amdhsa--gfx").count(),
        archs.len(),
        "{table}"
    );
    for arch in archs {
        let output = scratch.join(arch);
        succeed(
            Command::new("/usr/lib/llvm-19/bin/clang-offload-bundler")
                .args(["-unbundle", "-type=o", "-input"])
                .arg(scratch.join("bundle"))
                .arg(format!("-targets=hipv4-amdgcn-amd-amdhsa--{arch}"))
                .arg("-output")
                .arg(&output),
        )?;
        let symbols = succeed(Command::new("llvm-nm-19").arg("-D").arg(&output))?.stdout;
        for kernel in ["_Z10top_kernelPi", "_Z11base_kernelPi"] {
            assert!(
                symbols.contains(&format!(" T {kernel}\n")),
                "{arch}: {symbols}"
            );
        }
    }
    Ok(())
}

#[test]
#[ignore = "needs HIP's headers and device libraries: ./tests/run"]
fn kernels_of_two_packages_are_linked_across_them_and_registered_once() -> Result<()> {
    let project = project()?;
    let example = "fn main() {\n    assert_eq!(top::run(), 0);\n}\n";
    project.write("top/examples/own.rs", example)?;
    let library = hip_recorder(&project.path("recorder"))?;
    let words = ["-p", "tip", "-p", "top", "--examples", "--bins"];
    build(&project, &words)?.success()?;
    // By a finalizer, and with the arguments of a build script.
    for name in ["tip", "examples/own"] {
        let mut program = Command::new(project.built(name));
        let ran = succeed(program.env("GPUSTUB_HIP_PATH", &library))?;
        expect_registered(&ran);
    }
    expect_code(
        &project.built("tip"),
        &project.path(""),
        &["gfx90a", "gfx1030"],
    )?;
    let again = build(&project, &["-v", "-p", "tip"])?.success()?;
    assert!(again.stderr.contains("Fresh tip"), "{}", again.stderr);

    // Without stubs, programs are linked with the runtime of ROCm.
    project.edit("base/GpuStub.toml", STUB, "")?;
    project.edit("top/GpuStub.toml", USED_STUB, "")?;
    let lib = project.rocm().join("lib");
    fs::create_dir(&lib)?;
    symlink(&library, lib.join("libamdhip64.so"))?;
    build(&project, &["-p", "tip"])?.success()?;
    let mut program = Command::new(project.built("tip"));
    let directory = library.parent().unwrap_or(&library);
    expect_registered(&succeed(program.env("LD_LIBRARY_PATH", directory))?);

    let plan = succeed(&mut project.gpustub(&["plan", "-p", "tip"])?)?.stdout;
    assert!(
        plan.contains("gfx90a") && plan.contains("gfx1030"),
        "{plan}"
    );

    project.write(
        "tip/GpuStub.toml",
        "schema = 1\nlink-archs = [\"gfx1030\"]\n",
    )?;
    build(&project, &["-p", "tip"])?.success()?;
    expect_code(&project.built("tip"), &project.path(""), &["gfx1030"])?;
    let mut program = Command::new(project.built("tip"));
    expect_registered(&succeed(program.env("LD_LIBRARY_PATH", directory))?);
    Ok(())
}

/// Texts of a file, and of the error that follows if the first is replaced by the second.
type Mistake = (
    &'static str,
    &'static str,
    &'static str,
    &'static [&'static str],
);

const MISTAKES: &[Mistake] = &[
    (
        "base/GpuStub.toml",
        "\"gfx90a\", \"gfx1030\"",
        "\"gfx90a\"",
        &["error[missing-arch]", "gfx1030", "base"],
    ),
    (
        "base/GpuStub.toml",
        "[device-link.base]",
        "[device-link.base]\ntype = \"shared\"",
        &[
            "error[invalid-value]: device-link.base has type = \"shared\", and the stubs of the HIP runtime are static",
            "leave [stub.hip] out",
        ],
    ),
    (
        "base/GpuStub.toml",
        "gfx90a",
        "gfx90A",
        &["error[invalid-value]: `device-link.base.archs` takes architectures such as"],
    ),
    (
        "base/hip/base.hip",
        "return 1",
        "return unknown(1)",
        &[
            "error[compiler-error]: clang cannot compile hip/base.hip for AMD",
            "unknown",
        ],
    ),
    (
        "base/hip/base.hip",
        "__device__ int base_value",
        "__device__ int other_value(int);\n__device__ int base_value",
        &[],
    ),
    (
        "base/hip/base.hip",
        "return 1",
        "return other_value(x)",
        &[
            "error[device-link-error]: clang cannot link the device code for AMD",
            "other_value",
            "`requires`",
        ],
    ),
];

#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_mistakes_are_named() -> Result<()> {
    let project = project()?;
    succeed(&mut project.gpustub(&["sync"])?)?;
    let missing = project.path("nowhere");
    let mut cargo = project.cargo(&["build", "-p", "base"]);
    let ran = run(cargo.env("ROCM_PATH", missing).env("HIPCXX", "/no/clang++"))?;
    assert!(!ran.status.success());
    assert!(
        ran.stderr
            .contains("error[missing-hip-compiler]: HIPCXX names /no/clang++"),
        "{}",
        ran.stderr
    );
    for (file, from, to, texts) in MISTAKES {
        project.edit(file, from, to)?;
        if texts.is_empty() {
            continue;
        }
        let ran = run(&mut project.cargo(&["build", "-p", "tip"]))?;
        assert!(!ran.status.success(), "{to}");
        for text in *texts {
            assert!(ran.stderr.contains(text), "{text}: {}", ran.stderr);
        }
        project.edit(file, to, from)?;
    }
    Ok(())
}

/// Source of one table for both vendors: the compiler decides the names of its host code.
const BOTH: &str = "#ifdef __HIP__
#include <hip/hip_runtime.h>
#define NAME(name) hip_##name
#define LAST_ERROR hipGetLastError
#else
#define NAME(name) cuda_##name
#define LAST_ERROR cudaGetLastError
#endif
__device__ int NAME(value)(int);
__global__ void NAME(kernel)(int *p) { *p = NAME(value)(*p); }
extern \"C\" int NAME(run)(void) {
    NAME(kernel)<<<1, 1>>>(nullptr);
    return LAST_ERROR();
}
";

/// The package `both`, whose library has code for both vendors. `stubs` are tables, and `table` lines of the library's.
fn both(stubs: &str, table: &str) -> Result<Project> {
    let project = Project::new(TOOLKIT_13)?;
    project.install_rocm()?;
    project.library(Library {
        archs: "\"sm_80\", \"gfx90a\"",
        table,
        ..Library::new("both", &[])
    })?;
    project.edit(
        "both/GpuStub.toml",
        "schema = 1\n",
        &format!("schema = 1\n\n{stubs}"),
    )?;
    project.write("both/cuda/both.cu", BOTH)?;
    let value = BOTH.split("__device__").next().unwrap_or_default();
    let value = format!("{value}__device__ int NAME(value)(int x) {{ return x + 1; }}\n");
    // hipify names its outputs in this way. Both compilers compile both sources.
    project.write("both/cuda/both.cu.hip", &value)?;
    project.edit(
        "both/GpuStub.toml",
        "\"cuda/*.cu\"",
        "\"cuda/*.cu\", \"cuda/*.hip\"",
    )?;
    let run = "//! Launches.\n\nunsafe extern \"C\" {\n    fn cuda_run() -> i32;\n    fn hip_run() -> i32;\n}\n\n\
               /// Launches both kernels.\npub fn run() -> i32 {\n    unsafe { cuda_run() + hip_run() }\n}\n";
    project.write("both/src/lib.rs", run)?;
    Ok(project)
}

#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_one_table_has_code_for_both_vendors() -> Result<()> {
    let project = both(STUB, "")?;
    let needs = "[dependencies]\nboth = { path = \"../both\" }\n";
    let main = "fn main() {\n    assert_eq!(both::run(), 0);\n}\n";
    project.package("tip", needs, &[("src/main.rs", main)])?;
    build(&project, &["-p", "tip"])?.success()?;
    expect_both(&project)
}

/// `tip` registers and launches the kernels of both vendors.
fn expect_both(project: &Project) -> Result<()> {
    let mut program = Command::new(project.built("tip"));
    program.env("GPUSTUB_HIP_PATH", hip_recorder(&project.path("recorder"))?);
    program.env(
        "GPUSTUB_CUDART_PATH",
        recorder(&project.path("recorder"), 13)?,
    );
    let ran = succeed(&mut program)?;
    let kernels: Vec<String> = records(&ran.stderr, "function")
        .iter()
        .flat_map(|words| {
            words
                .iter()
                .filter(|word| word.ends_with("_kernelPi"))
                .cloned()
        })
        .collect();
    for kernel in ["_Z10hip_kernelPi", "_Z11cuda_kernelPi"] {
        assert!(kernels.iter().any(|name| name == kernel), "{}", ran.stderr);
    }
    assert_eq!(records(&ran.stderr, "launch").len(), 2, "{}", ran.stderr);
    Ok(())
}

/// Commands of cargo with the numbers of compilations and device links.
const COMMANDS: &[(&[&str], usize, usize)] = &[
    (&["build", "--workspace"], 2, 1),
    (&["clippy", "--workspace"], 0, 0),
    (&["doc", "--workspace", "--no-deps"], 0, 0),
    // The unit tests of `base`: those of `top` have the device link of the program.
    (&["test", "--workspace", "--no-run"], 0, 1),
    (&["build", "--workspace", "--release"], 2, 1),
];

/// Number of compilations and device links of a build by a clang whose runs are logged.
fn counted(project: &Project, words: &[&str]) -> Result<(usize, usize)> {
    let clang = project.path("the clang++");
    let mut command = project.cargo(words);
    succeed(command.arg("-j2").env("HIPCXX", &clang))?;
    let calls = project.calls()?;
    let is_link = |call: &&Call| matches!(call, Call::Link(_));
    let links = calls.iter().filter(is_link).count();
    Ok((calls.len() - links, links))
}

#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_device_code_is_compiled_once_for_all_commands() -> Result<()> {
    let project = project()?;
    let clang = Path::new("/usr/lib/llvm-19/bin/clang++");
    project.log_runs(&project.path("the clang++"), clang)?;
    succeed(&mut project.gpustub(&["sync", "--workspace"])?)?;
    for (words, compilations, links) in COMMANDS {
        let calls = counted(&project, words)?;
        assert_eq!(calls, (*compilations, *links), "{words:?}");
    }

    // Device libraries of another release, which clang does not list among the files that it reads.
    let libraries = project.rocm().join("amdgcn/bitcode");
    fs::remove_file(&libraries)?;
    let mut copy = Command::new("cp");
    let real = component("device-libs-5.2")?;
    succeed(copy.arg("-rL").arg(real).arg(&libraries))?;
    assert_eq!(counted(&project, &["build", "--workspace"])?, (2, 1));
    Ok(())
}
