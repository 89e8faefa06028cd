//! The headers of the updates of a release, beside those of its last update, which the tables have.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use gpustub_core::version::Version;

use super::history::Evidence;
use super::recipes::{AbiRecipe, RECIPES};
use super::tests::components;
use crate::recipes::walk;

fn include_below(directory: &Path) -> Result<Vec<PathBuf>, String> {
    walk(directory, |path| path.is_dir() && path.ends_with("include"))
}

/// Functions that the headers of an update declare otherwise than those of the last update of the release.
fn changed_in_update(
    recipe: &AbiRecipe,
    components: &Path,
    release: Version,
    update: &Path,
) -> Result<BTreeSet<String>, String> {
    let headers = recipe.headers()?;
    let mut directories = recipe.includes(components, release)?;
    let last_update = recipe.declared(headers, &directories)?;
    let [include] = &include_below(update)?[..] else {
        return Err(format!("{}: not one include directory", update.display()));
    };
    directories[0].clone_from(include);
    let updates = [
        (0, recipe.declared(headers, &directories)?),
        (1, last_update),
    ];
    // Only the order of the two matters.
    let evidence = updates.map(|(minor, headers)| Evidence {
        version: Version::new(1, minor),
        own_version: None,
        headers,
        exports: None,
    });
    let mut changed = BTreeSet::new();
    for group in recipe.history(&evidence)?.table.groups {
        for (name, line) in group.names {
            if line.len() > 1 {
                changed.insert(name);
            }
        }
    }
    Ok(changed)
}

/// Functions that changed within a release, whose last update the table has. cuDNN 9.10.0 numbers the descriptors of
/// block scales and of device properties otherwise than all other releases. `docs/limits.md` names all.
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
    let (mut read, mut changed) = (BTreeSet::new(), Vec::new());
    for recipe in RECIPES.iter() {
        for &release in &recipe.versions {
            let last_update = recipe.directory(&components, release);
            let parent = last_update.parent().unwrap();
            let prefix = format!("{}.", last_update.file_name().unwrap().to_string_lossy());
            let mut names: Vec<String> = fs::read_dir(parent)
                .unwrap()
                .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
                .filter(|name| name.starts_with(&prefix))
                .collect();
            names.sort();
            for name in names {
                let update = parent.join(&name);
                for function in changed_in_update(recipe, &components, release, &update).unwrap() {
                    changed.push(format!("{name} {function}"));
                }
                read.insert(update);
            }
            read.insert(last_update);
        }
    }
    // `heavy_shipped_abi_tables_are_those_of_all_headers` reads the last updates. Those for
    // Windows are compiled by the tests of that system.
    for entry in fs::read_dir(components.join("headers")).unwrap() {
        let path = entry.unwrap().path();
        if path.to_string_lossy().ends_with("-windows") {
            continue;
        }
        assert!(read.contains(&path), "{} is not read", path.display());
    }
    assert_eq!(changed, CHANGED_IN_UPDATES);
}
