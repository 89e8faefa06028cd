//! Commands of READMEs, and the outputs that they show.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cargo::{program, without_own_cargo};
use crate::command::{path_with, succeed};
use crate::components::target_dir;
use crate::{Result, repository};

/// Commands in the `console` blocks of a page of this repository, with the output lines shown for
/// each.
pub fn commands(page: &str) -> Result<Vec<(String, Vec<String>)>> {
    let text = fs::read_to_string(repository().join(page)).map_err(|e| format!("{page}: {e}"))?;
    let blocks = text.split("```console\n").skip(1);
    let lines = blocks
        .filter_map(|rest| rest.split("```").next())
        .flat_map(str::lines);
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    for line in lines {
        match (line.strip_prefix("$ "), found.last_mut()) {
            (Some(command), _) => found.push((command.to_owned(), Vec::new())),
            (None, Some((_, output))) => output.push(line.to_owned()),
            (None, None) => return Err(format!("no command printed {line:?}").into()),
        }
    }
    Ok(found)
}

/// Copies an example below a directory whose name has a space, with `links` relative paths out of it. Its
/// dependencies are compiled once.
pub fn copy_example(name: &str, links: usize, directory: &Path) -> Result<PathBuf> {
    let root = directory.join("the example");
    let mut copy = Command::new("cp");
    copy.arg("-r").arg(repository().join("examples").join(name));
    succeed(copy.arg(&root))?;
    // Without outputs of an earlier build in the source directory.
    let _ = fs::remove_dir_all(root.join("target"));
    let text = fs::read_to_string(root.join("Cargo.toml"))?;
    let here = format!("{}/", repository().display());
    assert_eq!(text.matches("../../").count(), links);
    fs::write(root.join("Cargo.toml"), text.replace("../../", &here))?;
    let target = target_dir().join(format!("example-{name}"));
    let _ = fs::remove_dir_all(target.join("debug/build"));
    fs::create_dir_all(&target)?;
    symlink(&target, root.join("target"))?;
    Ok(root)
}

/// Runs commands one after another in a directory: each prints exactly the lines shown. Exported
/// variables are set for the commands that follow.
pub fn shows(
    commands: &[(String, Vec<String>)],
    directory: &Path,
    variables: &[(&str, &str)],
) -> Result<()> {
    let subcommand = program("cargo-gpustub")?;
    let path = path_with(subcommand.parent().unwrap_or(&subcommand))?;
    let mut exports = String::new();
    for (command, expected) in commands {
        let line = command.replace("cargo gpustub", "cargo-gpustub gpustub");
        let mut bash = Command::new("bash");
        without_own_cargo(bash.current_dir(directory));
        bash.args(["-c", &format!("exec 2>&1; {exports}{line}")]);
        bash.env("PATH", &path).envs(variables.iter().copied());
        let ran = succeed(&mut bash)?;
        let printed: Vec<&str> = ran.stdout.lines().collect();
        assert_eq!(&printed, expected, "{command}");
        if line.starts_with("export ") {
            exports += &format!("{line}; ");
        }
    }
    Ok(())
}
