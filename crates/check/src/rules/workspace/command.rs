//! Rules that the subcommand applies, since they need a plan or a comparison of files.

use gpustub_core::code;
use gpustub_core::diag::{self, Code};
use gpustub_core::manifest::RuleLevel;

use crate::rule::{Check, Rule};

/// A rule that shares its code with a diagnostic of other commands.
const fn row(code: &'static Code, level: RuleLevel) -> Rule {
    Rule {
        code: Code {
            id: code.id,
            summary: code.summary,
            explanation: code.explanation,
        },
        level,
        check: Check::Command,
    }
}

/// Files that do not agree with `GpuStub.toml`.
pub static OUT_OF_SYNC: Rule = row(&diag::OUT_OF_SYNC, RuleLevel::Deny);
pub static INCOMPATIBLE_STUBS: Rule = row(&diag::INCOMPATIBLE_STUBS, RuleLevel::Deny);
pub static HEADER_VERSION_MISMATCH: Rule = row(&diag::HEADER_VERSION_MISMATCH, RuleLevel::Warn);
pub static DYLIB_CRATE: Rule = row(&diag::DYLIB_CRATE, RuleLevel::Deny);

/// Required stubs that no package provides.
pub static MISSING_PROVIDER: Rule = Rule {
    code: code!("missing-provider", "required stubs without a provider"),
    level: RuleLevel::Warn,
    check: Check::Command,
};

/// An allowance without a finding.
pub static UNUSED_ALLOW: Rule = Rule {
    code: code!("unused-allow", "`[[policy.allow]]` without a finding"),
    level: RuleLevel::Warn,
    check: Check::Command,
};
