//! `cudadevrt = true`: kernels that launch kernels.

use std::process::Command;

use gpustub_tests::Result;
use gpustub_tests::command::succeed;
use gpustub_tests::nvcc::{TOOLKIT_13, recorder};
use gpustub_tests::rdc::{Library, Project};

use crate::Record;

/// A kernel of `base` launches another one.
#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_kernels_launch_kernels() -> Result<()> {
    let project = Project::new(TOOLKIT_13)?;
    project.library(Library::new("base", &[]))?;
    project.library(Library::new("top", &["base"]))?;
    project.edit(
        "base/cuda/base.cu",
        "{ *p = base_value(*p); }",
        "{ child_kernel<<<1, 1>>>(p); }",
    )?;
    project.edit(
        "base/cuda/base.cu",
        "__global__ void base_kernel",
        "__global__ void child_kernel(int *p) { *p = base_value(*p); }\n__global__ void base_kernel",
    )?;
    let needs = "[dependencies]\ntop = { path = \"../top\" }\n";
    let main = "fn main() {\n    assert_eq!(top::run(), 0);\n}\n";
    project.package("tip", needs, &[("src/main.rs", main)])?;
    succeed(&mut project.gpustub(&["sync"])?)?;
    let refused = project.refused(&["build", "-p", "tip"])?;
    let help =
        "help: a kernel launches kernels, which needs libcudadevrt: write `cudadevrt = true`";
    assert!(refused.contains(help), "{refused}");

    project.edit(
        "base/GpuStub.toml",
        "[device-link.base]\n",
        "[device-link.base]\ncudadevrt = true\n",
    )?;
    // By a finalizer, and with the arguments of a build script.
    succeed(&mut project.cargo(&["build", "-j2", "-p", "tip"]))?;
    succeed(&mut project.cargo(&["test", "-j2", "-p", "base", "--no-run"]))?;
    let library = recorder(&project.path("recorder"), 13)?;
    let record = Record::run(&mut Command::new(project.built("tip")), &library)?;
    let kernels = &["base_kernel", "child_kernel", "top_kernel"];
    record.expect(&[("tip", kernels)], 2)?;

    project.calls()?;
    succeed(&mut project.cargo(&["build", "-j2", "-p", "tip"]))?;
    assert_eq!(project.calls()?, [], "nothing has changed");

    project.edit(
        "top/GpuStub.toml",
        "[device-link.top]\n",
        "[device-link.top]\ntype = \"shared\"\n",
    )?;
    let refused = project.refused(&["build", "-p", "top"])?;
    let message = "device-link.top is shared and requires `base`, which has `cudadevrt`";
    assert!(refused.contains(message), "{refused}");
    Ok(())
}
