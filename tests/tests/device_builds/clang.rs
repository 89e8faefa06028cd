//! `compiler = "clang"`: libraries by clang's older driver, beside libraries by nvcc, in one device link.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use gpustub_tests::Result;
use gpustub_tests::command::{run, succeed};
use gpustub_tests::components::component;
use gpustub_tests::nvcc::{TOOLKIT_12, recorder};
use gpustub_tests::rdc::{Call, Library, Project};

use crate::requested::archs;
use crate::{Record, image, plain};

const CLANG: &str = "/usr/lib/llvm-19/bin/clang++";
const CURAND: &str = "headers/curand-11.8/nvidia/curand/include";

const LIBRARIES: [(&str, &[&str]); 3] =
    [("base", &[]), ("middle", &["base"]), ("top", &["middle"])];

/// `tip`, whose libraries are compiled by these compilers. All have their code in a file of one name.
fn project(compilers: [&str; 3]) -> Result<Project> {
    let project = Project::new(TOOLKIT_12)?;
    let (root, toolkit) = (TOOLKIT_12.root()?, project.toolkit());
    for name in ["bin/ptxas", "bin/fatbinary", "bin/cuobjdump", "nvvm"] {
        symlink(root.join(name), toolkit.join(name))?;
    }
    for ((name, requires), compiler) in LIBRARIES.into_iter().zip(compilers) {
        project.library(Library {
            archs: "\"sm_80\", \"sm_90\", \"compute_90\"",
            table: &format!("compiler = \"{compiler}\""),
            ..Library::new(name, requires)
        })?;
        let manifest = format!("{name}/GpuStub.toml");
        project.edit(
            &manifest,
            "header-version = \"13\"",
            "header-version = \"12\"",
        )?;
        let source = project.root().join(name).join("cuda");
        fs::rename(source.join(format!("{name}.cu")), source.join("kernels.cu"))?;
    }
    project.write("base/cuda/device.cuh", "#define VALUE 1\n")?;
    let included = "#ifdef __CUDA_ARCH__\n#include \"device.cuh\"\n#endif\n";
    let source = "base/cuda/kernels.cu";
    project.edit(source, "__device__", &format!("{included}__device__"))?;
    project.edit(
        source,
        "return 1;",
        "\n#ifdef VALUE\nreturn VALUE;\n#endif\nreturn 0;",
    )?;
    let needs = "[dependencies]\ntop = { path = \"../top\" }\n";
    let main = "fn main() {\n    assert_eq!(top::run(), 0);\n}\n";
    project.package("tip", needs, &[("src/main.rs", main)])?;
    Ok(project)
}

/// Cargo with headers of cuRAND, which clang includes in all CUDA code.
fn cargo(project: &Project, words: &[&str]) -> Result<Command> {
    let mut cargo = project.cargo(words);
    cargo.env("CPATH", component(CURAND)?);
    cargo.env("CUDACXX", CLANG);
    Ok(cargo)
}

const BUILD: &[&str] = &["build", "-j2", "-p", "tip"];

const KERNELS: &[&str] = &["base_kernel", "middle_kernel", "top_kernel"];

#[test]
#[ignore = "needs CUDA's compiler: ./tests/run"]
fn heavy_one_device_link_is_over_objects_of_both_compilers() -> Result<()> {
    let library = tempfile::tempdir()?;
    let library = recorder(library.path(), 12)?;
    for compilers in [
        ["clang", "nvcc", "clang"],
        ["nvcc", "clang", "nvcc"],
        ["clang"; 3],
    ] {
        let project = project(compilers)?;
        succeed(&mut project.gpustub(&["sync"])?)?;
        succeed(&mut cargo(&project, BUILD)?)?;
        let record = Record::run(&mut Command::new(project.built("tip")), &library)?;
        record.expect(&[("tip", KERNELS)], 3)?;
        // What `archs` names, as nvcc's objects have.
        let archs = Vec::from_iter(archs(&project)?);
        assert_eq!(archs, ["compute_90", "sm_80", "sm_90"], "{compilers:?}");
        project.calls()?;
        succeed(&mut cargo(&project, BUILD)?)?;
        assert_eq!(project.calls()?, [], "nothing has changed");
        // A header that the host does not see.
        project.write("base/cuda/device.cuh", "#define VALUE 2\n")?;
        succeed(&mut cargo(&project, BUILD)?)?;
        let link = Call::Link("gpustub-final-tip".to_owned());
        assert!(project.calls()?.contains(&link), "{compilers:?}");
        // An option by a variable that only clang reads.
        let mut build = cargo(&project, BUILD)?;
        succeed(build.env("CCC_OVERRIDE_OPTIONS", "#+-O3"))?;
        assert!(project.calls()?.contains(&link), "{compilers:?}");
    }
    Ok(())
}

