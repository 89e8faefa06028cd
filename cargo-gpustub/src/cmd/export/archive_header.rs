//! `cargo gpustub export archive-header`: the C header that reads super-archives, with a pkg-config file and a CMake
//! package.

use std::path;

use gpustub_archive::C_FILES;
use gpustub_workspace::error::{Error, Result};
use gpustub_workspace::ops::Operation;
use gpustub_workspace::shell::Shell;

use super::install::install;
use crate::cli;

/// Runs the command.
pub fn run(options: &cli::ExportArchiveHeader, shell: &mut Shell) -> Result<bool> {
    let Some(prefix) = options.prefix.as_ref().filter(|_| !options.list) else {
        let lines = C_FILES.map(|(path, _)| format!("{path}\n"));
        shell.data(lines.concat())?;
        return Ok(true);
    };
    // pkg-config and CMake resolve relative directories below the project that uses them.
    let root = path::absolute(prefix).map_err(|e| Error::io("find", prefix, &e))?;
    let operations = C_FILES.map(|(path, text)| {
        let path = root.join(path);
        let shown = path.display().to_string();
        Operation::write(path, shown, text)
    });
    install(operations.into_iter().collect::<Result<_>>()?, &root, shell)?;
    shell.note(format!(
        "next: `cc $(pkg-config --cflags gpustub-archive)` with PKG_CONFIG_PATH=\"{}\", or `find_package(gpustub-archive)`",
        root.join("share/pkgconfig").display()
    ));
    Ok(true)
}
