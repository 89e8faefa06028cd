//! Policies and the command line, applied to findings.

use std::collections::HashSet;
use std::time::{SystemTime, UNIX_EPOCH};

use gpustub_check::policy::{Overrides, PolicyEngine};
use gpustub_check::{UNUSED_ALLOW, sorted};
use gpustub_core::date::Date;
use gpustub_core::diag::Diagnostic;

use super::policies::Policies;
use super::report::Report;
use crate::cli;

/// Applies the policies and the levels of the command line to the findings, and sorts them.
pub fn apply_policies(
    options: &cli::Check,
    current_dir: &str,
    report: &Report,
    policies: &Policies,
) -> Vec<Diagnostic> {
    let overrides = Overrides {
        allow: options.levels.allow.clone(),
        warn: options.levels.warn.clone(),
        deny: options.levels.deny.clone(),
    };
    let today = options.today.unwrap_or_else(today);
    let mut engine = PolicyEngine::new(policies.layers(), &overrides, current_dir, today);
    let mut diagnostics = engine.apply(report.findings.clone());
    let mut unused_allowances = Vec::new();
    for unused in engine.unused(&report.scope) {
        let rule = &unused.allow.rule;
        let message = format!("no finding of `{}` to allow", rule.value);
        unused_allowances.push(
            Diagnostic::warning(&UNUSED_ALLOW.code, message)
                .with_origin(unused.file, rule.span.clone())
                .help("remove the allowance"),
        );
    }
    diagnostics.extend(engine.apply(unused_allowances));
    diagnostics.extend(policies.errors());
    remove_duplicates(sorted(diagnostics))
}

/// Removes duplicate findings: every reader of an unreadable file reports it, and a file may be named
/// twice.
fn remove_duplicates(mut diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let mut known = HashSet::new();
    diagnostics.retain(|diagnostic| {
        let location = diagnostic
            .origin
            .as_ref()
            .map(|origin| (origin.display().into_owned(), origin.span.clone()));
        known.insert((diagnostic.code.id, location, diagnostic.message.clone()))
    });
    diagnostics
}

/// The current date in UTC; 1970-01-01 if the clock is not set, so that no allowance has expired.
fn today() -> Date {
    let unix_time = SystemTime::now().duration_since(UNIX_EPOCH);
    Date::after_1970(unix_time.map_or(0, |time| time.as_secs() / (24 * 60 * 60)))
}
