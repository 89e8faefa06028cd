//! `manifests/*.symbols`, from the real packages of several versions.
//!
//! The packages are unpacked below one folder, by `tests/run --all --components-only` into
//! `target/components`:
//!
//! ```text
//! wheels/cudart-12.9/nvidia/…/lib/libcudart.so.12      and …/include/cuda.h
//! wheels/nvrtc-12.9/nvidia/…/lib/libnvrtc.so.12
//! driver-535/libcuda.so.1
//! hip-6.4/libamdhip64.so.6
//! ```
//!
//! libOpenCL and HIP 5.2 are those that are installed. The tables beside the lists (`*.toml`) are
//! written by hand.

pub mod diff;
mod header;
mod merge;

use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_core::symbols::SymbolList;
use gpustub_core::version::Version;
use gpustub_object::{Options, read_symbols_file};

use merge::Evidence;

/// A list, and what it is made from.
struct Recipe {
    id: &'static str,
    /// What the list says of its sources, a line each.
    comment: &'static [&'static str],
    /// Versions, ascending.
    sources: &'static [(Version, Source)],
}

/// Where the functions of one version are read.
enum Source {
    /// A file whose name starts with this, somewhere below a folder of the components.
    Component(&'static str, &'static str),
    /// A library that is installed.
    Installed(&'static str),
    /// The functions that `cuda.h` below a folder of the components declares.
    CudaHeader(&'static str),
}

use Source::{Component, CudaHeader, Installed};

const fn version(major: u32, minor: u32) -> Version {
    Version::new(major, minor)
}

const RECIPES: &[Recipe] = &[
    Recipe {
        id: "cuda",
        comment: &[
            "12.2 and 12.4: exports of NVIDIA's drivers 535 and 550. No later driver is to be had without",
            "a GPU: from 12.9 on, what the driver before exports (none ever dropped a function) and what",
            "the toolkit's cuda.h declares.",
        ],
        sources: &[
            (version(12, 2), Component("driver-535", "libcuda.so.1")),
            (version(12, 4), Component("driver-550", "libcuda.so.1")),
            (version(12, 9), CudaHeader("wheels/cudart-12.9")),
            (version(13, 0), CudaHeader("wheels/cudart-13.0")),
            (version(13, 5), CudaHeader("wheels/cudart-13.5")),
        ],
    },
    Recipe {
        id: "cudart",
        comment: &["Exports of libcudart in NVIDIA's wheels."],
        sources: &[
            (
                version(11, 8),
                Component("wheels/cudart-11.8", "libcudart.so."),
            ),
            (
                version(12, 9),
                Component("wheels/cudart-12.9", "libcudart.so."),
            ),
            (
                version(13, 0),
                Component("wheels/cudart-13.0", "libcudart.so."),
            ),
            (
                version(13, 5),
                Component("wheels/cudart-13.5", "libcudart.so."),
            ),
        ],
    },
    Recipe {
        id: "hip",
        comment: &["Exports of libamdhip64 in Debian's packages libamdhip64-5 and libamdhip64-6."],
        sources: &[
            (version(5, 2), Installed("libamdhip64.so.5")),
            (version(6, 4), Component("hip-6.4", "libamdhip64.so.6")),
        ],
    },
    Recipe {
        id: "nvrtc",
        comment: &["Exports of libnvrtc in NVIDIA's wheels."],
        sources: &[
            (
                version(11, 8),
                Component("wheels/nvrtc-11.8", "libnvrtc.so."),
            ),
            (
                version(12, 9),
                Component("wheels/nvrtc-12.9", "libnvrtc.so."),
            ),
            (
                version(13, 0),
                Component("wheels/nvrtc-13.0", "libnvrtc.so."),
            ),
            (
                version(13, 5),
                Component("wheels/nvrtc-13.5", "libnvrtc.so."),
            ),
        ],
    },
    Recipe {
        id: "opencl",
        comment: &["Exports of Debian's ocl-icd-libopencl1: the functions of OpenCL 3.0."],
        sources: &[(version(3, 0), Installed("libOpenCL.so.1"))],
    },
];

/// Reads `[--check] [--components DIR]`: whether to compare only, and the folder of the packages.
pub fn arguments(task: &str, arguments: &[String]) -> Result<(bool, PathBuf), String> {
    let mut check = false;
    let mut components = None;
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--check" => check = true,
            "--components" => {
                components = Some(rest.next().ok_or("`--components` takes a folder")?.into());
            }
            other => return Err(format!("`{task}` does not know `{other}`")),
        }
    }
    let components = components.unwrap_or_else(|| root().join("target/components"));
    Ok((check, components))
}

