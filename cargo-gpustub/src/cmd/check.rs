//! `cargo gpustub check`: faults that keep a program from starting on other machines.

mod apply;
mod build_scripts;
mod files;
mod fix;
mod policies;
mod report;
mod workspace;

use std::path::Path;

use gpustub_core::diag::{Diagnostic, Level, has_errors};
use gpustub_workspace::directories::is_root;
use gpustub_workspace::display_path::slashes;
use gpustub_workspace::error::{Error, Result};
use gpustub_workspace::output::MessageFormat;
use gpustub_workspace::output::number;
use gpustub_workspace::shell::Shell;
use gpustub_workspace::tables::Declared;
use gpustub_workspace::workspace::NO_PACKAGE;

use crate::cli;

use apply::apply_policies;
use policies::{Policies, start_directory};

/// Runs the command. Returns whether no finding is denied.
pub fn run(options: &cli::Check, shell: &mut Shell) -> Result<bool> {
    let options = &whole_workspace(options)?;
    let current_dir = std::env::current_dir()
        .map_err(|error| Error::io("find", Path::new("."), &error))
        .map(|directory| slashes(&directory))?;
    if options.fix {
        fix::run(options, &current_dir, shell)?;
    }
    let (report, policies) = match options.paths.as_slice() {
        [] => workspace::check(options, shell).map_err(suggest_files)?,
        _ => {
            let policies = Policies::nearby(&options.cargo)?;
            let status = shell.status_line("Checking");
            let report = files::check_paths(&options.paths, &policies, &status)?;
            (report, policies)
        }
    };
    for detail in &report.details {
        shell.detail("Checking", detail);
    }
    let diagnostics = apply_policies(options, &current_dir, &report, &policies);
    let mut sources = report.sources;
    sources.extend(policies.sources());
    shell.diagnostics(&diagnostics, &sources)?;
    // Human-readable lines, which the formats for programs omit.
    if shell.format() == MessageFormat::Human {
        if let Some(reason) = &report.unchecked_reason {
            shell.note(reason);
        }
        for file in &report.skipped {
            shell.status("Skipped", file);
        }
        shell.status(
            "Checked",
            format!("{}: {}", report.subject, summary(&diagnostics)),
        );
    }
    Ok(!has_errors(&diagnostics))
}

/// Selects all members at a workspace root, if no option selects packages. `default-members` are those that
/// cargo builds by default, not those that are right.
fn whole_workspace(options: &cli::Check) -> Result<cli::Check> {
    let mut options = options.clone();
    let packages = &options.cargo.workspace;
    let selects_packages = !packages.package.is_empty() || !packages.exclude.is_empty();
    // A project in C may be below a directory with a workspace.
    if options.paths.is_empty()
        && !selects_packages
        && Declared::without_package(&options.cargo)?.is_none()
    {
        options.cargo.workspace.workspace |= is_root(&start_directory(&options.cargo)?)?;
    }
    Ok(options)
}

/// Suggests naming files if the current directory has no workspace.
fn suggest_files(error: Error) -> Error {
    match error.help.as_deref() {
        Some(NO_PACKAGE) => {
            let help = format!("{NO_PACKAGE}; or name programs, libraries, wheels or directories");
            error.help(help)
        }
        _ => error,
    }
}

/// `2 errors, 1 warning`.
fn summary(diagnostics: &[Diagnostic]) -> String {
    let mut counts = Vec::new();
    for (level, name) in [(Level::Error, "error"), (Level::Warning, "warning")] {
        let count = diagnostics
            .iter()
            .filter(|diagnostic| diagnostic.level == level)
            .count();
        if count > 0 {
            counts.push(number(count, name));
        }
    }
    if counts.is_empty() {
        "nothing found".into()
    } else {
        counts.join(", ")
    }
}
