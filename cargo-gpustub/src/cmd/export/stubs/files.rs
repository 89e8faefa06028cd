//! Files of an export.

use gpustub_core::diag::{Diagnostic, Level, UNSUPPORTED_TARGET};
use gpustub_core::target::{SUPPORTED, Target};
use gpustub_workspace::display_path::slashes;
use gpustub_workspace::error::Result;
use gpustub_workspace::ops::{self, Operation};
use gpustub_workspace::shell::Shell;

use crate::cli;

/// The files below `--out-dir`.
pub struct Files<'a> {
    pub options: &'a cli::ExportStubs,
    pub operations: Vec<Operation>,
}

impl Files<'_> {
    pub fn add(&mut self, path: &str, bytes: &[u8]) -> Result<()> {
        let path = self.options.out_dir.join(path);
        let display_path = slashes(&path);
        self.operations
            .push(Operation::write(path, display_path, bytes)?);
        Ok(())
    }

    /// Writes and removes the files that need it.
    pub fn write(&mut self, shell: &mut Shell) -> Result<()> {
        let out = slashes(&self.options.out_dir);
        self.operations.retain(|operation| !operation.is_done());
        ops::apply(&self.operations, |operation| {
            if operation.removes() {
                shell.status(operation.verb(), &operation.display_path);
            } else {
                shell.detail(operation.verb(), &operation.display_path);
            }
        })?;
        let written_count = self
            .operations
            .iter()
            .filter(|operation| !operation.removes())
            .count();
        match written_count {
            0 => shell.status("Fresh", &out),
            1 => shell.status("Generated", format!("1 file in {out}")),
            count => shell.status("Generated", format!("{count} files in {out}")),
        }
        Ok(())
    }
}

/// File name of the archive that linkers take for this `-l` name: `link` and `lld-link` read `<name>.lib`.
pub fn archive_name(target: &Target, link_name: &str) -> String {
    match target.env.as_str() {
        "msvc" => format!("{link_name}.lib"),
        _ => format!("lib{link_name}.a"),
    }
}

/// Makes missing support of the target an error: a package builds without stubs where there can be none, but an
/// export without stubs is useless.
pub fn refuse_target(diagnostics: &mut [Diagnostic]) {
    for diagnostic in diagnostics {
        if diagnostic.code.id == UNSUPPORTED_TARGET.id {
            diagnostic.level = Level::Error;
            diagnostic.help = Some(format!("supported are {}", SUPPORTED.join(", ")));
        }
    }
}
