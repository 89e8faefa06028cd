//! The kinds of diagnostics that need a cargo workspace to be found; the others are in
//! `gpustub-core`.

use gpustub_core::diag::{CODES, Code};

/// A build script that `sync` cannot edit.
pub static UNEDITABLE_BUILD_SCRIPT: Code = Code {
    id: "uneditable-build-script",
    summary: "a build script that `sync` cannot edit",
    explanation: "\
The stubs are compiled by one call in the package's build script. `sync` adds that line to
`fn main()`; where it finds no such function, or the package has no build script by choice, the
line is yours to add.

    fn main() {
        gpustub_build::build();
    }",
};

/// A table in the file of another folder than where it is read.
pub static MISPLACED_TABLE: Code = Code {
    id: "misplaced-table",
    summary: "a table that is not read where its file stands",
    explanation: "\
Each package declares its stubs in the GpuStub.toml beside its own Cargo.toml, which is packaged
with it. `[toolkit]` is one for the whole workspace and stands in the file at its root. Where no
package is at the root, the file there holds that and `[policy]` only.

    [stub.cudart]          # in member/GpuStub.toml
    [toolkit]              # in GpuStub.toml at the root of the workspace",
};

/// A library for C that is a Rust crate, too, and so would be device-linked twice.
pub static MULTIPLE_FINALIZERS: Code = Code {
    id: "multiple-finalizers",
    summary: "a program that would hold two device links of the same CUDA code",
    explanation: "\
A library for C (`cdylib`, `staticlib`) has a device link of its own. A Rust program that links the
same package as a crate would get that one besides its own, and the linker refuses the second
definition of the kernels' registration. So it is with a package that has a finalizer and calls
`gpustub_build::finalize()` in its build script.

    [lib]                  # in a package of its own, around the crate
    crate-type = [\"cdylib\"]",
};

/// CUDA code that a device link cannot be over.
pub static TEST_ONLY_DEVICE_CODE: Code = Code {
    id: "test-only-device-code",
    summary: "CUDA code that no device link of a program is over",
    explanation: "\
A package has one finalizer. If its tests link more CUDA code than its programs, the one device link
would be either too small for the tests or too large for the programs.

    [dependencies]         # not in [dev-dependencies]
    geometry = { path = \"../geometry\" }",
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

/// A policy that speaks of a rule that there is not.
pub static UNKNOWN_RULE: Code = Code {
    id: "unknown-rule",
    summary: "a policy for a rule that does not exist",
    explanation: "\
`[policy]` gives levels to rules of `cargo gpustub check`, and accepts findings of them, by the id
that messages have in brackets. There is no rule of this name, so that the line would have no effect.
Diagnostics of other kinds, such as a file that cannot be read, have no level.

    [policy.rules]
    needed-toolkit = \"deny\"       # error[needed-toolkit]: …",
};

/// A library target that programs of the same package cannot link.
pub static MISSING_RLIB: Code = Code {
    id: "missing-rlib",
    summary: "a library target that keeps the stubs from the package's programs",
    explanation: "\
Cargo gives what a build script links to the package's library target, and programs, examples and
tests get it by linking that library. A library that is a cdylib or staticlib only cannot be
linked by Rust code, so that they would be left without stubs. Add `rlib`.

    [lib]
    crate-type = [\"rlib\", \"cdylib\"]",
};

/// All codes, sorted by id.
pub fn all() -> Vec<&'static Code> {
    let mut all = CODES.to_vec();
    all.extend([
        &UNEDITABLE_BUILD_SCRIPT,
        &MISPLACED_TABLE,
        &MULTIPLE_FINALIZERS,
        &UNKNOWN_FEATURE,
        &UNKNOWN_RULE,
        &MISSING_RLIB,
        &TEST_ONLY_DEVICE_CODE,
    ]);
    all.extend(gpustub_check::RULES.iter().map(|rule| &rule.code));
    all.sort_by_key(|code| code.id);
    // Some rules are diagnostics of other commands, too.
    all.dedup_by_key(|code| code.id);
    all
}

#[cfg(test)]
mod tests {
    #[test]
    fn ids_are_unique_and_texts_complete() {
        let all = super::all();
        assert!(all.is_sorted_by(|a, b| a.id < b.id));
        for code in all {
            assert!(!code.summary.ends_with('.'), "{}", code.id);
            assert!(
                code.explanation.contains("\n\n    "),
                "{}: no example",
                code.id
            );
        }
    }
}
