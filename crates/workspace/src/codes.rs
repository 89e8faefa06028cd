//! Diagnostics that only a cargo workspace can have; the others are in `gpustub-core`.

use gpustub_check::RULES;
use gpustub_core::code;
use gpustub_core::diag::{CODES, Code};
use gpustub_core::suggest::nearest;

/// A build script that `sync` cannot edit.
pub static UNEDITABLE_BUILD_SCRIPT: Code = code!(
    "uneditable-build-script",
    "build script that `sync` cannot edit"
);

/// A table in another file than the one it is read from.
pub static MISPLACED_TABLE: Code =
    code!("misplaced-table", "table that is not read from this file");

/// A library for C that is also a Rust crate, and so would be device-linked twice.
pub static MULTIPLE_FINALIZERS: Code = code!(
    "multiple-finalizers",
    "program with two device links of the same CUDA code"
);

/// CUDA code that only tests link.
pub static TEST_ONLY_DEVICE_CODE: Code = code!(
    "test-only-device-code",
    "CUDA code without a device link, linked by tests only"
);

/// A source file that several packages compile as the root of a target.
pub static SHARED_ROOT: Code = code!(
    "shared-root-file",
    "root file of two packages, of which one needs a `use` line"
);

/// A cargo feature that the package does not have.
pub static UNKNOWN_FEATURE: Code = code!(
    "unknown-feature",
    "required feature that the package does not have"
);

/// A policy for an unknown rule.
pub static UNKNOWN_RULE: Code = code!("unknown-rule", "policy for a rule that does not exist");

/// A library target that programs of the same package cannot link against.
pub static MISSING_RLIB: Code = code!(
    "missing-rlib",
    "library target that the package's programs cannot link"
);

/// Page of the book with the explanations, each below the code as its anchor.
const PAGE: &str = "https://gpustub.github.io/gpustub/reference/diagnostics.html";

/// URL of the JSON schema of `GpuStub.toml`, which editors read from its first line.
pub const SCHEMA: &str = "https://gpustub.github.io/gpustub/gpustub.schema.json";

/// URL of the explanation of a code.
pub fn url(code: &Code) -> String {
    format!("{PAGE}#{}", code.id)
}

/// Help for an id that is no rule: the code of another diagnostic, or misspelled. `more` are names that are accepted
/// in place of a rule.
pub fn unknown_rule_help(id: &str, more: &[&'static str]) -> String {
    if all_codes().iter().any(|code| code.id == id) {
        return format!(
            "`{id}` is the code of a diagnostic that is not a rule; only levels of rules can be configured"
        );
    }
    let rules = RULES.iter().map(|rule| rule.code.id);
    match nearest(id, rules.chain(more.iter().copied())) {
        Some(similar) => format!("did you mean `{similar}`?"),
        None => "`cargo gpustub explain --list` lists the rules".into(),
    }
}

/// All codes, sorted by id.
pub fn all_codes() -> Vec<&'static Code> {
    let mut codes = CODES.to_vec();
    codes.extend([
        &UNEDITABLE_BUILD_SCRIPT,
        &MISPLACED_TABLE,
        &MULTIPLE_FINALIZERS,
        &UNKNOWN_FEATURE,
        &UNKNOWN_RULE,
        &MISSING_RLIB,
        &SHARED_ROOT,
        &TEST_ONLY_DEVICE_CODE,
    ]);
    codes.extend(RULES.iter().map(|rule| &rule.code));
    codes.sort_by_key(|code| code.id);
    // Some rules are also diagnostics of other commands.
    codes.dedup_by_key(|code| code.id);
    codes
}

#[cfg(test)]
mod tests {
    #[test]
    fn ids_are_unique_and_texts_complete() {
        let codes = super::all_codes();
        assert!(codes.is_sorted_by(|a, b| a.id < b.id));
        for code in codes {
            assert!(!code.summary.ends_with('.'), "{}", code.id);
            assert!(
                code.explanation.contains("\n\n    "),
                "{}: no example",
                code.id
            );
        }
    }
}
