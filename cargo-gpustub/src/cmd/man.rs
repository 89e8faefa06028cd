//! `cargo gpustub man`: manual pages, generated from the definition of the command line.

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
            let known = command.get_subcommands().map(|one| one.get_name());
            let error = Error::new(format!("unknown command `{name}`"));
            match nearest(name, known) {
                Some(near) => error.help(format!("did you mean `{near}`?")),
                None => error.help("`cargo gpustub --help` lists the commands"),
            }
        })?;
    }
    // A page contains the complete help, including the listing of commands.
    let name = std::iter::once("cargo-gpustub").chain(options.command.iter().map(String::as_str));
    let name = name.collect::<Vec<_>>().join("-");
    let usage = std::iter::once("cargo gpustub").chain(options.command.iter().map(String::as_str));
    let usage = usage.collect::<Vec<_>>().join(" ");
    let page = command
        .clone()
        .name(name)
        .bin_name(usage)
        .disable_help_subcommand(true);
    let mut text = Vec::new();
    clap_mangen::Man::new(page)
        .title(
            options
                .command
                .iter()
                .fold("CARGO-GPUSTUB".to_owned(), |title, name| {
                    format!("{title}-{}", name.to_uppercase())
                }),
        )
        .render(&mut text)
        .map_err(|e| Error::new(format!("could not write the manual page: {e}")))?;
    shell.data(text)?;
    Ok(true)
}
