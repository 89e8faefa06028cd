//! `cargo gpustub archive`: super-archives.

mod build;
mod extract;
mod find;
mod list;
mod open;
mod stats;

use std::io;
use std::path::Path;

use gpustub_core::diag::{Diagnostic, MALFORMED_SUPER_ARCHIVE};
use gpustub_engine::archive::replace;
use gpustub_workspace::error::{Error, Result};
use gpustub_workspace::output::number;
use gpustub_workspace::report::Sources;
use gpustub_workspace::shell::Shell;

use crate::cli::{Archive, ArchiveCommand};
use open::with_archive;

/// Runs the command.
pub fn run(options: &Archive, shell: &mut Shell) -> Result<bool> {
    match &options.command {
        ArchiveCommand::Build(options) => build::run(options, shell),
        ArchiveCommand::List(options) => with_archive(&options.file, shell, |all, shell| {
            list::run(all, options, shell)
        }),
        ArchiveCommand::Nm(options) => with_archive(&options.file, shell, |all, shell| {
            list::symbols(all, options, shell)
        }),
        ArchiveCommand::Find(options) => with_archive(&options.file, shell, |all, shell| {
            find::run(all, options, shell)
        }),
        ArchiveCommand::Extract(options) => with_archive(&options.file, shell, |all, shell| {
            extract::run(all, options, shell)
        }),
        ArchiveCommand::Stats(options) => with_archive(&options.file, shell, |all, shell| {
            stats::run(all, options, shell)
        }),
        ArchiveCommand::Refresh(options) => refresh(&options.file, shell),
        ArchiveCommand::Verify(options) => with_archive(&options.file, shell, |all, shell| {
            all.verify()?;
            let (views, contents) = (all.view_count(), all.contents_count());
            let shown = options.file.display();
            let what = format!(
                "{shown}: {}, {contents} distinct contents",
                number(views, "view")
            );
            shell.status("Verified", what);
            Ok(true)
        }),
    }
}

/// Updates the tables for stripped members.
fn refresh(path: &Path, shell: &mut Shell) -> Result<bool> {
    let mut bytes = std::fs::read(path).map_err(|e| Error::io("read", path, &e))?;
    let shown = path.display();
    match gpustub_superarchive::refresh(&mut bytes) {
        Ok(changed) => {
            let content = |out: &mut dyn io::Write| out.write_all(&bytes);
            let written = replace(path, &content).map_err(|e| Error::io("write", path, &e))?;
            let what = format!("{shown}: {}", number(changed, "changed member"));
            shell.status(if written { "Refreshed" } else { "Fresh" }, what);
            Ok(true)
        }
        Err(error) => {
            let message = format!("`{shown}` cannot be refreshed: {error}");
            let one = Diagnostic::error(&MALFORMED_SUPER_ARCHIVE, message);
            let one =
                one.help("names, order and symbols of members must be as before: build it again");
            shell.diagnostics(&[one], &Sources::new())?;
            Ok(false)
        }
    }
}
