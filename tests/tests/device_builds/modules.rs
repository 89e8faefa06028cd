//! `type = "module"`: files of device code that a program embeds, compared with NVIDIA's cuobjdump.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_tests::Result;
use gpustub_tests::cargo::cargo;
use gpustub_tests::command::{run, succeed};
use gpustub_tests::nvcc::{TOOLKIT_12, TOOLKIT_13, Toolkit};
use gpustub_tests::pair::major;
use gpustub_tests::rdc::{Call, Library, Project};
use gpustub_tests::readme::{commands, copy_example, shows};
use gpustub_tests::scratch::scratch;

const MANIFEST: &str = r#"schema = 1

[device-link.waves]
type = "module"
sources = ["waves/*.cu"]
requires = ["top"]
archs = ["sm_80", "sm_90"]

[device-link.libraries-alone]
type = "module"
format = "cubin"
requires = ["top"]
archs = ["sm_80"]

[device-link.plain]
type = "module"
separable = false
sources = ["plain/*.cu"]
include-dirs = ["include"]
archs = ["sm_80", "compute_90"]

[device-link.text]
type = "module"
format = "ptx"
separable = false
sources = ["plain/fill-all.cu"]
include-dirs = ["include"]
archs = ["compute_80"]
"#;

/// Writes the file of the variable that its argument names.
const MAIN: &str = r#"use std::io::Write;

fn main() {
    let name = std::env::args().nth(1).unwrap_or_default();
    let bytes: &[u8] = match name.as_str() {
        "waves" => include_bytes!(env!("GPUSTUB_MODULE_WAVES")),
        "libraries-alone" => include_bytes!(env!("GPUSTUB_MODULE_LIBRARIES_ALONE")),
        "fill-all" => include_bytes!(env!("GPUSTUB_MODULE_PLAIN_FILL_ALL")),
        "scale" => include_bytes!(env!("GPUSTUB_MODULE_PLAIN_SCALE")),
        "text" => include_str!(env!("GPUSTUB_MODULE_TEXT_FILL_ALL")).as_bytes(),
        _ => panic!("no module {name:?}"),
    };
    std::io::stdout().write_all(bytes).expect("a pipe");
}
"#;

/// Source of a kernel that calls no other file's code.
fn plain_kernel(name: &str) -> String {
    format!("#include \"n.cuh\"\nextern \"C\" __global__ void {name}(int *out) {{ *out = N; }}\n")
}

/// `tip` has modules; `top` requires `base`, in packages of their own.
fn project(toolkit: Toolkit) -> Result<Project> {
    let project = Project::new(toolkit)?;
    let archs = "\"sm_80\", \"sm_90\"";
    project.library(Library {
        archs,
        ..Library::new("base", &[])
    })?;
    project.library(Library {
        archs,
        ..Library::new("top", &["base"])
    })?;
    let major = major(toolkit.version)?;
    for package in ["base", "top"] {
        project.edit(
            &format!("{package}/GpuStub.toml"),
            "header-version = \"13\"",
            &format!("header-version = \"{major}\""),
        )?;
    }
    let source = "__device__ int top_value(int);\n__constant__ float scales[4];\n\
                  extern \"C\" __global__ void wave(int *out) { *out = top_value(1) + scales[0]; }\n";
    project.package(
        "tip",
        "[dependencies]\ntop = { path = \"../top\" }\n",
        &[
            ("GpuStub.toml", MANIFEST),
            ("src/main.rs", MAIN),
            ("include/n.cuh", "#define N 1\n"),
            ("waves/wave.cu", source),
            ("plain/fill-all.cu", &plain_kernel("fill")),
            ("plain/scale.cu", &plain_kernel("scale")),
        ],
    )?;
    succeed(&mut project.gpustub(&["sync"])?)?;
    Ok(project)
}

/// Writes what the program embeds to a file.
fn embedded(project: &Project, name: &str) -> Result<PathBuf> {
    let file = project.path(name);
    let mut tip = Command::new(project.built("tip"));
    tip.arg(name).stdout(fs::File::create(&file)?);
    succeed(&mut tip)?;
    Ok(file)
}

