//! The kinds of diagnostics that need a cargo workspace to be found; the others are in
//! `gpustub-core`.

use gpustub_core::diag::{CODES, Code};

/// A build script that `sync` cannot edit.
pub static BUILD_SCRIPT: Code = Code {
    id: "build-script",
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
with it. `[policy]` and `[toolkit]` are one for the whole workspace and stand in the file at its
root, alone where no package is there. In another file they have no effect, which is a warning.

    [stub.cudart]          # in member/GpuStub.toml
    [policy]               # in GpuStub.toml at the root of the workspace",
};

/// A cargo feature that the package does not have.
pub static UNKNOWN_FEATURE: Code = Code {
    id: "unknown-feature",
    summary: "a stub that follows a cargo feature which the package does not have",
    explanation: "\
The stub is built when the feature of `optional` is on. The package's Cargo.toml has no feature of
that name, so that it would never be built.

    [features]             # in Cargo.toml
    nvrtc = []",
};

/// Stubs that are required and that nobody provides.
pub static NO_PROVIDER: Code = Code {
    id: "no-provider",
    summary: "required stubs that no package provides",
    explanation: "\
A package says `provide = false`: it calls the library and leaves the stubs to another package of
the same program. No other package among the dependencies of this image has them, so that the
link fails, or a cdylib is linked with missing symbols. Declare the library in the package that
owns the image, or in one library below it.

    [stub.cudart]          # in the GpuStub.toml of the program",
};

/// A library target that programs of the same package cannot link.
pub static UNLINKABLE_LIB: Code = Code {
    id: "unlinkable-lib",
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
        &BUILD_SCRIPT,
        &MISPLACED_TABLE,
        &NO_PROVIDER,
        &UNKNOWN_FEATURE,
        &UNLINKABLE_LIB,
    ]);
    all.extend(gpustub_check::RULES.iter().map(|rule| &rule.code));
    all.sort_by_key(|code| code.id);
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
