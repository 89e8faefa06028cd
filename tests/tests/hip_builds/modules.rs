//! `type = "module"` for AMD: offload bundles that a program embeds, compared with LLVM's bundler and loaded by a
//! recorder of HIP's calls.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_tests::Result;
use gpustub_tests::command::{run, succeed};
use gpustub_tests::nvcc::{TOOLKIT_13, hip_recorder};
use gpustub_tests::rdc::{Call, Project};

use crate::{library, records};

const MANIFEST: &str = r#"schema = 1

[device-link.waves]
type = "module"
sources = ["waves/*.hip"]
requires = ["top"]
archs = ["gfx90a", "gfx1030"]

[device-link.libraries-alone]
type = "module"
requires = ["top"]
archs = ["gfx90a:xnack+"]

[device-link.plain]
type = "module"
separable = false
sources = ["plain/*.hip"]
include-dirs = ["include"]
archs = ["gfx90a", "gfx1030"]

[device-link.single]
type = "module"
separable = false
sources = ["plain/scale.hip"]
include-dirs = ["include"]
archs = ["gfx1030"]
"#;

/// Loads all modules. With an argument, writes the file of the module that it names.
const MAIN: &str = r#"use std::ffi::c_void;
use std::io::Write;

unsafe extern "C" {
    fn hipModuleLoadData(module: *mut *mut c_void, image: *const c_void) -> i32;
}

fn main() {
    let modules: [(&str, &[u8]); 5] = [
        ("waves", include_bytes!(env!("GPUSTUB_MODULE_WAVES"))),
        ("libraries-alone", include_bytes!(env!("GPUSTUB_MODULE_LIBRARIES_ALONE"))),
        ("fill-all", include_bytes!(env!("GPUSTUB_MODULE_PLAIN_FILL_ALL"))),
        ("scale", include_bytes!(env!("GPUSTUB_MODULE_PLAIN_SCALE"))),
        ("single", include_bytes!(env!("GPUSTUB_MODULE_SINGLE_SCALE"))),
    ];
    let argument = std::env::args().nth(1);
    for (name, bytes) in modules {
        if argument.as_deref() == Some(name) {
            std::io::stdout().write_all(bytes).expect("a pipe");
        } else if argument.is_none() {
            let mut module = std::ptr::null_mut();
            let status = unsafe { hipModuleLoadData(&mut module, bytes.as_ptr().cast()) };
            assert_eq!(status, 0, "{name}");
        }
    }
    top::run();
}
"#;

const HIP: &str = "#include <hip/hip_runtime.h>\n";

/// Source of a kernel that calls no other file's code.
fn plain_kernel(name: &str) -> String {
    format!(
        "{HIP}#include \"n.h\"\nextern \"C\" __global__ void {name}(int *out) {{ *out = N; }}\n"
    )
}

/// `tip` has modules; `top` requires `base`, in packages of their own. Runs of clang are logged.
fn project() -> Result<Project> {
    let project = Project::headers_alone()?;
    project.install_rocm()?;
    project.log_runs(
        &project.path("the clang++"),
        Path::new("/usr/lib/llvm-19/bin/clang++"),
    )?;
    library(&project, "base", &[], "")?;
    library(&project, "top", &["base"], "")?;
    let source = format!(
        "{HIP}__device__ int top_value(int);\n__constant__ float scales[4];\n\
         extern \"C\" __global__ void wave(int *out) {{ *out = top_value(1) + scales[0]; }}\n"
    );
    project.package(
        "tip",
        "[dependencies]\ntop = { path = \"../top\" }\n",
        &[
            ("GpuStub.toml", MANIFEST),
            ("src/main.rs", MAIN),
            ("include/n.h", "#define N 1\n"),
            ("waves/wave.hip", &source),
            ("plain/fill-all.hip", &plain_kernel("fill")),
            ("plain/scale.hip", &plain_kernel("scale")),
        ],
    )?;
    succeed(&mut project.gpustub(&["sync"])?)?;
    Ok(project)
}

