//! clang reads the headers of every version among the components as C.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use gpustub_cdecl::{Clang, Headers};
use gpustub_core::version::Version;

use super::history::Evidence;
use super::recipes::{RECIPES, Recipe, STAND_INS};
use super::tests::components;
use crate::recipes::{root, walk};

/// Runtime whose headers those of libraries include that are numbered otherwise than the toolkit.
const RUNTIME: &str = "12.9";

fn include_below(directory: &Path) -> Result<Vec<PathBuf>, String> {
    walk(directory, |path| path.is_dir() && path.ends_with("include"))
}

/// Number of functions that the headers of a version declare, in the component `headers/NAME`.
fn declared(components: &Path, library: &str, name: &str, version: &str) -> Result<usize, String> {
    let headers = Headers::for_library(library).ok_or("libraries.toml lacks it")?;
    let release: Vec<&str> = version.splitn(3, '.').take(2).collect();
    let runtime = |version: &str| components.join(format!("wheels/cudart-{version}"));
    let own = Some(runtime(&release.join("."))).filter(|path| path.is_dir());
    let mut directories = vec![
        components.join("headers").join(name),
        own.unwrap_or_else(|| runtime(RUNTIME)),
    ];
    if library == "cusolver" {
        let others = ["cublas", "cusparse"];
        directories.extend(
            others.map(|id| components.join(format!("headers/{id}-{}", release.join(".")))),
        );
    }
    let mut clang = Clang::new("clang");
    for directory in directories {
        for include in include_below(&directory)? {
            clang = clang.directory(include);
        }
    }
    let clang = clang
        .directory(STAND_INS)
        .directory(root().join("xtask/include"));
    let prefix = library.to_lowercase();
    // nvJitLink's functions are `__nvJitLinkCreate_12_0` and so on.
    let wanted = |name: &str| {
        name.trim_start_matches('_')
            .to_lowercase()
            .starts_with(&prefix)
    };
    let read = headers.read(&clang, &wanted);
    Ok(read.map_err(|e| e.to_string())?.functions.len())
}

#[test]
#[ignore = "needs the headers of all versions: tests/run --all"]
#[expect(
    clippy::disallowed_methods,
    reason = "the test says where the packages are"
)]
fn heavy_headers_of_every_version_are_c() {
    let components = std::env::var_os("GPUSTUB_TEST_COMPONENTS")
        .expect("GPUSTUB_TEST_COMPONENTS names the directory of unpacked packages");
    let components = Path::new(&components);
    let mut failures = Vec::new();
    let mut names: Vec<String> = fs::read_dir(components.join("headers"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert!(!names.is_empty());
    for name in names {
        let (library, version) = name.split_once('-').unwrap();
        let also = (library == "cublas").then_some("cublaslt");
        for id in [library].into_iter().chain(also) {
            match declared(components, id, &name, version) {
                Ok(count) => println!("{id} {version}: {count} functions"),
                Err(error) => failures.push(format!("{id} {version}: {error}")),
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Functions that the headers of an update declare otherwise than those of the last update of the release.
fn changed_in_update(
    recipe: &Recipe,
    components: &Path,
    release: Version,
    update: &Path,
) -> Result<BTreeSet<String>, String> {
    let headers = recipe.headers()?;
    let mut directories = recipe.includes(components, release)?;
    let last = recipe.declared(headers, &directories)?;
    let [include] = &include_below(update)?[..] else {
        return Err(format!("{}: not one include directory", update.display()));
    };
    directories[0].clone_from(include);
    let evidence = [(0, recipe.declared(headers, &directories)?), (1, last)];
    // Only the order of the two matters.
    let evidence = evidence.map(|(minor, headers)| Evidence {
        version: Version::new(1, minor),
        own: None,
        headers,
        exports: None,
    });
    let groups = recipe.history(&evidence)?.table.groups;
    let changed = groups.iter().flat_map(|group| &group.names);
    let changed = changed.filter(|(_, line)| line.len() > 1);
    Ok(changed.map(|(name, _)| name.clone()).collect())
}

/// Functions that changed within a release, whose last update the table has. cuDNN 9.10.0 numbers the descriptors of
/// block scales and of device properties otherwise than all other releases. The known gaps of CHANGELOG.md name all.
const CHANGED_IN_UPDATES: [&str; 8] = [
    "cudnn-9.10.0 cudnnBackendCreateDescriptor",
    "cusparse-13.1.0 cusparseSpMVOp_createDescr",
    "nvml-12.2.128 nvmlDeviceGetComputeRunningProcesses_v3",
    "nvml-12.2.128 nvmlDeviceGetGraphicsRunningProcesses_v3",
    "nvml-12.2.128 nvmlDeviceGetMPSComputeRunningProcesses_v3",
    "nvml-12.2.81 nvmlDeviceGetComputeRunningProcesses_v3",
    "nvml-12.2.81 nvmlDeviceGetGraphicsRunningProcesses_v3",
    "nvml-12.2.81 nvmlDeviceGetMPSComputeRunningProcesses_v3",
];

#[test]
#[ignore = "needs the headers of all versions: tests/run --all"]
fn heavy_updates_of_a_release_declare_the_same_functions() {
    let components = components();
    let (mut updates, mut changed) = (0, Vec::new());
    for recipe in RECIPES.iter() {
        for &release in &recipe.versions {
            let last = recipe.directory(&components, release);
            let parent = last.parent().unwrap();
            let start = format!("{}.", last.file_name().unwrap().to_string_lossy());
            let mut names: Vec<String> = fs::read_dir(parent)
                .unwrap()
                .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
                .filter(|name| name.starts_with(&start))
                .collect();
            names.sort();
            for name in names {
                let update = parent.join(&name);
                let found = changed_in_update(recipe, &components, release, &update).unwrap();
                changed.extend(
                    found
                        .into_iter()
                        .map(|function| format!("{name} {function}")),
                );
                updates += 1;
            }
        }
    }
    assert!(updates > 40, "{updates}");
    assert_eq!(changed, CHANGED_IN_UPDATES);
}
