//! `cargo gpustub export`: stubs, device-linked libraries and the header of super-archives, for builds without cargo.

mod archive_header;
mod device_link;
mod install;
mod stubs;

use gpustub_workspace::error::Result;
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
