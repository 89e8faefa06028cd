//! `cargo gpustub export archive-header`: the C header that reads super-archives, with a pkg-config file and a CMake
//! package.

use std::path;

use gpustub_archive::C_FILES;
use gpustub_workspace::display_path::slashes;
use gpustub_workspace::error::{Error, Result};
use gpustub_workspace::ops::Operation;
use gpustub_workspace::shell::Shell;

use super::install::install;
use crate::cli;

/// Runs the command.
pub fn run(options: &cli::ExportArchiveHeader, shell: &mut Shell) -> Result<bool> {
    let Some(prefix) = options.prefix.as_ref().filter(|_| !options.list) else {
        shell.data(C_FILES.map(|(path, _)| format!("{path}\n")).concat())?;
        return Ok(true);
    };
    // pkg-config and CMake resolve relative directories below the project that uses them.
    let root = path::absolute(prefix).map_err(|e| Error::io("find", prefix, &e))?;
    let mut operations = Vec::new();
    for (name, text) in C_FILES {
        let path = root.join(name);
        let display_path = slashes(&path);
        operations.push(Operation::write(path, display_path, text)?);
    }
    install(operations, &root, shell)?;
    shell.note(format!(
        "next: `cc $(pkg-config --cflags gpustub-archive)` with PKG_CONFIG_PATH=\"{}\", or `find_package(gpustub-archive)`",
        slashes(&root.join("share/pkgconfig"))
    ));
    Ok(true)
}
