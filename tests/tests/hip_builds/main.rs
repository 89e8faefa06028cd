//! Relocatable HIP code in packages, built by cargo and Debian's clang: registrations at program start, the code of each
//! architecture, and what is refused. HIP's runtime is a recorder: no device of AMD is at hand.

use std::env::join_paths;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use gpustub_tests::Result;
use gpustub_tests::cargo::gpustub;
use gpustub_tests::command::{Ran, run, succeed};
use gpustub_tests::components::component;
use gpustub_tests::nvcc::{TOOLKIT_13, hip_recorder, recorder};
use gpustub_tests::opener::host;
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

const SHARED: &str = "type = \"shared\"";

/// Shared libraries `base`, `top` and `side`, the last two over the first. Programs: `tip` uses `top`, `both` uses all of
/// them. Cdylibs: `plugin` uses all, `flat` the final of `top`, `solid` that of `side`.
fn shared_project() -> Result<Project> {
    let project = Project::headers_alone()?;
    project.install_rocm()?;
    library(&project, "base", &[], SHARED)?;
    project.edit("base/GpuStub.toml", STUB, &format!("{STUB}{SHARED}\n"))?;
    library(&project, "top", &["base"], SHARED)?;
    library(&project, "side", &["base"], SHARED)?;
    let needs = "[dependencies]\ntop = { path = \"../top\" }\n";
    let main = "fn main() {\n    assert_eq!(top::run(), 0);\n}\n";
    project.package("tip", needs, &[("src/main.rs", main)])?;
    let needs = format!("{needs}side = {{ path = \"../side\" }}\n");
    let main = "fn main() {\n    assert_eq!(top::run() + side::run(), 0);\n}\n";
    project.package("both", &needs, &[("src/main.rs", main)])?;
    let plugin = "//! Opened by C.\n\n#[no_mangle]\npub extern \"C\" fn run() {\n    \
                  assert_eq!(top::run() + side::run(), 0);\n}\n";
    let manifest = format!("[lib]\ncrate-type = [\"cdylib\"]\n\n{needs}");
    project.package("plugin", &manifest, &[("src/lib.rs", plugin)])?;
    for (name, unused) in [("flat", "side"), ("solid", "top")] {
        let needs = manifest.replace(&format!("{unused} = {{ path = \"../{unused}\" }}\n"), "");
        let code = plugin
            .replace(" + ", "")
            .replace(&format!("{unused}::run()"), "");
        project.package(name, &needs, &[("src/lib.rs", &code)])?;
    }
    Ok(project)
}

/// Images of the records of a kind, whose field `index` is an address.
fn images(ran: &Ran, kind: &str, index: usize) -> Vec<String> {
    let mut images: Vec<String> = records(&ran.stderr, kind)
        .iter()
        .filter_map(|words| words.get(index)?.split('+').next().map(str::to_owned))
        .collect();
    images.sort();
    images
}

/// The device link of `image` is registered once, with the kernels and variables of these libraries, which are launched
/// and at last unregistered once.
fn expect_shared(ran: &Ran, image: &str, libraries: &[&str], launches: usize) {
    assert_eq!(images(ran, "open", 1), [image], "{}", ran.stderr);
    assert_eq!(images(ran, "function", 1), libraries, "{}", ran.stderr);
    assert_eq!(
        records(&ran.stderr, "launch").len(),
        launches,
        "{}",
        ran.stderr
    );
    assert_eq!(records(&ran.stderr, "close").len(), 1, "{}", ran.stderr);
    assert!(!ran.stderr.contains("UNKNOWN"), "{}", ran.stderr);
}

