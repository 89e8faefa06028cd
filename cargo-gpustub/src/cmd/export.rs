//! `cargo gpustub export`: stubs and device-linked libraries for builds without cargo.

mod device_link;
mod stubs;

use gpustub_report::error::Result;
use gpustub_report::shell::Shell;

use crate::cli::{Export, ExportCommand};

/// Runs the command.
pub fn run(options: &Export, shell: &mut Shell) -> Result<bool> {
    match &options.command {
        ExportCommand::Stubs(options) => stubs::run(options, shell),
        ExportCommand::DeviceLink(options) => device_link::run(options, shell),
    }
}
