//! Diagnostics that only a cargo workspace can have; the others are in `gpustub-core`.

use gpustub_check::RULES;
use gpustub_core::diag::{CODES, Code};
use gpustub_core::suggest::nearest;

/// A build script that `sync` cannot edit.
pub static UNEDITABLE_BUILD_SCRIPT: Code = Code {
    id: "uneditable-build-script",
    summary: "build script that `sync` cannot edit",
    explanation: "\
The stubs are compiled by one call in the package's build script. `sync` adds that line to
`fn main()`. If the file has no such function, or Cargo.toml disables the build script, add the line
by hand.

    fn main() {
        gpustub_build::build();
    }",
};

/// A table in another file than the one it is read from.
pub static MISPLACED_TABLE: Code = Code {
    id: "misplaced-table",
    summary: "table that is not read from this file",
    explanation: "\
Each package declares its stubs in the GpuStub.toml beside its own Cargo.toml, which is packaged
with it. The workspace has one `[toolkit]`, in the file at its root. If no
package is at the root, that file contains only `[toolkit]` and `[policy]`.

    [stub.cudart]          # in member/GpuStub.toml
    [toolkit]              # in GpuStub.toml at the root of the workspace",
};

/// A library for C that is also a Rust crate, and so would be device-linked twice.
pub static MULTIPLE_FINALIZERS: Code = Code {
    id: "multiple-finalizers",
    summary: "program with two device links of the same CUDA code",
    explanation: "\
A library for C (`cdylib`, `staticlib`) has its own device link. A Rust program that links the
same package as a crate would contain that one in addition to its own, and the linker rejects the
second definition of the kernels' registration. The same happens if a package has a finalizer and
calls `gpustub_build::finalize()` in its build script.

    [lib]                  # in a separate package, around the crate
    crate-type = [\"cdylib\"]",
};

/// CUDA code that only tests link.
pub static TEST_ONLY_DEVICE_CODE: Code = Code {
    id: "test-only-device-code",
    summary: "CUDA code without a device link, linked by tests only",
    explanation: "\
A package has one finalizer. If its tests link more CUDA code than its programs, the single device
link would either lack code of the tests or contain code that the programs do not link. Make the
library an ordinary dependency.

    [dependencies]         # not in [dev-dependencies]
    geometry = { path = \"../geometry\" }",
};

/// A source file that several packages compile as the root of a target.
pub static SHARED_ROOT: Code = Code {
    id: "shared-root-file",
    summary: "root file of two packages, of which one needs a `use` line",
    explanation: "\
A program of a package with a library gets the stubs, or the device link of its CUDA code, by naming a
crate: `sync` adds `use <crate> as _;` to the root file of the program. If the file is also the root
of a program of another package, which does not depend on that crate, one of the two would not
compile. Write a root file for each package and include the shared code.

    // src/main.rs of each package
    include!(\"../../common/main.rs\");",
};

/// A cargo feature that the package does not have.
pub static UNKNOWN_FEATURE: Code = Code {
    id: "unknown-feature",
    summary: "required feature that the package does not have",
    explanation: "\
A table takes effect when all features of its `required-features` are enabled. The package's
Cargo.toml has no feature of that name, so the table would never take effect.

    [features]             # in Cargo.toml
    nvrtc = []",
};

/// A policy for an unknown rule.
pub static UNKNOWN_RULE: Code = Code {
    id: "unknown-rule",
    summary: "policy for a rule that does not exist",
    explanation: "\
`[policy]` sets the levels of rules of `cargo gpustub check`, and allows their findings, by the id
that messages show in brackets. No rule has this id, so the line would have no effect.
Diagnostics that are not rules, such as `missing-header-version` or a file that cannot be read, have no
level that a policy could change.

    [policy.rules]
    needed-toolkit = \"deny\"       # error[needed-toolkit]: …",
};

/// A library target that programs of the same package cannot link against.
pub static MISSING_RLIB: Code = Code {
    id: "missing-rlib",
    summary: "library target that the package's programs cannot link",
    explanation: "\
Cargo passes the libraries of a build script to the package's library target, and programs, examples
and tests link them through that target. Rust code cannot link a target that is only a cdylib or
staticlib, so the programs would have no stubs. Add `rlib`.

    [lib]
    crate-type = [\"rlib\", \"cdylib\"]",
};

/// Help for an id that is no rule: the code of another diagnostic, or misspelled. `more` are names that are accepted
/// in place of a rule.
pub fn unknown_rule_help(id: &str, more: &[&'static str]) -> String {
    if all().iter().any(|code| code.id == id) {
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
pub fn all() -> Vec<&'static Code> {
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
        let codes = super::all();
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
