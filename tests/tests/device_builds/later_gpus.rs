//! PTX for GPUs later than a build: of all libraries, as the driver needs it.

use std::fs;
use std::path::Path;
use std::process::Command;

use gpustub_tests::Result;
use gpustub_tests::command::succeed;
use gpustub_tests::components::wheel_libraries;
use gpustub_tests::elf::symbols;
use gpustub_tests::nvcc::{TOOLKIT_12, recorder};
use gpustub_tests::rdc::{Library, Project};

use crate::{Record, plain};

const MAIN: &str = "fn main() {\n    assert_eq!(top::run(), 0);\n}\n";

/// Compiles `relink.c`, which links device code as the driver does.
fn relink(dir: &Path) -> Result<Command> {
    let library = wheel_libraries("nvjitlink-12.9")?;
    let program = dir.join("relink");
    let mut cc = Command::new("cc");
    cc.arg("-I").arg(library.with_file_name("include"));
    cc.arg(gpustub_tests::repository().join("tests/programs/relink.c"));
    cc.arg(library.join("libnvJitLink.so.12"))
        .arg("-o")
        .arg(&program);
    succeed(&mut cc)?;
    let mut relink = Command::new(program);
    relink.env("LD_LIBRARY_PATH", library);
    Ok(relink)
}

/// CUDA 12.4 knows no GPU later than sm_90, nvJitLink 12.9 does.
#[test]
#[ignore = "needs CUDA's compiler and nvJitLink: ./tests/run"]
fn heavy_objects_with_ptx_are_linked_for_a_later_gpu() -> Result<()> {
    let project = Project::new(TOOLKIT_12)?;
    for (name, requires, archs) in [
        ("base", &[][..], "\"sm_80\", \"compute_80\""),
        ("top", &["base"][..], "\"lto_80\", \"compute_80\""),
    ] {
        project.library(Library {
            archs,
            ..Library::new(name, requires)
        })?;
    }
    let needs = "[dependencies]\ntop = { path = \"../top\" }\n";
    project.package("tip", needs, &[("src/main.rs", MAIN)])?;
    succeed(&mut project.gpustub(&["sync"])?)?;
    succeed(&mut project.cargo(&["build", "-j2", "-p", "tip"]))?;

    let library = recorder(&project.path("recorder"), 12)?;
    let objects = project.path("objects");
    fs::create_dir_all(&objects)?;
    let mut program = Command::new(project.built("tip"));
    let record = Record::run(program.env("OBJECTS", &objects), &library)?;
    let kernels = ["base_kernel", "top_kernel"];
    record.expect(&[("tip", &kernels)], 2)?;

    let image = objects.join("sm_120.cubin");
    let mut relink = relink(&objects)?;
    relink.arg("sm_120").arg(&image);
    succeed(relink.args(["1", "2"].map(|name| objects.join(name).with_extension("fatbin"))))?;
    let mut names: Vec<_> = (symbols("--symbols", &image)?.iter())
        .filter(|row| row.kind == "FUNC" && row.section != "UND")
        .map(|row| plain(&row.name))
        .filter(|name| name.ends_with("_kernel"))
        .collect();
    names.sort();
    assert_eq!(names, kernels);

    project.edit("top/GpuStub.toml", ", \"compute_80\"", "")?;
    let ran = succeed(&mut project.cargo(&["build", "-j2", "-p", "tip"]))?;
    let warning = "has no PTX of top: the driver cannot repeat it for later GPUs";
    assert!(ran.stderr.contains(warning), "{}", ran.stderr);
    Ok(())
}