/// Builds `tip`, and returns the runs of clang.
fn built(project: &Project) -> Result<Vec<Call>> {
    let mut cargo = project.cargo(&["build", "-j2", "-p", "tip"]);
    succeed(cargo.env("HIPCXX", project.path("the clang++")))?;
    project.calls()
}

/// Writes what the program embeds to a file.
fn embedded(project: &Project, name: &str) -> Result<PathBuf> {
    let file = project.path(name);
    let mut tip = Command::new(project.built("tip"));
    tip.arg(name).stdout(fs::File::create(&file)?);
    tip.env("GPUSTUB_HIP_PATH", "off");
    succeed(&mut tip)?;
    Ok(file)
}

/// Kernels in the code objects of a bundle, by architecture, as LLVM's tools list them.
fn kernels(file: &Path) -> Result<BTreeMap<String, BTreeSet<String>>> {
    let bundler = || {
        let mut bundler = Command::new("/usr/lib/llvm-19/bin/clang-offload-bundler");
        bundler.arg("-type=o").arg("-input").arg(file);
        bundler
    };
    let listed = succeed(bundler().arg("-list"))?.stdout;
    let mut kernels: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for target in listed.lines() {
        let Some(arch) = target.strip_prefix("hipv4-amdgcn-amd-amdhsa--") else {
            continue;
        };
        let code = file.with_extension("code");
        let targets = format!("-targets={target}");
        succeed(
            bundler()
                .args(["-unbundle", &targets, "-output"])
                .arg(&code),
        )?;
        let symbols = succeed(Command::new("llvm-nm-19").arg("-D").arg(&code))?.stdout;
        let names = symbols.lines().filter_map(|line| line.split_once(" T "));
        let names = names.map(|(_, name)| name.to_owned()).collect();
        kernels.insert(arch.to_owned(), names);
    }
    Ok(kernels)
}

/// Checks the kernels of a file, by architecture.
fn expect(file: &Path, archs: &[&str], names: &[&str]) -> Result<()> {
    let names = BTreeSet::from_iter(names.iter().map(ToString::to_string));
    let expected = archs.iter().map(|arch| ((*arch).to_owned(), names.clone()));
    assert_eq!(kernels(file)?, expected.collect(), "{}", file.display());
    Ok(())
}

/// Kernels of `top` and `base`, as compiled.
const LIBRARIES: [&str; 2] = ["_Z10top_kernelPi", "_Z11base_kernelPi"];
const ARCHS: [&str; 2] = ["gfx1030", "gfx90a"];

#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_a_module_has_the_kernels_of_all_crates_and_is_loaded() -> Result<()> {
    let project = project()?;
    built(&project)?;
    let kernels = [LIBRARIES[0], LIBRARIES[1], "wave"];
    expect(&embedded(&project, "waves")?, &ARCHS, &kernels)?;
    let file = embedded(&project, "libraries-alone")?;
    expect(&file, &["gfx90a:xnack+"], &LIBRARIES)?;
    expect(&embedded(&project, "fill-all")?, &ARCHS, &["fill"])?;
    expect(&embedded(&project, "scale")?, &ARCHS, &["scale"])?;
    expect(&embedded(&project, "single")?, &["gfx1030"], &["scale"])?;

    let mut tip = Command::new(project.built("tip"));
    let recorder = hip_recorder(&project.path("recorder"))?;
    let ran = succeed(tip.env("GPUSTUB_HIP_PATH", recorder))?;
    let mut archs = Vec::new();
    for words in records(&ran.stderr, "module") {
        let id = words.first().map_or("", String::as_str);
        archs.extend(
            id.strip_prefix("hipv4-amdgcn-amd-amdhsa--")
                .map(str::to_owned),
        );
    }
    let expected = [
        "gfx1030",
        "gfx90a",
        "gfx90a:xnack+",
        "gfx1030",
        "gfx90a",
        "gfx1030",
        "gfx90a",
        "gfx1030",
    ];
    assert_eq!(archs, expected, "{}", ran.stderr);
    Ok(())
}

