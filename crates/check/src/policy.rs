//! How seriously findings are taken: levels, and findings that are accepted.

use gpustub_core::diag::{Diagnostic, Level};
use gpustub_core::manifest::{Policy, RuleLevel};

use crate::rules::{RULES, Rule};

/// The findings as the policy has them: levels set, accepted ones left out.
pub fn apply(findings: Vec<Diagnostic>, policy: &Policy) -> Vec<Diagnostic> {
    let mut kept = Vec::new();
    for mut finding in findings {
        let Some(rule) = rule(finding.code.id) else {
            // Not a rule's: that something cannot be read is always an error.
            kept.push(finding);
            continue;
        };
        let level = policy
            .rules
            .get(rule.code.id)
            .map_or(rule.level, |l| l.value);
        finding.level = match level {
            RuleLevel::Allow => continue,
            RuleLevel::Warn => Level::Warning,
            RuleLevel::Deny => Level::Error,
        };
        kept.push(finding);
    }
    kept
}

/// The rule of this id.
pub fn rule(id: &str) -> Option<&'static Rule> {
    let index = RULES.binary_search_by(|rule| rule.code.id.cmp(id)).ok()?;
    Some(RULES[index])
}