/// Kernels in machine code and in PTX, by architecture, as the toolkit's cuobjdump lists them. It
/// names none for a cubin.
fn kernels(file: &Path) -> Result<BTreeMap<String, BTreeSet<String>>> {
    let mut kernels: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut arch = String::new();
    for (option, kind) in [("-symbols", "sm_"), ("-ptx", "compute_")] {
        // Fails without such code.
        let listed = run(TOOLKIT_13.tool("cuobjdump")?.arg(option).arg(file))?;
        for line in listed.stdout.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.as_slice() {
                ["arch", "=", name] => {
                    arch = name.replace("sm_", kind);
                }
                ["FUNC" | "STT_FUNC", .., name] if line.contains("ENTRY") => {
                    kernels
                        .entry(arch.clone())
                        .or_default()
                        .insert((*name).to_owned());
                }
                [".visible", ".entry", name] => {
                    let name = name.trim_end_matches('(').to_owned();
                    kernels.entry(arch.clone()).or_default().insert(name);
                }
                _ => {}
            }
        }
    }
    Ok(kernels)
}

/// Checks the kernels of a file, by architecture.
pub fn expect(file: &Path, expected: &[(&str, &[&str])]) -> Result<()> {
    let expected = expected
        .iter()
        .map(|(arch, names)| {
            let names = names.iter().map(ToString::to_string).collect();
            ((*arch).to_owned(), names)
        })
        .collect();
    assert_eq!(kernels(file)?, expected, "{}", file.display());
    Ok(())
}

/// Kernels of `top` and `base`, as compiled.
pub const LIBRARIES: [&str; 2] = ["_Z10top_kernelPi", "_Z11base_kernelPi"];

fn modules_have_all_kernels(toolkit: Toolkit) -> Result<()> {
    let project = project(toolkit)?;
    succeed(&mut project.cargo(&["build", "-j2", "-p", "tip"]))?;
    let kernels: &[&str] = &[LIBRARIES[0], LIBRARIES[1], "wave"];
    expect(
        &embedded(&project, "waves")?,
        &[("sm_80", kernels), ("sm_90", kernels)],
    )?;
    expect(&embedded(&project, "libraries-alone")?, &[("", &LIBRARIES)])?;
    for (name, kernel) in [("fill-all", "fill"), ("scale", "scale")] {
        let file = embedded(&project, name)?;
        expect(&file, &[("sm_80", &[kernel]), ("compute_90", &[kernel])])?;
    }
    let text = fs::read_to_string(embedded(&project, "text")?)?;
    assert!(
        text.contains(".target sm_80") && text.contains(".visible .entry fill("),
        "{text}"
    );
    Ok(())
}

#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_a_module_has_the_kernels_of_all_crates_for_each_architecture() -> Result<()> {
    modules_have_all_kernels(TOOLKIT_13)
}

#[test]
#[ignore = "needs CUDA's compiler of 12: ./tests/run --all"]
fn heavy_modules_of_toolkit_12() -> Result<()> {
    modules_have_all_kernels(TOOLKIT_12)
}

/// cudarc calls the driver by the stubs, and there is none.
#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_example_readme_shows_the_real_output() -> Result<()> {
    let dir = scratch()?;
    let root = copy_example("cuda-module", 1, dir.path())?;
    let toolkit = TOOLKIT_13.root()?.display().to_string();
    // cudarc is in the registry only, and no other package of the workspace needs it.
    succeed(cargo(&root).arg("fetch").arg("--quiet"))?;
    let variables = [
        ("CARGO_NET_OFFLINE", "true"),
        ("CUDA_HOME", toolkit.as_str()),
        ("GPUSTUB_CUDA_PATH", "off"),
    ];
    let commands = commands("examples/cuda-module/README.md")?;
    assert_eq!(commands.len(), 3);
    shows(&commands, &root, &variables)
}

fn compile(name: &str) -> Call {
    Call::Compile(name.to_owned())
}

fn link(name: &str) -> Call {
    Call::Link(name.to_owned())
}

