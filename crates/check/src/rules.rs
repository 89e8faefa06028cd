//! The rules, by theme. `crates/check/explanations/<id>.md` states cause, consequence and remedy; the cases in
//! `cargo-gpustub/tests/check/<id>` show each rule violated and obeyed.

mod bundled;
mod container;
mod device_link;
mod dlopen_notes;
mod kpack;
mod label_mismatch;
mod linkage;
mod load_names;
mod loading;
mod runpath;
mod runtimes;
mod stubs;
mod symbols;
mod tag;
pub(crate) mod workspace;

use gpustub_core::diag::Diagnostic;
use gpustub_core::manifest::Policy;

use crate::gpu_relation::gpu_images;
use crate::package::{ContainerKind, Package, PackageImage};
use crate::rule::{Check, Findings, Rule};
use crate::workspace::WorkspaceFacts;

/// All rules, sorted by id.
pub static RULES: &[&Rule] = &[
    &stubs::ABORTING_STUBS,
    &runpath::ABSOLUTE_RUNPATH,
    &stubs::AMBIGUOUS_STUB_NAME,
    &workspace::BUILD_TIME_TOOLKIT,
    &bundled::BUNDLED_DRIVER,
    &device_link::CLANG_DEVICE_CODE,
    &runpath::COMPAT_IN_RUNPATH,
    &runpath::DANGLING_RUNPATH,
    &device_link::DEVICE_LINKED_ARCHIVE,
    &workspace::DLOPENING_DEPENDENCY,
    &device_link::DUPLICATE_DEVICE_LINK,
    &workspace::DYLIB_CRATE,
    &symbols::EXPORTED_GPU_SYMBOLS,
    &workspace::FORCED_LIBRARY_PATH,
    &workspace::HEADER_VERSION_MISMATCH,
    &workspace::INCOMPATIBLE_STUBS,
    &device_link::INCOMPLETE_DEVICE_LINK,
    &container::MALFORMED_ARCHIVE,
    &container::MALFORMED_IMAGE,
    &device_link::MISSING_ARCH,
    &device_link::MISSING_DEVICE_LINK,
    &dlopen_notes::MISSING_DLOPEN_NOTE,
    &workspace::MISSING_FALLBACK,
    &kpack::MISSING_KPACK,
    &bundled::MISSING_NVRTC_BUILTINS,
    &workspace::MISSING_PROVIDER,
    &bundled::MISSING_REQUIRES_DIST,
    &stubs::MISSING_STUB_LIBRARY,
    &device_link::MIXED_CUDART,
    &workspace::MIXED_HEADER_VERSIONS,
    &runtimes::MULTIPLE_CUDARTS,
    &runtimes::MULTIPLE_MAJORS,
    &linkage::NEEDED_DRIVER,
    &linkage::NEEDED_TOOLKIT,
    &workspace::NONPORTABLE_SEARCH_DIR,
    &runpath::ORPHAN_VERSION_NEEDS,
    &workspace::OUT_OF_SYNC,
    &bundled::OVERSIZED_FILE,
    &runpath::RELATIVE_RUNPATH,
    &dlopen_notes::STALE_DLOPEN_NOTE,
    &runtimes::STATIC_CUDART,
    &workspace::STATIC_CUDART_DEPENDENCY,
    &workspace::STATIC_TARGET,
    &runpath::STUBS_IN_RUNPATH,
    &stubs::STUBS_IN_STATIC_EXECUTABLE,
    &tag::TAG_DENIED_SYMBOL,
    &tag::TAG_EXTERNAL_LIBRARY,
    &tag::TAG_MACHINE_MISMATCH,
    &tag::TAG_TOO_RECENT_SYMBOL,
    &label_mismatch::TOOLKIT_LABEL_MISMATCH,
    &load_names::UNKNOWN_DLOPEN_NAME,
    &workspace::UNKNOWN_LOAD_NAME,
    &loading::UNLOADABLE_IMAGE,
    &symbols::UNRESOLVED_GPU_SYMBOL,
    &container::UNSAFE_PATH,
    &device_link::UNSHARED_DEVICE_GLOBALS,
    &workspace::UNSTUBBED_LIBRARY,
    &workspace::UNSUPPORTED_HEADER_VERSION,
    &workspace::UNUSABLE_MAJOR,
    &workspace::UNUSED_ALLOW,
    &load_names::UNVERSIONED_DLOPEN_NAME,
];

/// Findings of all rules in a package under a policy, sorted by path, then by rule. All are
/// errors until a [`policy`](crate::policy) sets their levels.
pub fn check(package: &Package, policy: &Policy) -> Vec<Diagnostic> {
    let mut findings = Findings::default();
    let images: Vec<PackageImage<'_>> = gpu_images(package).collect();
    for rule in RULES {
        match rule.check {
            Check::Image(check) => {
                for image in images.iter().filter(|image| !image.is_pe()) {
                    check(image, &mut findings);
                }
            }
            Check::AnyImage(check) => images.iter().for_each(|image| check(image, &mut findings)),
            Check::Package(check) => check(package, &mut findings),
            // Single files are checked with those that are named together with them.
            Check::Process(_) if package.kind == ContainerKind::File => {}
            Check::Process(check) => check(package, &mut findings),
            Check::Policy(check) => check(package, policy, &mut findings),
            Check::Workspace(_) | Check::Command => {}
        }
    }
    sorted(findings.0)
}

/// Findings in files that are named together, as far as [`check`] does not report them for each file, in
/// the order of [`check`].
pub fn check_process(process: &Package) -> Vec<Diagnostic> {
    let mut findings = Findings::default();
    for rule in RULES {
        if let Check::Process(check) = rule.check {
            check(process, &mut findings);
        }
    }
    sorted(findings.0)
}

/// Findings of all rules in a workspace, in the order of [`check`].
pub fn check_workspace(workspace: &WorkspaceFacts<'_>) -> Vec<Diagnostic> {
    let mut findings = Findings::default();
    for rule in RULES {
        if let Check::Workspace(check) = rule.check {
            check(workspace, &mut findings);
        }
    }
    sorted(findings.0)
}

/// Sorts diagnostics by file, rule and position.
pub fn sorted(mut diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
    diagnostics.sort_by_cached_key(|diagnostic| {
        let origin = diagnostic.origin.as_ref();
        (
            origin.map(|origin| origin.display().into_owned()),
            diagnostic.code.id,
            origin.map_or(0, |origin| origin.span.start),
        )
    });
    diagnostics
}

#[cfg(test)]
mod tests {
    use super::RULES;

    #[test]
    fn rules_are_sorted() {
        assert!(RULES.is_sorted_by(|a, b| a.code.id < b.code.id));
    }
}
