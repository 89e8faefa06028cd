//! The lookup of functions by binding, compared with `dlsym` for every symbol of real libraries.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_tests::command::{run, succeed};
use gpustub_tests::components::component;
use gpustub_tests::scratch::scratch;
use gpustub_tests::{Result, repository};

/// Libraries with IFUNCs, old versions, thread-local data, weak and unique symbols.
const SYSTEM: &[&str] = &["libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1"];

/// Numbers of libraries that could be loaded, and of their symbols that were found without `dlsym`.
fn compare(libraries: impl IntoIterator<Item = PathBuf>) -> Result<(usize, u64)> {
    let dir = scratch()?;
    let program = dir.path().join("symbol-table");
    let mut command = Command::new("cc");
    for below in ["", "/os/unix"] {
        let includes = repository().join(format!("templates/runtime{below}"));
        command.arg("-I").arg(includes);
    }
    command.arg(repository().join("tests/programs/symbol-table.c"));
    succeed(command.arg("-o").arg(&program))?;
    let (mut loaded, mut direct) = (0, 0);
    for library in libraries {
        let ran = run(Command::new(&program).arg(&library))?.success()?;
        let Some((_, counts)) = ran.stdout.split_once(" symbols, ") else {
            continue; // needs libraries that this machine lacks
        };
        loaded += 1;
        direct += counts
            .split(' ')
            .next()
            .unwrap_or_default()
            .parse::<u64>()?;
    }
    println!("{loaded} libraries, {direct} symbols without dlsym");
    Ok((loaded, direct))
}

/// Shared libraries below a directory.
fn shared_libraries(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut libraries = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            libraries.extend(shared_libraries(&entry.path())?);
        } else if kind.is_file() && entry.file_name().to_string_lossy().contains(".so") {
            libraries.push(entry.path());
        }
    }
    libraries.sort();
    Ok(libraries)
}

#[test]
fn binding_finds_what_dlsym_finds_in_system_libraries() -> Result<()> {
    let mut libraries = Vec::new();
    for name in SYSTEM {
        let ran = succeed(Command::new("cc").arg(format!("-print-file-name={name}")))?;
        libraries.push(ran.stdout.trim().into());
    }
    let (loaded, direct) = compare(libraries)?;
    assert!(loaded == SYSTEM.len() && direct > 0, "{loaded}, {direct}");
    Ok(())
}

#[test]
#[ignore = "needs components: ./tests/run"]
fn binding_finds_what_dlsym_finds_in_gpu_libraries() -> Result<()> {
    let (loaded, direct) = compare(shared_libraries(&component("wheels")?)?)?;
    assert!(loaded > 0 && direct > 0, "{loaded}, {direct}");
    Ok(())
}
