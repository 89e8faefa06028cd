//! `cargo gpustub export`: stubs, device-linked libraries and the header of super-archives, for builds without cargo.

mod archive_header;
mod device_link;
mod stubs;

use std::path::Path;

use gpustub_workspace::error::Result;
use gpustub_workspace::ops::{self, Operation};
use gpustub_workspace::shell::Shell;

use crate::cli::{Export, ExportCommand};

/// Runs the command.
pub fn run(options: &Export, shell: &mut Shell) -> Result<bool> {
    match &options.command {
        ExportCommand::Stubs(options) => stubs::run(options, shell),
        ExportCommand::DeviceLink(options) => device_link::run(options, shell),
        ExportCommand::ArchiveHeader(options) => archive_header::run(options, shell),
    }
}

/// Writes the files of a prefix that differ from the existing ones.
fn install(mut operations: Vec<Operation>, prefix: &Path, shell: &mut Shell) -> Result<()> {
    operations.retain(|operation| !operation.is_done());
    ops::apply(&operations, |o| shell.detail(o.verb(), &o.shown))?;
    let prefix = prefix.display();
    match operations.len() {
        0 => shell.status("Fresh", prefix.to_string()),
        1 => shell.status("Installed", format!("1 file in {prefix}")),
        n => shell.status("Installed", format!("{n} files in {prefix}")),
    }
    Ok(())
}
