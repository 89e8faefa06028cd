//! `cargo gpustub export`: stubs and device-linked libraries for builds without cargo.

mod device_link;
mod stubs;

use crate::cli::{Export, ExportCommand};
use crate::error::Result;
use crate::shell::Shell;

/// Runs the command.
pub fn run(options: &Export, shell: &mut Shell) -> Result<bool> {
    match &options.command {
        ExportCommand::Stubs(options) => stubs::run(options, shell),
        ExportCommand::DeviceLink(options) => device_link::run(options, shell),
    }
}
