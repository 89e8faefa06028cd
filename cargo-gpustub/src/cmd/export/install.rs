//! Files below a prefix.

use std::path::Path;

use gpustub_workspace::display_path::slashes;
use gpustub_workspace::error::Result;
use gpustub_workspace::ops::{self, Operation};
use gpustub_workspace::shell::Shell;

/// Writes the files of a prefix that differ from the existing ones.
pub fn install(mut operations: Vec<Operation>, prefix: &Path, shell: &mut Shell) -> Result<()> {
    operations.retain(|operation| !operation.is_done());
    ops::apply(&operations, |operation| {
        shell.detail(operation.verb(), &operation.display_path);
    })?;
    let prefix = slashes(prefix);
    match operations.len() {
        0 => shell.status("Fresh", &prefix),
        1 => shell.status("Installed", format!("1 file in {prefix}")),
        count => shell.status("Installed", format!("{count} files in {prefix}")),
    }
    Ok(())
}
