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
use gpustub_workspace::display_path::slashes;
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
        ArchiveCommand::List(options) => with_archive(&options.file, shell, |archive, shell| {
            list::run(archive, options, shell)
        }),
        ArchiveCommand::Nm(options) => with_archive(&options.file, shell, |archive, shell| {
            list::symbols(archive, options, shell)
        }),
        ArchiveCommand::Find(options) => with_archive(&options.file, shell, |archive, shell| {
            find::run(archive, options, shell)
        }),
        ArchiveCommand::Extract(options) => with_archive(&options.file, shell, |archive, shell| {
            extract::run(archive, options, shell)
        }),
        ArchiveCommand::Stats(options) => with_archive(&options.file, shell, |archive, shell| {
            stats::run(archive, options, shell)
        }),
        ArchiveCommand::Refresh(options) => refresh(&options.file, shell),
        ArchiveCommand::Verify(options) => with_archive(&options.file, shell, |archive, shell| {
            gpustub_superarchive::verify(archive)?;
            let summary = format!(
                "{}: {}, {} distinct contents",
                slashes(&options.file),
                number(archive.view_count(), "view"),
                archive.contents_count()
            );
            shell.status("Verified", summary);
            Ok(true)
        }),
    }
}

/// Updates the tables for stripped members.
fn refresh(path: &Path, shell: &mut Shell) -> Result<bool> {
    let mut bytes = std::fs::read(path).map_err(|e| Error::io("read", path, &e))?;
    match gpustub_superarchive::refresh(&mut bytes) {
        Ok(changed_count) => {
            let is_written = replace(path, &|out: &mut dyn io::Write| out.write_all(&bytes))
                .map_err(|e| Error::io("write", path, &e))?;
            let verb = if is_written { "Refreshed" } else { "Fresh" };
            let members = number(changed_count, "changed member");
            shell.status(verb, format!("{}: {members}", slashes(path)));
            Ok(true)
        }
        Err(error) => {
            let message = format!("`{}` cannot be refreshed: {error}", slashes(path));
            let diagnostic = Diagnostic::error(&MALFORMED_SUPER_ARCHIVE, message)
                .help("names, order and symbols of members must be as before: build it again");
            shell.diagnostics(&[diagnostic], &Sources::new())?;
            Ok(false)
        }
    }
}
