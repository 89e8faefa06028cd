//! Rules that the subcommand applies, since they need a plan or a comparison of files.

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
    code: Code {
        id: "missing-provider",
        summary: "required stubs without a provider",
        explanation: "\
A package with `provide = false` calls the library and requires the stubs from another package of
the same program. No other package among the dependencies of this image provides them: the
link fails, or a cdylib is linked with missing symbols. Declare the library in the package that
owns the image, or in one library below it.

    [stub.cudart]          # in the GpuStub.toml of the program",
    },
    level: RuleLevel::Warn,
    check: Check::Command,
};

/// An allowance without a finding.
pub static UNUSED_ALLOW: Rule = Rule {
    code: Code {
        id: "unused-allow",
        summary: "`[[policy.allow]]` without a finding",
        explanation: "\
`[[policy.allow]]` accepts findings of a rule in a path. This table matches no finding and would
hide a future one. Remove it, or run `cargo gpustub check --fix`. The rule applies only to tables
whose path the run checks: one for a file is reported when that file is checked.

    [[policy.allow]]
    rule = \"needed-driver\"                     # remove all four lines
    path = \"target/release/bench\"
    reason = \"benchmarks run on GPU machines only\"",
    },
    level: RuleLevel::Warn,
    check: Check::Command,
};
