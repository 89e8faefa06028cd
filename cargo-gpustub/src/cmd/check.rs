//! `cargo gpustub check`: what would keep a program from starting where it was meant to.

mod facts;
mod files;
mod fix;
mod policies;
mod workspace;

use std::collections::HashSet;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use gpustub_check::policy::{Overrides, PolicyEngine, Scope};
use gpustub_check::{UNUSED_ALLOW, sorted};
use gpustub_core::date::Date;
use gpustub_core::diag::{Diagnostic, Level, has_errors};
use gpustub_report::error::{Error, Result};
use gpustub_report::output::MessageFormat;
use gpustub_report::report::Sources;
use gpustub_report::shell::Shell;
use gpustub_workspace::workspace::NO_PACKAGE;

use crate::cli;

use policies::Policies;

/// What was looked at, and what there is to say of it.
#[derive(Default)]
struct Report {
    findings: Vec<Diagnostic>,
    sources: Sources,
    looked: Scope,
    /// For people: `3 files`.
    what: String,
    /// For those who asked for more: which rules looked at what.
    details: Vec<String>,
    /// For people: files that were named, or may load elsewhere, and that no rule looks at.
    skipped: Vec<String>,
}

/// Runs the command. Clean is: nothing that a rule denies.
pub fn run(options: &cli::Check, shell: &mut Shell) -> Result<bool> {
    let here =
        slashes(&std::env::current_dir().map_err(|e| Error::io("find", Path::new("."), &e))?);
    if options.fix {
        fix::run(options, &here, shell)?;
    }
    let (report, policies) = match options.paths.as_slice() {
        [] => workspace::look(options).map_err(or_files)?,
        _ => {
            let policies = Policies::nearby(&options.cargo)?;
            (files::look(&options.paths, &policies), policies)
        }
    };
    for detail in &report.details {
        shell.detail("Checking", detail);
    }
    let found = judged(options, &here, &report, &policies);
    let mut sources = report.sources;
    sources.extend(policies.sources());
    shell.diagnostics(&found, &sources)?;
    // Lines for people, that the formats for programs have no place for.
    if shell.format() == MessageFormat::Human {
        for skipped in &report.skipped {
            shell.status("Skipped", skipped);
        }
        shell.status("Checked", format!("{}: {}", report.what, count(&found)));
    }
    Ok(!has_errors(&found))
}

/// Who has no workspace may have come for files.
fn or_files(error: Error) -> Error {
    match error.help.as_deref() {
        Some(NO_PACKAGE) => {
            let help = format!("{NO_PACKAGE}; or name programs, libraries, wheels or directories");
            error.help(help)
        }
        _ => error,
    }
}

/// The findings as the policies and the command line have them, sorted.
fn judged(
    options: &cli::Check,
    here: &str,
    report: &Report,
    policies: &Policies,
) -> Vec<Diagnostic> {
    let overrides = Overrides {
        allow: options.levels.allow.clone(),
        warn: options.levels.warn.clone(),
        deny: options.levels.deny.clone(),
    };
    let today = options.today.unwrap_or_else(today);
    let mut judge = PolicyEngine::new(policies.layers(), &overrides, here, today);
    let mut found = judge.apply(report.findings.clone());
    let unused = judge.unused(&report.looked);
    let unused = unused.iter().map(|unused| {
        let rule = &unused.allow.rule;
        let message = format!("no finding of `{}` to allow", rule.value);
        Diagnostic::warning(&UNUSED_ALLOW.code, message)
            .at(unused.file, rule.span.clone())
            .help("remove the allowance")
    });
    found.extend(judge.apply(unused.collect()));
    found.extend(policies.mistakes());
    once(sorted(found))
}

/// Each finding once: what is wrong with a file that cannot be read is told by all who need it, and a
/// file may be named twice.
fn once(mut found: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let mut seen = HashSet::new();
    found.retain(|one| {
        let origin = one.origin.as_ref();
        let place = origin.map(|origin| (origin.file.clone(), origin.span.clone()));
        seen.insert((one.code.id, place, one.message.clone()))
    });
    found
}

/// The day in UTC. A clock before 1970 has not been set; then nothing has ended.
fn today() -> Date {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    Date::after_1970(since.map_or(0, |since| since.as_secs() / (24 * 60 * 60)))
}

/// `2 errors, 1 warning`.
fn count(found: &[Diagnostic]) -> String {
    let of = |level| found.iter().filter(|d| d.level == level).count();
    let parts: Vec<String> = [(Level::Error, "error"), (Level::Warning, "warning")]
        .into_iter()
        .filter(|(level, _)| of(*level) > 0)
        .map(|(level, name)| number(of(level), name))
        .collect();
    match parts.is_empty() {
        true => "nothing found".into(),
        false => parts.join(", "),
    }
}

/// `1 file`, `2 files`.
fn number(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn slashes(path: &Path) -> String {
    let text = path.display().to_string();
    if cfg!(windows) {
        text.replace('\\', "/")
    } else {
        text
    }
}