fn compile(name: &str) -> Call {
    Call::Compile(name.to_owned())
}

fn module(name: &str) -> Call {
    Call::Module(name.to_owned())
}

#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_only_changed_modules_are_rebuilt() -> Result<()> {
    let project = project()?;
    let link = Call::Link("gpustub-final-tip".to_owned());
    let first_build = [
        compile("base.hip"),
        compile("fill-all.hip"),
        compile("scale.hip"),
        compile("scale.hip"),
        compile("top.hip"),
        compile("wave.hip"),
        link.clone(),
        module("libraries-alone"),
        module("waves"),
    ];
    assert_eq!(built(&project)?, first_build);
    assert_eq!(built(&project)?, [], "nothing has changed");
    // A build with another OUT_DIR takes the modules from the store.
    let mut clippy = project.cargo(&["clippy", "-j2", "-p", "tip"]);
    succeed(clippy.env("HIPCXX", project.path("the clang++")))?;
    assert_eq!(project.calls()?, [], "the store has all");

    project.extend("tip/waves/wave.hip")?;
    assert_eq!(built(&project)?, [compile("wave.hip"), module("waves")]);
    project.write("tip/include/n.h", "#define N 2\n")?;
    let expected = [
        compile("fill-all.hip"),
        compile("scale.hip"),
        compile("scale.hip"),
    ];
    assert_eq!(built(&project)?, expected);
    project.extend("base/hip/base.hip")?;
    let expected = [
        compile("base.hip"),
        link,
        module("libraries-alone"),
        module("waves"),
    ];
    assert_eq!(built(&project)?, expected, "a library of another package");
    Ok(())
}

#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_undefined_functions_of_a_module_are_named() -> Result<()> {
    let project = project()?;
    project.edit("tip/waves/wave.hip", "top_value", "no_value")?;
    let refused = project.refused(&["build", "-p", "tip"])?;
    for part in [
        "error[device-link-error]: clang cannot link the device code for AMD",
        "no_value(int)",
        "help: the library that defines it belongs into `requires`",
    ] {
        assert!(
            refused.contains(part),
            "{part:?} is missing from\n{refused}"
        );
    }
    project.edit("tip/waves/wave.hip", "no_value", "top_value")?;
    let kernel = plain_kernel("scale").replace("*out = N", "*out = other()");
    let kernel = kernel.replace("extern", "__device__ int other();\nextern");
    project.write("tip/plain/scale.hip", &kernel)?;
    let refused = project.refused(&["build", "-p", "tip"])?;
    for part in [
        "error[compiler-error]: clang cannot compile plain/scale.hip for AMD",
        "other()",
        "help: with `separable = false` a source can call only functions that it defines or includes: remove \
         it from [device-link.plain] (GpuStub.toml:",
    ] {
        assert!(
            refused.contains(part),
            "{part:?} is missing from\n{refused}"
        );
    }
    Ok(())
}

const BOTH: &str = r#"schema = 1

[device-link.both]
type = "module"
sources = ["both/*.cu"]
archs = ["sm_80", "gfx90a"]

[device-link.plain]
type = "module"
separable = false
sources = ["both/*.cu"]
archs = ["sm_80", "compute_90", "gfx90a"]
"#;