#[test]
#[ignore = "needs CUDA's compiler: ./tests/run"]
fn heavy_shared_libraries_have_objects_of_both_compilers() -> Result<()> {
    let project = project(["clang", "nvcc", "clang"])?;
    project.edit("base/GpuStub.toml", "provide = true", "type = \"shared\"")?;
    for (name, _) in LIBRARIES {
        let manifest = format!("{name}/GpuStub.toml");
        let table = format!("[device-link.{name}]\n");
        project.edit(&manifest, &table, &format!("{table}type = \"shared\"\n"))?;
    }
    succeed(&mut project.gpustub(&["sync"])?)?;
    succeed(&mut cargo(&project, BUILD)?)?;
    let library = recorder(&project.path("recorder"), 12)?;
    let record = Record::run(&mut cargo(&project, &["run", "-p", "tip"])?, &library)?;
    // One device link, over the kernels of three images.
    let opened: Vec<String> = record
        .words("open")
        .iter()
        .map(|words| image(words[1]))
        .collect();
    assert_eq!(opened, ["libtop_final.so"]);
    let mut registered = Vec::new();
    for words in record.words("function") {
        registered.push((image(words[1]), plain(words[2])));
    }
    registered.sort();
    let expected = LIBRARIES.map(|(name, _)| (format!("lib{name}.so"), format!("{name}_kernel")));
    assert_eq!(registered, expected);
    assert_eq!(record.words("launch").len(), 3);
    assert!(record.words("UNKNOWN").is_empty());
    Ok(())
}

/// Archives that others made with clang: nvlink reads those of its older driver.
#[test]
#[ignore = "needs CUDA's compiler: ./tests/run"]
fn heavy_archives_of_clangs_older_driver_are_linked() -> Result<()> {
    let project = project(["nvcc"; 3])?;
    project.edit(
        "base/GpuStub.toml",
        "sources = [\"cuda/*.cu\"]",
        "prebuilt = \"libbase.a\"",
    )?;
    project.edit("base/GpuStub.toml", "compiler = \"nvcc\"", "")?;
    let directory = project.root().join("base");
    let compile = |driver: &str| {
        let mut clang = Command::new(CLANG);
        clang
            .current_dir(&directory)
            .arg(driver)
            .args(["-x", "cuda", "-fgpu-rdc", "-fPIC", "-c"]);
        clang.args([
            "--cuda-gpu-arch=sm_80",
            "--cuda-gpu-arch=sm_90",
            "-Wno-unknown-cuda-version",
        ]);
        clang.arg(format!("--cuda-path={}", project.toolkit().display()));
        clang.env("CPATH", component(CURAND)?);
        succeed(clang.args(["cuda/kernels.cu", "-o", "base.o"]))?;
        let mut ar = Command::new("ar");
        succeed(
            ar.current_dir(&directory)
                .args(["rcs", "libbase.a", "base.o"]),
        )?;
        Ok::<_, gpustub_tests::Failure>(())
    };
    compile("--no-offload-new-driver")?;
    succeed(&mut project.gpustub(&["sync"])?)?;
    succeed(&mut cargo(&project, BUILD)?)?;
    let library = recorder(&project.path("recorder"), 12)?;
    let record = Record::run(&mut Command::new(project.built("tip")), &library)?;
    record.expect(&[("tip", KERNELS)], 3)?;
    compile("--offload-new-driver")?;
    let refused = run(&mut cargo(&project, BUILD)?)?;
    let message = "has device code for sm_80, sm_90 in an offload binary of clang";
    let help = "takes objects of nvcc -rdc=true, and of clang --no-offload-new-driver -fgpu-rdc";
    assert!(
        refused.stderr.contains(message) && refused.stderr.contains(help),
        "{}",
        refused.stderr
    );
    Ok(())
}

#[test]
#[ignore = "needs CUDA's compiler: ./tests/run"]
fn heavy_missing_and_unsuitable_clangs_are_reported() -> Result<()> {
    let project = project(["clang", "nvcc", "nvcc"])?;
    succeed(&mut project.gpustub(&["sync"])?)?;
    for (variable, value, reported) in [
        (
            "CUDACXX",
            "/nonexistent/clang++",
            "CUDACXX names /nonexistent/clang++, which does not exist",
        ),
        (
            "CUDACXX",
            "/usr/lib/llvm-14/bin/clang++",
            "help: clang 15 is the first release that can be used",
        ),
        (
            "CPATH",
            "",
            "help: clang includes headers of cuRAND in all CUDA code",
        ),
    ] {
        let refused = run(cargo(&project, BUILD)?.env(variable, value))?;
        if refused.status.success() || !refused.stderr.contains(reported) {
            return Err(refused.error(&format!("{reported:?} is not reported")));
        }
    }
    let table = "[device-link.base]\n";
    project.edit(
        "base/GpuStub.toml",
        table,
        &format!("{table}optional = true\n"),
    )?;
    let mut cargo = cargo(&project, &["build", "-p", "base"])?;
    let ran = succeed(cargo.env("CUDACXX", "/nonexistent/clang++"))?;
    let warning = "device-link.base is left out";
    assert!(ran.stderr.contains(warning), "{}", ran.stderr);
    Ok(())
}