fn module(name: &str) -> Call {
    Call::Module(name.to_owned())
}

/// Builds `tip`, and returns the runs of nvcc.
fn built(project: &Project) -> Result<Vec<Call>> {
    succeed(&mut project.cargo(&["build", "-j2", "-p", "tip"]))?;
    project.calls()
}

#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_only_changed_modules_are_rebuilt() -> Result<()> {
    let project = project(TOOLKIT_13)?;
    let first_build = [
        compile("base.cu"),
        compile("fill-all.cu"),
        compile("fill-all.cu"),
        compile("scale.cu"),
        compile("top.cu"),
        compile("wave.cu"),
        link("gpustub-final-tip"),
        module("libraries-alone"),
        module("waves"),
    ];
    assert_eq!(built(&project)?, first_build);
    assert_eq!(built(&project)?, [], "nothing has changed");

    project.extend("tip/waves/wave.cu")?;
    assert_eq!(built(&project)?, [compile("wave.cu"), module("waves")]);
    project.extend("tip/plain/scale.cu")?;
    assert_eq!(built(&project)?, [compile("scale.cu")]);
    project.write("tip/include/n.cuh", "#define N 2\n")?;
    let expected = [
        compile("fill-all.cu"),
        compile("fill-all.cu"),
        compile("scale.cu"),
    ];
    assert_eq!(built(&project)?, expected);
    project.extend("base/cuda/base.cu")?;
    let expected = [
        compile("base.cu"),
        link("gpustub-final-tip"),
        module("libraries-alone"),
        module("waves"),
    ];
    assert_eq!(built(&project)?, expected, "a library of another package");
    assert_eq!(built(&project)?, [], "nothing has changed");
    Ok(())
}

#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_undefined_functions_of_a_module_are_named_with_their_source() -> Result<()> {
    let project = project(TOOLKIT_13)?;
    project.edit("tip/waves/wave.cu", "top_value", "no_value")?;
    let refused = project.refused(&["build", "-p", "tip"])?;
    for part in [
        "error[device-link-error]: nvcc cannot link the device code",
        "no_value(int)",
        "tip/waves/wave.cu",
        "help: the library that defines it belongs into `requires`",
    ] {
        assert!(
            refused.contains(part),
            "{part:?} is missing from\n{refused}"
        );
    }
    Ok(())
}

