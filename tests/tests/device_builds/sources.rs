//! Names of sources: NVIDIA's own sample of separate compilation has its device code in `.cpp` files.

use std::fs;
use std::process::Command;

use gpustub_tests::Result;
use gpustub_tests::command::succeed;
use gpustub_tests::nvcc::{TOOLKIT_13, recorder};
use gpustub_tests::rdc::{Library, Project};

use crate::Record;

/// Device code in C++ files, of a static library, and of a library and a module that require it. Of contradictory
/// options that of the library itself is used.
#[test]
#[ignore = "needs CUDA's compiler: ./tests/run"]
fn device_code_in_cpp_files() -> Result<()> {
    let project = Project::new(TOOLKIT_13)?;
    project.library(Library::new("base", &[]))?;
    project.library(Library::new("top", &["base"]))?;
    for (name, extension) in [("base", "cpp"), ("top", "cxx")] {
        let source = project.root().join(name).join("cuda").join(name);
        fs::rename(
            source.with_extension("cu"),
            source.with_extension(extension),
        )?;
        let sources = format!("cuda/*.{extension}");
        project.edit(&format!("{name}/GpuStub.toml"), "cuda/*.cu", &sources)?;
    }
    project.edit(
        "top/GpuStub.toml",
        "[device-link.top]\n",
        "[device-link.fill]\ntype = \"module\"\nsources = [\"cuda/fill.cc\"]\nrequires = [\"base\"]\n\
         archs = [\"sm_80\"]\nformat = \"cubin\"\n\n[device-link.top]\n",
    )?;
    project.write(
        "top/cuda/fill.cc",
        "__device__ int base_value(int);\nextern \"C\" __global__ void fill(int *p) { *p = base_value(*p); }\n",
    )?;
    for (name, options) in [
        ("base", "\"-DLEVEL=1\""),
        ("top", "\"-ULEVEL\", \"-DLEVEL=2\""),
    ] {
        let table = format!("[device-link.{name}]\n");
        let with_options = format!("{table}compile-options = [{options}]\n");
        project.edit(&format!("{name}/GpuStub.toml"), &table, &with_options)?;
    }
    for (file, level) in [("base/cuda/base.cpp", 1), ("top/cuda/top.cxx", 2)] {
        let source = fs::read_to_string(project.root().join(file))?;
        project.write(
            file,
            &format!("{source}static_assert(LEVEL == {level}, \"\");\n"),
        )?;
    }
    let needs = "[dependencies]\ntop = { path = \"../top\" }\n";
    let main = "fn main() {\n    assert_eq!(top::run(), 0);\n}\n";
    project.package("tip", needs, &[("src/main.rs", main)])?;
    succeed(&mut project.gpustub(&["sync"])?)?;
    succeed(&mut project.cargo(&["build", "-j2", "-p", "tip"]))?;
    let library = recorder(&project.path("recorder"), 13)?;
    let record = Record::run(&mut Command::new(project.built("tip")), &library)?;
    record.expect(&[("tip", &["base_kernel", "top_kernel"])], 2)
}
