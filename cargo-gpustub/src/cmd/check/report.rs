//! Result of a check, before policies apply.

use gpustub_check::policy::CheckedScope;
use gpustub_check::{Check, RULES};
use gpustub_core::diag::Diagnostic;
use gpustub_workspace::report::Sources;

/// Findings, and the checked items.
#[derive(Default)]
pub struct Report {
    pub findings: Vec<Diagnostic>,
    pub sources: Sources,
    pub scope: CheckedScope,
    /// The checked files or packages: `3 files`, or the path of a file.
    pub subject: String,
    /// Checked items and their rules, for `--verbose`.
    pub details: Vec<String>,
    /// Reason why nothing was checked.
    pub unchecked_reason: Option<String>,
    /// Named files that no rule applies to.
    pub skipped: Vec<String>,
}

/// Ids of the rules whose check is of some scope.
pub fn rule_ids(is_of_scope: fn(&Check) -> bool) -> String {
    let ids: Vec<&str> = RULES
        .iter()
        .filter(|rule| is_of_scope(&rule.check))
        .map(|rule| rule.code.id)
        .collect();
    ids.join(", ")
}
