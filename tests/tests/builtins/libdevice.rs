//! CUDA's library of device functions, which is bitcode too: one for all families, of each release one.

use std::path::Path;

use gpustub_tests::bitcode::{Layer, SOME, Splitter, layers, libclc};
use gpustub_tests::components::component;
use gpustub_tests::{Result, scratch};

use crate::naive::{Views, build, compare};

/// Where releases have it, newest first.
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

fn split(releases: &[(&str, &str)], folder: &Path) -> Result<()> {
    let splitter = Splitter::new(folder)?;
    for (release, path) in releases {
        splitter.split(&component(path)?, &folder.join(release), None)?;
    }
    Ok(())
}

#[test]
#[ignore = "needs libdevice, libclc, llvm: ./tests/run"]
fn libdevice_is_found_beside_the_functions_of_libclc() -> Result<()> {
    let dir = scratch()?;
    let folder = dir.path();
    split(&RELEASES[..1], folder)?;
    Splitter::new(folder)?.split(&libclc("nvptx64--")?, &folder.join("nvptx64"), Some(SOME))?;
    for name in ["13.5", "nvptx64"] {
        Layer::of(name, &folder.join(name))?.archive(folder)?;
    }
    let views = vec![
        ("cuda", vec!["13.5"]),
        ("opencl", vec!["nvptx64"]),
        ("both", vec!["nvptx64", "13.5"]),
    ];
    build(folder, &views)?;
    let compared = compare(folder, &views)?;
    assert!(compared > 2 * (300 + 200), "{compared} symbols");
    Ok(())
}

#[test]
#[ignore = "needs libdevice of four releases, llvm: ./tests/run --all"]
fn heavy_libdevice_of_each_release_is_what_the_layers_have() -> Result<()> {
    let dir = scratch()?;
    let folder = dir.path();
    split(&RELEASES, folder)?;
    let names = RELEASES.map(|(release, _)| release);
    let layers = layers(&names, folder)?;
    let mut views = Views::new();
    for layer in &layers {
        layer.archive(folder)?;
    }
    for (at, name) in names.iter().enumerate() {
        views.push((
            *name,
            layers[at..].iter().map(|layer| &layer.name[..]).collect(),
        ));
    }
    build(folder, &views)?;
    let compared = compare(folder, &views)?;
    assert!(compared > 4 * 300, "{compared} symbols");
    Ok(())
}
