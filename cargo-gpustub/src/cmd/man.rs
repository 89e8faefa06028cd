//! `cargo gpustub man`: manual pages, generated from the definition of the command line.

use std::fmt::Write;

use gpustub_core::suggest::nearest;
use gpustub_workspace::error::{Error, Result};
use gpustub_workspace::shell::Shell;

use crate::cli;

/// Runs the command.
pub fn run(options: &cli::Man, shell: &mut Shell) -> Result<bool> {
    let tool = cli::command();
    let mut command = &tool;
    for name in &options.command {
        command = command.find_subcommand(name).ok_or_else(|| {
            let error = Error::new(format!("unknown command `{name}`"));
            let commands = command.get_subcommands().map(clap::Command::get_name);
            match nearest(name, commands) {
                Some(command) => error.help(format!("did you mean `{command}`?")),
                None => error.help("`cargo gpustub --help` lists the commands"),
            }
        })?;
    }
    // A page contains the complete help, including the listing of commands.
    let mut name = "cargo-gpustub".to_owned();
    let mut usage = "cargo gpustub".to_owned();
    for subcommand in &options.command {
        let _ = write!(name, "-{subcommand}");
        let _ = write!(usage, " {subcommand}");
    }
    let title = name.to_uppercase();
    let page = command
        .clone()
        .name(name)
        .bin_name(usage)
        .disable_help_subcommand(true);
    let mut text = Vec::new();
    clap_mangen::Man::new(page)
        .title(title)
        .render(&mut text)
        .map_err(|error| Error::new(format!("could not write the manual page: {error}")))?;
    shell.data(text)?;
    Ok(true)
}
