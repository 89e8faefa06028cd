//! Paths of the real components that `tests/run` installs.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Result, repository};

/// Variable that names the directory of the components.
pub const VARIABLE: &str = "GPUSTUB_TEST_COMPONENTS";

/// Cargo's target directory, which contains this test.
pub fn target_dir() -> PathBuf {
    let executable = std::env::current_exe().expect("a test knows its own path");
    executable
        .ancestors()
        .find(|dir| dir.join("CACHEDIR.TAG").is_file())
        .map_or_else(|| repository().join("target"), Path::to_owned)
}

/// Lists of components that `tests/run` installs with `--all` only.
const HEAVY_LISTS: [&str; 8] = [
    "debs-all.list",
    "headers-all.list",
    "moving.list",
    "moving-trees.list",
    "toolkits.list",
    "trees-all.list",
    "wheel-headers-all.list",
    "wheels-all.list",
];

/// The list of `--all` that has a component, if the calling test is not `heavy_`: a machine that has every component hides
/// that another one lacks it. The test harness names threads by their tests.
fn only_for_heavy_tests(path: &str) -> Result<Option<&'static str>> {
    let thread = std::thread::current();
    let is_plain_test = thread
        .name()
        .is_some_and(|name| name != "main" && !name.contains("heavy_"));
    if !is_plain_test {
        return Ok(None);
    }
    for list in HEAVY_LISTS {
        let list_path = repository().join("tests/components").join(list);
        let text = std::fs::read_to_string(&list_path)
            .map_err(|e| format!("{}: {e}", list_path.display()))?;
        let is_listed = text
            .lines()
            .filter_map(|line| line.split_whitespace().next())
            .any(|name| Path::new(path).starts_with(name));
        if is_listed {
            return Ok(Some(list));
        }
    }
    Ok(None)
}

/// Path of a file or directory below the components' directory. An error says how to install it.
pub fn component(path: &str) -> Result<PathBuf> {
    if let Some(list) = only_for_heavy_tests(path)? {
        return Err(format!(
            "{path} is in tests/components/{list}, which only `heavy_` tests may use"
        )
        .into());
    }
    let root = std::env::var_os(VARIABLE)
        .map_or_else(|| repository().join("target/components"), PathBuf::from);
    let path = root.join(path);
    if path.exists() {
        return Ok(path);
    }
    Err(format!(
        "{} is missing: ./tests/run --all --components-only puts it in place",
        path.display()
    )
    .into())
}

/// Directory of a wheel's shared libraries: its only directory named `lib`, below `nvidia` or, as in `cutensor/lib`, not.
pub fn wheel_libraries(name: &str) -> Result<PathBuf> {
    let wheel = component(&format!("wheels/{name}"))?;
    let nvidia = wheel.join("nvidia");
    let packages = if nvidia.is_dir() { nvidia } else { wheel };
    let libraries: Vec<PathBuf> = std::fs::read_dir(&packages)
        .map_err(|e| format!("{}: {e}", packages.display()))?
        .filter_map(|directory| Some(directory.ok()?.path().join("lib")))
        .filter(|lib| lib.is_dir())
        .collect();
    match &libraries[..] {
        [lib] => Ok(lib.clone()),
        _ => Err(format!(
            "{} contains {} lib directories, not 1",
            packages.display(),
            libraries.len()
        )
        .into()),
    }
}

/// Directory of a wheel's shared libraries below site-packages: `nvidia/cu13/lib`.
pub fn wheel_library_dir(name: &str) -> Result<PathBuf> {
    let wheel = component(&format!("wheels/{name}"))?;
    Ok(wheel_libraries(name)?.strip_prefix(wheel)?.to_owned())
}

/// The only file or directory in a directory.
pub fn only_entry(directory: &Path) -> Result<PathBuf> {
    let entries = std::fs::read_dir(directory)
        .map_err(|e| format!("{}: {e}", directory.display()))?
        .collect::<Result<Vec<_>, _>>()?;
    match &entries[..] {
        [entry] => Ok(entry.path()),
        _ => Err(format!(
            "{} contains {} files, not 1",
            directory.display(),
            entries.len()
        )
        .into()),
    }
}

/// auditwheel, a Python package.
pub fn auditwheel(words: &[&str]) -> Result<Command> {
    let mut python = Command::new("python3");
    python.env("PYTHONPATH", component("auditwheel")?);
    python.args(["-m", "auditwheel"]).args(words);
    Ok(python)
}
