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
    let mut engine = PolicyEngine::new(policies.layers(), &overrides, here, today);
    let mut found = engine.apply(report.findings.clone());
    let unused = engine.unused(&report.scope);
    let unused = unused.iter().map(|unused| {
        let rule = &unused.allow.rule;
        let message = format!("no finding of `{}` to allow", rule.value);
        Diagnostic::warning(&UNUSED_ALLOW.code, message)
            .with_origin(unused.file, rule.span.clone())
            .help("remove the allowance")
    });
    found.extend(engine.apply(unused.collect()));
    found.extend(policies.mistakes());
    once(sorted(found))
}

/// Removes duplicate findings: every reader of an unreadable file reports it, and a file may be named
/// twice.
fn once(mut found: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let mut seen = HashSet::new();
    found.retain(|one| {
        let origin = one.origin.as_ref();
        let place = origin.map(|origin| (origin.display().into_owned(), origin.span.clone()));
        seen.insert((one.code.id, place, one.message.clone()))
    });
    found
}

/// The current date in UTC; 1970-01-01 if the clock is not set, so that no allowance has expired.
fn today() -> Date {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    Date::after_1970(since.map_or(0, |since| since.as_secs() / (24 * 60 * 60)))
}
