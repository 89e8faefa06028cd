//! `cargo gpustub export device-link` of headers alone, which need no compiler.

use std::fs;

use gpustub_tests::Result;
use gpustub_tests::command::{Ran, succeed};
use gpustub_tests::rdc::{Library, Project};

/// Prefix below a directory outside the workspace's members.
const PREFIX: &str = "extra/out put";

fn install(project: &Project) -> Result<Ran> {
    succeed(&mut project.gpustub(&["export", "device-link", "-p", "b", "--prefix", PREFIX])?)
}

/// The next step works in a shell in any directory. Users would still find a stale header and
/// include it.
#[test]
fn export_prints_the_absolute_path_and_stale_files() -> Result<()> {
    let project = Project::headers_alone()?;
    project.library(Library::new("b", &[]))?;
    let table = "schema = 1\n\n[device-link.b]\ninclude-dirs = [\"include\"]\n";
    project.write("b/GpuStub.toml", table)?;
    project.write("b/src/lib.rs", "//! Headers alone.\n")?;
    for name in ["b", "old"] {
        project.write(&format!("b/include/{name}.cuh"), "#pragma once\n")?;
    }
    let first = install(&project)?.stderr;
    let prefix = project.root().canonicalize()?.join(PREFIX);
    assert!(prefix.join("include/b/old.cuh").is_file());
    let next = format!("-DCMAKE_PREFIX_PATH=\"{}\"", prefix.display());
    assert!(first.contains(&next), "{first}");
    assert!(!first.contains("earlier"), "{first}");
    fs::remove_file(project.root().join("b/include/old.cuh"))?;
    let second = install(&project)?.stderr;
    let warning = "stale files from an earlier export: include/b/old.cuh\n";
    assert!(second.contains(warning), "{second}");
    Ok(())
}
