//! `cargo gpustub man`: manual pages, generated from the definition of the command line.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use clap::Command;
use gpustub_core::suggest::nearest;
use gpustub_workspace::display_path::slashes;
use gpustub_workspace::error::{Error, Result};
use gpustub_workspace::ops;
use gpustub_workspace::output::number;
use gpustub_workspace::shell::Shell;

use crate::cli;

/// Runs the command.
pub fn run(options: &cli::Man, shell: &mut Shell) -> Result<bool> {
    let tool = cli::command();
    let mut command = &tool;
    for name in &options.command {
        command = command.find_subcommand(name).ok_or_else(|| {
            let error = Error::new(format!("unknown command `{name}`"));
            let commands = command.get_subcommands().map(Command::get_name);
            match nearest(name, commands) {
                Some(command) => error.help(format!("did you mean `{command}`?")),
                None => error.help("`cargo gpustub --help` lists the commands"),
            }
        })?;
    }
    match &options.out_dir {
        None => shell.data(page(command, &options.command)?)?,
        Some(directory) => {
            let count = write_pages(command, &mut Vec::new(), directory)?;
            let pages = number(count, "manual page");
            shell.status("Created", format!("{}: {pages}", slashes(directory)));
        }
    }
    Ok(true)
}

/// Writes the pages of a command and of those below it, and returns their number.
fn write_pages(command: &Command, path: &mut Vec<String>, directory: &Path) -> Result<usize> {
    let names = std::iter::once("cargo-gpustub").chain(path.iter().map(String::as_str));
    let file = directory.join(Vec::from_iter(names).join("-") + ".1");
    let page = page(command, path)?;
    ops::write_large(&file, None, |out| out.write_all(&page))?;
    let mut count = 1;
    for subcommand in command.get_subcommands() {
        // `help` has a subcommand for each command, whose page says nothing.
        if !subcommand.is_hide_set() && subcommand.get_name() != "help" {
            path.push(subcommand.get_name().to_owned());
            count += write_pages(subcommand, path, directory)?;
            path.pop();
        }
    }
    Ok(count)
}

/// The page of a command. It contains the complete help, including the listing of commands.
fn page(command: &Command, path: &[String]) -> Result<Vec<u8>> {
    let mut name = "cargo-gpustub".to_owned();
    let mut usage = "cargo gpustub".to_owned();
    for subcommand in path {
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
    Ok(text)
}
