//! CUDA's library of device functions, also bitcode: one file per release, for all families.

use std::fs;
use std::path::Path;
use std::process::Command;

use gpustub_tests::Result;
use gpustub_tests::bitcode::{Layer, SOME, Splitter, layers, libclc};
use gpustub_tests::command::succeed;
use gpustub_tests::components::component;
use gpustub_tests::scratch::scratch;

use crate::naive::{Views, build, compare};

/// Path in each release, newest first.
const RELEASES: [(&str, &str); 4] = [
    (
        "13.5",
        "wheels/nvcc-13.5/nvidia/cu13/nvvm/libdevice/libdevice.10.bc",
    ),
    (
        "13.4",
        "wheels/toolkit-13.4/nvidia/cu13/nvvm/libdevice/libdevice.10.bc",
    ),
    ("12.4", "toolkit-12.4/nvvm/libdevice/libdevice.10.bc"),
    ("11.8", "toolkit-11.8/nvvm/libdevice/libdevice.10.bc"),
];

fn split(releases: &[(&str, &str)], directory: &Path) -> Result<()> {
    let splitter = Splitter::new(directory)?;
    for (release, path) in releases {
        splitter.split(&component(path)?, &directory.join(release), None)?;
    }
    Ok(())
}

#[test]
#[ignore = "needs libdevice, libclc, clang, llvm: ./tests/run"]
fn libdevice_is_found_under_and_beside_other_layers() -> Result<()> {
    let dir = scratch()?;
    let directory = dir.path();
    split(&RELEASES[..1], directory)?;
    Splitter::new(directory)?.split(
        &libclc("nvptx64--")?,
        &directory.join("nvptx64"),
        Some(SOME),
    )?;
    // A family that defines one function.
    fs::create_dir(directory.join("sm_90"))?;
    let source = directory.join("sm_90.c");
    fs::write(
        &source,
        "float __nv_sinf(float x) { return __nvvm_sin_approx_f(x); }\n",
    )?;
    let mut clang = Command::new("clang-19");
    clang.args(["--target=nvptx64-nvidia-cuda", "-O1", "-emit-llvm", "-c"]);
    succeed(
        clang
            .arg(&source)
            .arg("-o")
            .arg(directory.join("sm_90/sin.bc")),
    )?;
    for name in ["13.5", "nvptx64", "sm_90"] {
        Layer::from_directory(name, &directory.join(name))?.archive(directory)?;
    }
    let views = vec![
        ("cuda", vec!["13.5"]),
        ("sm_90", vec!["sm_90", "13.5"]),
        ("opencl", vec!["nvptx64"]),
        ("both", vec!["nvptx64", "13.5"]),
    ];
    build(directory, &views)?;
    let compared = compare(directory, &views)?;
    assert!(compared > 3 * 300 + 2 * 200, "{compared} symbols");
    Ok(())
}

#[test]
#[ignore = "needs libdevice of four releases, llvm: ./tests/run --all"]
fn heavy_libdevice_of_each_release_is_what_the_layers_have() -> Result<()> {
    let dir = scratch()?;
    let directory = dir.path();
    split(&RELEASES, directory)?;
    let names = RELEASES.map(|(release, _)| release);
    let layers = layers(&names, directory)?;
    let mut views = Views::new();
    for layer in &layers {
        layer.archive(directory)?;
    }
    for (index, name) in names.iter().enumerate() {
        views.push((
            *name,
            layers[index..]
                .iter()
                .map(|layer| &layer.name[..])
                .collect(),
        ));
    }
    build(directory, &views)?;
    let compared = compare(directory, &views)?;
    assert!(compared > 4 * 300, "{compared} symbols");
    Ok(())
}
