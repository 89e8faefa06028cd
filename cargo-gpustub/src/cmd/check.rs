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
use policies::{Policies, start};

/// Runs the command. Returns whether no finding is denied.
pub fn run(options: &cli::Check, shell: &mut Shell) -> Result<bool> {
    let options = &whole_workspace(options)?;
    let here =
        slashes(&std::env::current_dir().map_err(|e| Error::io("find", Path::new("."), &e))?);
    if options.fix {
        fix::run(options, &here, shell)?;
    }
    let (report, policies) = match options.paths.as_slice() {
        [] => workspace::check(options).map_err(or_files)?,
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
    let found = apply_policies(options, &here, &report, &policies);
    let mut sources = report.sources;
    sources.extend(policies.sources());
    shell.diagnostics(&found, &sources)?;
    // Human-readable lines, which the formats for programs omit.
    if shell.format() == MessageFormat::Human {
        if let Some(nothing) = &report.nothing {
            shell.note(nothing);
        }
        for skipped in &report.skipped {
            shell.status("Skipped", skipped);
        }
        shell.status("Checked", format!("{}: {}", report.what, count(&found)));
    }
    Ok(!has_errors(&found))
}

/// Selects all members at a workspace root, if no option selects packages. `default-members` are those that
/// cargo builds by default, not those that are right.
fn whole_workspace(options: &cli::Check) -> Result<cli::Check> {
    let mut options = options.clone();
    let packages = &options.cargo.workspace;
    let selects = !packages.package.is_empty() || !packages.exclude.is_empty();
    // A project in C may be below a directory with a workspace.
    let is_package = |options: &cli::Check| {
        Declared::without_package(&options.cargo).map(|declared| declared.is_none())
    };
    if options.paths.is_empty() && !selects && is_package(&options)? {
        options.cargo.workspace.workspace |= is_root(&start(&options.cargo)?)?;
    }
    Ok(options)
}

/// Suggests naming files if the current directory has no workspace.
fn or_files(error: Error) -> Error {
    match error.help.as_deref() {
        Some(NO_PACKAGE) => {
            let help = format!("{NO_PACKAGE}; or name programs, libraries, wheels or directories");
            error.help(help)
        }
        _ => error,
    }
}

/// `2 errors, 1 warning`.
fn count(found: &[Diagnostic]) -> String {
    let count = |level| found.iter().filter(|d| d.level == level).count();
    let parts: Vec<String> = [(Level::Error, "error"), (Level::Warning, "warning")]
        .into_iter()
        .filter(|(level, _)| count(*level) > 0)
        .map(|(level, name)| number(count(level), name))
        .collect();
    if parts.is_empty() {
        "nothing found".into()
    } else {
        parts.join(", ")
    }
}
