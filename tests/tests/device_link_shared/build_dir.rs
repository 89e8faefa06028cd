//! Cargo's `build.build-dir`: what build scripts write is outside of the target directory, and cargo does not let the
//! loader search there.

use std::fs;
use std::path::Path;
use std::process::Command;

use gpustub_tests::Result;
use gpustub_tests::command::{run, succeed};
use gpustub_tests::scratch::scratch;

use crate::{Project, Record, TRIPLE, alone, expect};

/// Cargo with a target directory of its own beside the build directory of the other tests.
fn cargo(project: &Project, target: &Path, words: &[&str]) -> Command {
    let mut command = project.cargo_into(target, words);
    command.env("CARGO_BUILD_BUILD_DIR", project.target());
    command
}

/// The workspace, whose build scripts run again, without the links of an earlier run.
fn project() -> Result<Project> {
    let project = Project::new("workspace", "workspace")?;
    let deps = project.target().join(TRIPLE).join("debug/deps");
    for entry in fs::read_dir(deps).into_iter().flatten() {
        let entry = entry?;
        if entry.file_type()?.is_symlink() {
            fs::remove_file(entry.path())?;
        }
    }
    project.sync()?;
    Ok(project)
}

/// With and without a build script of the program's package (`one`, `behind`), and with a device link over two
/// libraries (`many`); tests in `src` and in `tests`, an example and a documentation test.
#[test]
#[ignore = "needs nvcc: ./tests/run"]
fn programs_tests_and_examples_find_shared_libraries() -> Result<()> {
    let _alone = alone();
    let project = project()?;
    let dir = scratch()?;
    let target = dir.path().join("target");
    let r#final = Record::new("libarea_final.so", &["area", "base"], &["area"]);
    let own_link = Record::new("many", &["area", "base", "volume"], &["area", "volume"]);
    for (words, expected) in [
        (&["-p", "one"][..], &r#final),
        (&["-p", "behind"], &r#final),
        (&["-p", "behind", "--example", "shown"], &r#final),
        (&["-p", "many"], &own_link),
    ] {
        let words = [&["run", "--quiet"], words].concat();
        expect(run(&mut cargo(&project, &target, &words))?, expected)?;
    }
    assert!(target.join(TRIPLE).join("debug/one").is_file());
    let words = ["test", "--quiet", "-p", "one", "-p", "area", "-p", "behind"];
    succeed(&mut cargo(&project, &target, &words))?;
    Ok(())
}
