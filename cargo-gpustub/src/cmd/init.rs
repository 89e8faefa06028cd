//! `cargo gpustub init`: creates a `GpuStub.toml`.

use gpustub_workspace::display_path::display_path;
use gpustub_workspace::edit::gpustub_toml;
use gpustub_workspace::error::{Error, Result};
use gpustub_workspace::ops::{self, Operation};
use gpustub_workspace::shell::Shell;
use gpustub_workspace::tables::FILE;
use gpustub_workspace::workspace::{Depth, Workspace, directory};

use crate::cli;

/// Runs the command.
pub fn run(options: &cli::Init, shell: &mut Shell) -> Result<bool> {
    let workspace = Workspace::load(&options.cargo, Depth::Members)?;
    let package = workspace.selected_package(|_| true)?;
    let path = directory(package).join(FILE);
    let display_path = display_path(&path);
    if path.exists() {
        return Err(Error::new(format!("`{display_path}` already exists"))
            .help("add libraries to it with `cargo gpustub add <library>`"));
    }
    let operation = Operation::write(path, display_path, gpustub_toml::new())?;
    ops::apply(&[operation], |operation| {
        shell.status(operation.verb(), &operation.display_path)
    })?;
    shell.note("next: `cargo gpustub add <library>`");
    Ok(true)
}
