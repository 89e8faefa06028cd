//! `cargo gpustub check`: what would keep a program from starting where it was meant to.

use std::path::Path;

use gpustub_check::{check, policy, read};
use gpustub_core::diag::{Diagnostic, FILE_ERROR, has_errors};
use gpustub_core::manifest::Policy;

use crate::cli;
use crate::error::{Error, Result};
use crate::report::Sources;
use crate::shell::Shell;

/// Runs the command. Clean is: nothing that a rule denies.
pub fn run(options: &cli::Check, shell: &mut Shell) -> Result<bool> {
    let policy = Policy::default();
    let mut found = Vec::new();
    for path in &options.paths {
        found.extend(look_at(path, &policy));
    }
    let found = policy::apply(found, &policy);
    shell.diagnostics(&found, &Sources::new())?;
    Ok(!has_errors(&found))
}

fn look_at(path: &Path, policy: &Policy) -> Vec<Diagnostic> {
    match read::read(path, &path.display().to_string()) {
        Ok(package) => check(&package, policy),
        Err(error) => {
            let message = Error::io("read", path, &error).to_string();
            vec![Diagnostic::error(&FILE_ERROR, message)]
        }
    }
}