#[test]
#[ignore = "needs HIP's headers and device libraries: ./tests/run"]
fn shared_libraries_are_registered_by_one_device_link() -> Result<()> {
    let project = shared_project()?;
    let recorder = hip_recorder(&project.path("recorder"))?;
    let example = "fn main() {\n    assert_eq!(top::run(), 0);\n}\n";
    project.write("top/examples/own.rs", example)?;
    let words = ["--workspace", "--examples", "--bins", "--lib"];
    build(&project, &words)?.success()?;
    let programs = [
        (
            "tip",
            "libtop_final.so",
            &["libbase.so", "libtop.so"][..],
            2,
        ),
        (
            "examples/own",
            "libtop_final.so",
            &["libbase.so", "libtop.so"],
            2,
        ),
        (
            "both",
            "both",
            &["libbase.so", "libside.so", "libtop.so"],
            4,
        ),
    ];
    let search_path = join_paths(project.library_dirs()?)?;
    for (name, image, libraries, launches) in programs {
        let mut program = Command::new(project.built(name));
        program.env("LD_LIBRARY_PATH", &search_path);
        let ran = succeed(program.env("GPUSTUB_HIP_PATH", &recorder))?;
        expect_shared(&ran, image, libraries, launches);
    }
    let mut program = Command::new(host(&project.path(""))?);
    program.arg(project.built("libplugin.so"));
    program.env("LD_LIBRARY_PATH", &search_path);
    let ran = succeed(program.env("GPUSTUB_HIP_PATH", &recorder))?;
    expect_shared(
        &ran,
        "libplugin.so",
        &["libbase.so", "libside.so", "libtop.so"],
        4,
    );
    reports_agree(&project)
}

/// Findings of `plan` before a build are those of `check` in a directory of the built files.
fn reports_agree(project: &Project) -> Result<()> {
    let words = ["plan", "-p", "flat", "-p", "solid"];
    let planned = succeed(&mut project.gpustub(&words)?)?.stderr;
    let is_planned = planned.contains("warning[duplicate-device-link]: `")
        && planned.contains("/cdylib` cannot be opened by one process");
    assert!(is_planned, "{planned}");
    let planned = succeed(&mut project.gpustub(&["plan", "-p", "tip", "-p", "both"])?)?.stderr;
    assert!(!planned.contains("[duplicate-device-link]"), "{planned}");

    let shared = |names: &[&str]| -> Vec<String> {
        names.iter().map(|name| format!("lib{name}.so")).collect()
    };
    let all = shared(&[
        "gpustub_base",
        "base",
        "top",
        "side",
        "top_final",
        "side_final",
    ]);
    let middles = shared(&["gpustub_base", "base", "top"]);
    for (programs, libraries, finding) in [
        (
            shared(&["flat", "solid"]),
            &all,
            "error[duplicate-device-link]",
        ),
        (Vec::new(), &middles, "error[missing-device-link]"),
        (vec!["tip".to_owned()], &all, ""),
    ] {
        let directory = project.path("shipped");
        fs::create_dir_all(&directory)?;
        for name in &programs {
            fs::copy(project.built(name), directory.join(name))?;
        }
        for name in libraries {
            let directories = project.library_dirs()?.into_iter();
            let file = directories
                .map(|from| from.join(name))
                .find(|file| file.is_file());
            fs::copy(file.ok_or(format!("no {name}"))?, directory.join(name))?;
        }
        let mut check = gpustub(&["check", "--allow", "needed-toolkit"])?;
        let ran = run(check.arg(&directory))?;
        fs::remove_dir_all(&directory)?;
        assert_eq!(
            ran.stderr.contains("-device-link]"),
            !finding.is_empty(),
            "{}",
            ran.stderr
        );
        assert!(ran.stderr.contains(finding), "{finding}: {}", ran.stderr);
    }
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
#[ignore = "needs HIP's headers and device libraries: ./tests/run"]
fn mistakes_are_named() -> Result<()> {
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

#[test]
#[ignore = "needs CUDA's compiler, HIP's headers and device libraries: ./tests/run"]
fn one_table_has_code_for_both_vendors() -> Result<()> {
    let project = Project::new(TOOLKIT_13)?;
    project.install_rocm()?;
    project.library(Library {
        archs: "\"sm_80\", \"gfx90a\"",
        ..Library::new("both", &[])
    })?;
    project.edit(
        "both/GpuStub.toml",
        "schema = 1\n",
        &format!("schema = 1\n\n{STUB}"),
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
    let needs = "[dependencies]\nboth = { path = \"../both\" }\n";
    let main = "fn main() {\n    assert_eq!(both::run(), 0);\n}\n";
    project.package("tip", needs, &[("src/main.rs", main)])?;
    build(&project, &["-p", "tip"])?.success()?;
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
#[ignore = "needs HIP's headers and device libraries: ./tests/run"]
fn device_code_is_compiled_once_for_all_commands() -> Result<()> {
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
