//! Result of a check, before policies apply.

use gpustub_check::policy::CheckedScope;
use gpustub_core::diag::Diagnostic;
use gpustub_workspace::report::Sources;

/// Findings, and the checked items.
#[derive(Default)]
pub struct Report {
    pub findings: Vec<Diagnostic>,
    pub sources: Sources,
    pub scope: CheckedScope,
    /// Number of checked items: `3 files`.
    pub what: String,
    /// Checked items and their rules, for `--verbose`.
    pub details: Vec<String>,
    /// Reason why nothing was checked.
    pub nothing: Option<String>,
    /// Named files that no rule applies to.
    pub skipped: Vec<String>,
}