/// `cargo xtask manifests`.
pub fn run(arguments: &[String]) -> Result<bool, String> {
    let (check, components) = self::arguments("manifests", arguments)?;
    let root = root();
    let mut same = true;
    for recipe in RECIPES {
        let path = root
            .join("manifests")
            .join(recipe.id)
            .with_extension("symbols");
        let text = generate(recipe, &components)?;
        if check {
            let old =
                std::fs::read_to_string(&path).map_err(|e| format!("`{}`: {e}", path.display()))?;
            let changes = diff::lines(&old, &text);
            if !changes.is_empty() {
                print!(
                    "--- manifests/{}.symbols\n+++ regenerated\n{changes}",
                    recipe.id
                );
                same = false;
            }
        } else {
            std::fs::write(&path, text).map_err(|e| format!("`{}`: {e}", path.display()))?;
        }
    }
    Ok(same)
}

/// The repository's root.
pub fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

fn generate(recipe: &Recipe, components: &Path) -> Result<String, String> {
    let mut versions = Vec::new();
    for (version, source) in recipe.sources {
        let evidence = match source {
            Component(folder, file) => {
                Evidence::Exports(read(&find(&components.join(folder), file)?)?)
            }
            Installed(file) => Evidence::Exports(read(&installed(file)?)?),
            CudaHeader(folder) => {
                let header = find(&components.join(folder), "cuda.h")?;
                Evidence::Declared(header::functions(&header)?)
            }
        };
        versions.push((*version, evidence));
    }
    let text = merge::merge(versions).to_text();
    let (format, rest) = text.split_once('\n').unwrap_or((&text, ""));
    let comment: String = recipe
        .comment
        .iter()
        .map(|line| format!("# {line}\n"))
        .collect();
    Ok(format!("{format}\n{comment}{rest}"))
}

pub fn read(library: &Path) -> Result<SymbolList, String> {
    read_symbols_file(library, Options::default())
        .map_err(|error| format!("{error}\n  help: {}", error.help()))
}

/// The first file, by path, whose name starts with `prefix`, below `folder`.
pub fn find(folder: &Path, prefix: &str) -> Result<PathBuf, String> {
    let mut folders = vec![folder.to_owned()];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).map_err(|e| {
            format!(
                "`{}`: {e}\n  help: `tests/run --all --components-only` unpacks the packages",
                folder.display()
            )
        })?;
        for entry in entries {
            let path = entry
                .map_err(|e| format!("`{}`: {e}", folder.display()))?
                .path();
            if path.is_dir() && !path.is_symlink() {
                folders.push(path);
            } else if path
                .file_name()
                .is_some_and(|n| n.to_string_lossy().starts_with(prefix))
            {
                found.push(path);
            }
        }
    }
    found.sort();
    let first = found.into_iter().next();
    first.ok_or_else(|| format!("there is no `{prefix}…` below `{}`", folder.display()))
}

/// Where the C compiler finds a library.
fn installed(file: &str) -> Result<PathBuf, String> {
    let output = Command::new("cc")
        .arg(format!("-print-file-name={file}"))
        .output()
        .map_err(|e| format!("`cc`: {e}"))?;
    let path = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim_end());
    if path.is_absolute() {
        return Ok(path);
    }
    Err(format!(
        "`{file}` is not installed\n  help: `tests/run --components-only` installs it"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One of its sources is in a suite that moves on (`tests/components/moving.list`).
    const MOVING: &str = "hip";

    #[test]
    fn recipes_are_in_order() {
        assert!(RECIPES.is_sorted_by_key(|recipe| recipe.id));
        for recipe in RECIPES {
            assert!(
                recipe.sources.is_sorted_by_key(|(version, _)| *version),
                "{}",
                recipe.id
            );
        }
        let ids: Vec<_> = RECIPES.iter().map(|recipe| recipe.id).collect();
        let shipped: Vec<_> = gpustub_core::library::Library::builtin_ids().collect();
        assert_eq!(ids, shipped, "every shipped list has a recipe");
    }

    /// The list is what its sources say. `GPUSTUB_TEST_COMPONENTS` names their folder.
    #[expect(
        clippy::disallowed_methods,
        reason = "the test says where the packages are"
    )]
    fn agrees(recipe: &Recipe) {
        let folder = std::env::var("GPUSTUB_TEST_COMPONENTS")
            .expect("GPUSTUB_TEST_COMPONENTS names the folder of unpacked packages");
        let path = root()
            .join("manifests")
            .join(recipe.id)
            .with_extension("symbols");
        let shipped = std::fs::read_to_string(&path).unwrap();
        let text = generate(recipe, folder.as_ref()).unwrap();
        let changes = diff::lines(&shipped, &text);
        assert!(
            changes.is_empty(),
            "`cargo xtask manifests` changes {}:\n{changes}",
            recipe.id
        );
    }

    #[test]
    #[ignore = "needs the real packages: ./tests/run"]
    fn shipped_lists_are_those_of_the_real_packages() {
        RECIPES
            .iter()
            .filter(|recipe| recipe.id != MOVING)
            .for_each(agrees);
    }

    #[test]
    #[ignore = "needs a package that may be gone: ./tests/run --all"]
    fn heavy_shipped_list_of_moving_packages_is_theirs() {
        RECIPES
            .iter()
            .filter(|recipe| recipe.id == MOVING)
            .for_each(agrees);
    }
}