#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_a_module_for_both_vendors_is_two_files() -> Result<()> {
    let project = Project::new(TOOLKIT_13)?;
    project.install_rocm()?;
    let main = MAIN
        .replace("top::run();", "")
        .replace("; 5]", "; 4]")
        .lines()
        .filter(|line| !line.contains("include_bytes!"))
        .map(|line| format!("{line}\n"))
        .collect::<String>();
    let mut files = String::new();
    for (name, variable) in [
        ("cuda", "BOTH_CUDA"),
        ("hip", "BOTH_HIP"),
        ("plain-cuda", "PLAIN_FILL_CUDA"),
        ("plain-hip", "PLAIN_FILL_HIP"),
    ] {
        files += &format!("(\"{name}\", include_bytes!(env!(\"GPUSTUB_MODULE_{variable}\"))),\n");
    }
    let main = main.replace("    ];\n", &format!("{files}    ];\n"));
    let source = format!(
        "#ifdef __HIP__\n{HIP}#endif\nextern \"C\" __global__ void fill(int *out) {{ *out = 1; }}\n"
    );
    let stub = BOTH.replace(
        "schema = 1\n",
        "schema = 1\n\n[stub.hip]\nheader-version = \"5\"\n",
    );
    let files = [
        ("GpuStub.toml", stub.as_str()),
        ("src/main.rs", &main),
        ("both/fill.cu", &source),
    ];
    project.package("tip", "", &files)?;
    succeed(&mut project.gpustub(&["sync"])?)?;
    succeed(&mut project.cargo(&["build", "-j2", "-p", "tip"]))?;
    for name in ["hip", "plain-hip"] {
        expect(&embedded(&project, name)?, &["gfx90a"], &["fill"])?;
    }
    for name in ["cuda", "plain-cuda"] {
        let file = embedded(&project, name)?;
        let listed = succeed(TOOLKIT_13.tool("cuobjdump")?.arg("-symbols").arg(file))?;
        assert!(listed.stdout.contains("fill"), "{}", listed.stdout);
    }
    // Empty files of the same variables.
    let mut check = project.cargo(&["check", "-p", "tip"]);
    succeed(check.env("GPUSTUB_DEVICE_CODE", "off"))?;
    let plan = succeed(&mut project.gpustub(&["plan", "-p", "tip"])?)?;
    plan.expect_in_order(&[
        "  device-link.both: module (fatbin) for sm_80 gfx90a\n",
        "    as          GPUSTUB_MODULE_BOTH_CUDA, GPUSTUB_MODULE_BOTH_HIP\n",
        "  device-link.plain: module (fatbin) for sm_80 compute_90 gfx90a\n",
        "GPUSTUB_MODULE_PLAIN_FILL_CUDA (",
    ])?;
    Ok(())
}

/// The plan reports what the build would.
#[test]
fn a_plan_shows_modules_and_their_errors() -> Result<()> {
    let project = Project::without_toolkit()?;
    let base = "schema = 1\n[device-link.base]\nsources = [\"base.hip\"]\narchs = [\"gfx90a\"]\n";
    let module = "schema = 1\n[device-link.waves]\ntype = \"module\"\nrequires = [\"base\"]\narchs = [\"gfx90a\"]\n";
    let files = [("GpuStub.toml", base), ("base.hip", ""), ("src/lib.rs", "")];
    project.package("base", "", &files)?;
    let needs = "[dependencies]\nbase = { path = \"../base\" }\n";
    project.package(
        "tip",
        needs,
        &[("GpuStub.toml", module), ("src/lib.rs", "")],
    )?;
    succeed(&mut project.gpustub(&["sync"])?)?;
    let ran = succeed(&mut project.gpustub(&["plan", "-p", "tip"])?)?;
    ran.expect_in_order(&[
        "  device-link.waves: module (fatbin) for gfx90a\n",
        "    libraries   base\n",
        "    as          GPUSTUB_MODULE_WAVES\n",
    ])?;
    for (from, to, error) in [
        (
            "[\"gfx90a\"]",
            "[\"gfx90a\", \"gfx1030\"]",
            "error[missing-arch]: device-link.waves is for gfx1030, and `base`, which it requires, has only gfx90a",
        ),
        (
            "type = \"module\"",
            "type = \"module\"\nformat = \"cubin\"",
            "error[invalid-value]: `device-link.waves.archs`: \"gfx90a\" is of AMD, and cubins and PTX are code of CUDA",
        ),
    ] {
        project.write("tip/GpuStub.toml", &module.replace(from, to))?;
        let ran = run(&mut project.gpustub(&["plan", "-p", "tip"])?)?;
        assert!(!ran.status.success(), "{to}");
        assert!(
            ran.stderr.contains(error),
            "{error:?} is missing from\n{}",
            ran.stderr
        );
    }
    Ok(())
}
