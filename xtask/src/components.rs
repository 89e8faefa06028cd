//! Components: whether they are there, and their installation.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::recipes::root;

/// Modes of `tests/components/install`, each with its lists.
pub const LISTS: [(&str, &[&str]); 4] = [
    (
        "--default",
        &["wheels.list", "wheel-headers.list", "debs.list"],
    ),
    (
        "--large",
        &["wheels-all.list", "debs-all.list", "toolkits.list"],
    ),
    ("--moving", &["moving.list", "moving-sources.list"]),
    ("--headers", &["wheel-headers-all.list", "headers-all.list"]),
];

/// Component of a directory, which a recipe may name below it: `wheels/NAME` and `headers/NAME`, else the first part.
pub fn component(directory: &str) -> String {
    let is_group = directory.starts_with("wheels/") || directory.starts_with("headers/");
    let parts: Vec<&str> = directory
        .split('/')
        .take(1 + usize::from(is_group))
        .collect();
    parts.join("/")
}

/// Whether the components are there. Without them, a library that was requested by name is an error; others are
/// skipped, and reported.
pub fn are_there(
    id: &str,
    needed: &BTreeSet<String>,
    directory: &Path,
    is_requested: bool,
) -> Result<bool, String> {
    let missing: Vec<&str> = needed
        .iter()
        .filter(|component| !directory.join(component).is_dir())
        .map(String::as_str)
        .collect();
    if missing.is_empty() {
        return Ok(true);
    }
    let message = format!("`{}` lacks {}", directory.display(), missing.join(", "));
    let help = format!("`cargo xtask library {id}` installs what `{id}` needs");
    if is_requested {
        return Err(format!("{message}\n  help: {help}"));
    }
    eprintln!("skipped {id}: {message}; {help}");
    Ok(false)
}

/// Installs the components that are missing below `directory`, as `tests/components/*.list` name them.
pub fn install(needed: &BTreeSet<String>, directory: &Path) -> Result<(), String> {
    let components = root().join("tests/components");
    let mut unlisted: BTreeSet<String> = needed
        .iter()
        .filter(|component| !directory.join(component).is_dir())
        .cloned()
        .collect();
    let needed = unlisted.clone();
    for (mode, files) in LISTS {
        let lists = tempfile::tempdir().map_err(|e| format!("temporary directory: {e}"))?;
        let mut is_needed = false;
        for file in files {
            let path = components.join(file);
            let text =
                fs::read_to_string(&path).map_err(|e| format!("`{}`: {e}", path.display()))?;
            let lines = entries(&text, &needed);
            is_needed |= !lines.is_empty();
            for line in &lines {
                unlisted.remove(line.split_whitespace().next().unwrap_or_default());
            }
            fs::write(lists.path().join(file), lines.join("\n") + "\n")
                .map_err(|e| format!("{file}: {e}"))?;
        }
        if !is_needed {
            continue;
        }
        fs::create_dir_all(directory).map_err(|e| format!("`{}`: {e}", directory.display()))?;
        let status = Command::new(components.join("install"))
            .arg(directory)
            .arg(mode)
            .arg(lists.path())
            .status()
            .map_err(|e| format!("tests/components/install: {e}"))?;
        if !status.success() {
            return Err(format!("tests/components/install {mode}: {status}"));
        }
    }
    match unlisted.first() {
        None => Ok(()),
        Some(component) => Err(unlisted_error(component)),
    }
}

/// The error for a component that no list has, with the line to add.
fn unlisted_error(component: &str) -> String {
    let (line, list) = match component.split_once('/') {
        Some(("headers", _)) => ("REQUIREMENT", "wheel-headers.list"),
        Some(("wheels", _)) => ("REQUIREMENT", "wheels.list"),
        _ => ("SUITE  PACKAGE", "debs.list"),
    };
    format!(
        "no list of tests/components has `{component}`\n  help: add the line `{component}  {line}` to \
         tests/components/{list}"
    )
}

/// Lines of a list for these components.
pub fn entries<'t>(text: &'t str, needed: &BTreeSet<String>) -> Vec<&'t str> {
    text.lines()
        .filter(|line| {
            let name = line.split_whitespace().next().unwrap_or_default();
            needed.contains(name)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_below_its_component() {
        for (directory, expected) in [
            ("toolkit-11.8/nvvm", "toolkit-11.8"),
            ("wheels/cudart-11.8", "wheels/cudart-11.8"),
            ("headers/nccl-2.13/x", "headers/nccl-2.13"),
            ("hip-5.2", "hip-5.2"),
        ] {
            assert_eq!(component(directory), expected);
        }
    }

    #[test]
    fn missing_components_are_named_with_the_command_that_installs_them() {
        let directory = tempfile::tempdir().unwrap();
        let needed = BTreeSet::from(["acme-1".to_owned()]);
        assert_eq!(
            are_there("acme", &needed, directory.path(), false),
            Ok(false)
        );
        let error = are_there("acme", &needed, directory.path(), true).unwrap_err();
        assert!(
            error.ends_with(
                "lacks acme-1\n  help: `cargo xtask library acme` installs what `acme` needs"
            ),
            "{error}"
        );
        fs::create_dir(directory.path().join("acme-1")).unwrap();
        assert_eq!(are_there("acme", &needed, directory.path(), true), Ok(true));
    }

    #[test]
    fn unlisted_components_are_errors() {
        let directory = tempfile::tempdir().unwrap();
        for (component, line) in [
            (
                "no-such-1",
                "no-such-1  SUITE  PACKAGE` to tests/components/debs.list",
            ),
            (
                "wheels/no",
                "wheels/no  REQUIREMENT` to tests/components/wheels.list",
            ),
            (
                "headers/no",
                "headers/no  REQUIREMENT` to tests/components/wheel-headers.list",
            ),
        ] {
            let needed = BTreeSet::from([component.to_owned()]);
            let error = install(&needed, directory.path()).unwrap_err();
            let start = format!("no list of tests/components has `{component}`\n");
            assert!(
                error.starts_with(&start) && error.ends_with(line),
                "{error}"
            );
        }
    }
}