#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_functions_of_other_files_need_a_separable_module() -> Result<()> {
    let project = project(TOOLKIT_13)?;
    let source = "__device__ int other();\nextern \"C\" __global__ void scale(int *out) { *out = other(); }\n";
    project.write("tip/plain/scale.cu", source)?;
    let refused = project.refused(&["build", "-p", "tip"])?;
    for part in [
        "Unresolved extern function '_Z5otherv'",
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

/// The plan reports what the build would, and `sync` writes neither a finalizer nor `links`.
#[test]
fn a_plan_shows_modules_and_their_errors() -> Result<()> {
    let project = Project::without_toolkit()?;
    let library = "schema = 1\n[device-link.base]\nsources = [\"base.cu\"]\narchs = [\"sm_80\"]\ncudart = \"none\"\n";
    let module = "schema = 1\n[device-link.waves]\ntype = \"module\"\nrequires = [\"base\"]\narchs = [\"sm_80\"]\n";
    project.package(
        "base",
        "",
        &[
            ("GpuStub.toml", library),
            ("base.cu", ""),
            ("src/lib.rs", ""),
        ],
    )?;
    let needs = "[dependencies]\nbase = { path = \"../base\" }\n";
    project.package(
        "tip",
        needs,
        &[
            ("GpuStub.toml", module),
            ("src/lib.rs", ""),
            ("one/fill.cu", ""),
            ("two/fill.cu", ""),
        ],
    )?;
    succeed(&mut project.gpustub(&["sync"])?)?;
    let manifest = fs::read_to_string(project.root().join("tip/Cargo.toml"))?;
    assert!(
        manifest.contains("features = [\"device-link\"]"),
        "{manifest}"
    );
    assert!(!manifest.contains("links ="), "{manifest}");
    let script = fs::read_to_string(project.root().join("tip/build.rs"))?;
    assert!(script.contains("gpustub_build::build();"), "{script}");

    let ran = succeed(&mut project.gpustub(&["plan", "-p", "tip"])?)?;
    ran.expect_in_order(&[
        "  device-link.waves: module (fatbin) for sm_80\n",
        "    libraries   base\n",
        "    as          GPUSTUB_MODULE_WAVES\n",
    ])?;
    let ran = succeed(&mut project.gpustub(&["plan", "-p", "tip", "--format", "json"])?)?;
    let plan: serde_json::Value = serde_json::from_str(&ran.stdout)?;
    let packages = plan["packages"].as_array().ok_or("no packages")?;
    let modules: Vec<_> = packages
        .iter()
        .flat_map(|package| package["modules"].as_array())
        .flatten()
        .collect();
    let expected = serde_json::json!({
        "name": "waves", "format": "fatbin", "separable": true, "archs": ["sm_80"],
        "libraries": ["base"], "files": [{ "variable": "GPUSTUB_MODULE_WAVES", "source": null }],
    });
    assert_eq!(modules, [&expected]);

    let words = ["plan", "-p", "tip", "--target", "x86_64-pc-windows-msvc"];
    let ran = run(&mut project.gpustub(&words)?)?;
    let refused = "error[unsupported-target]: device links are for Linux targets";
    for part in [refused, "base/GpuStub.toml:2:14", "tip/GpuStub.toml:2:14"] {
        assert!(ran.stderr.contains(part), "{}", ran.stderr);
    }

    for (from, to, errors) in [
        (
            "[\"sm_80\"]",
            "[\"sm_80\", \"sm_90\"]",
            [
                "error[missing-arch]: device-link.waves is for sm_90, and `base`, which it requires, has only sm_80",
                "tip/GpuStub.toml:2:14",
            ],
        ),
        (
            "[\"base\"]",
            "[\"bass\"]",
            [
                "error[unknown-device-library]: `device-link.waves` requires `bass`",
                "did you mean `base`?",
            ],
        ),
        (
            "requires = [\"base\"]",
            "separable = false\nsources = [\"*/fill.cu\"]",
            [
                "error[invalid-value]: two/fill.cu of device-link.waves: another module has the variable \
                 GPUSTUB_MODULE_WAVES_FILL",
                "tip/GpuStub.toml:2:14",
            ],
        ),
    ] {
        project.write("tip/GpuStub.toml", &module.replace(from, to))?;
        for command in ["plan", "sync"] {
            let ran = run(&mut project.gpustub(&[command, "-p", "tip"])?)?;
            assert!(!ran.status.success(), "{command}");
            for error in errors {
                assert!(
                    ran.stderr.contains(error),
                    "{error:?} is missing from\n{}",
                    ran.stderr
                );
            }
        }
    }
    // A module of the same package.
    let second = module.replace("waves", "other").replace("base", "waves");
    let manifest = format!("{module}{}", second.trim_start_matches("schema = 1\n"));
    project.write("tip/GpuStub.toml", &manifest)?;
    let ran = run(&mut project.gpustub(&["plan", "-p", "tip"])?)?;
    let errors: Vec<_> = ran
        .stderr
        .lines()
        .filter(|line| line.starts_with("error"))
        .collect();
    assert_eq!(
        errors,
        [
            "error[invalid-value]: `device-link.other.requires`: `waves` is a module, which nothing can be linked with"
        ]
    );
    // A module of another package.
    project.write("tip/GpuStub.toml", module)?;
    project.write(
        "base/GpuStub.toml",
        &library
            .replace("[\"sm_80\"]", "[\"sm_80\"]\ntype = \"module\"")
            .replace("cudart = \"none\"\n", ""),
    )?;
    let ran = run(&mut project.gpustub(&["plan", "-p", "tip"])?)?;
    assert!(
        ran.stderr
            .contains("help: it is a module, which nothing can be linked with"),
        "{}",
        ran.stderr
    );
    Ok(())
}
