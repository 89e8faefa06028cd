//! The rules, by theme. Each row says what it means, why, and what to do; the cases in
//! `cargo-gpustub/tests/check/<id>` show each of them broken and kept.

mod container;
mod device_link;
mod label;
mod linkage;
mod load_names;
mod packed;
mod runtimes;
mod search;
mod search_path;
mod stubs;
mod symbols;
mod tag;
pub(crate) mod workspace;

use gpustub_core::diag::{Code, Diagnostic};
use gpustub_core::manifest::{Policy, RuleLevel};

use crate::package::{Image, Package};
use crate::related::gpu_images;
use crate::shown::shown;
use crate::workspace::Workspace;

/// A rule.
#[derive(Debug)]
pub struct Rule {
    /// Its id, what it means and why.
    pub code: Code,
    /// How seriously it is taken unless a policy says otherwise.
    pub level: RuleLevel,
    /// What it looks at.
    pub look: Look,
}

/// What a rule looks at, and how.
#[derive(Debug, Clone, Copy)]
pub enum Look {
    /// Every program and library that has to do with GPUs, for itself.
    Image(fn(&Image<'_>, &mut Findings)),
    /// The package as a whole.
    Package(fn(&Package, &mut Findings)),
    /// The package as a whole, against what the policy asks for.
    Policy(fn(&Package, &Policy, &mut Findings)),
    /// A cargo workspace.
    Workspace(fn(&Workspace<'_>, &mut Findings)),
    /// What only the subcommand can find out.
    Command,
}

/// What the rules have found.
#[derive(Debug, Default)]
pub struct Findings(Vec<Diagnostic>);

impl Findings {
    /// Something that has a place, or none, of its own.
    fn push(&mut self, found: Diagnostic) {
        self.0.push(found);
    }

    /// Something to say of an image.
    fn of(&mut self, rule: &'static Rule, image: &Image<'_>, message: String, help: &str) {
        self.at(rule, image.shown(), message, help);
    }

    /// Something to say of the file that is shown like this. The message may hold words of the file.
    fn at(&mut self, rule: &'static Rule, place: String, message: String, help: &str) {
        let found = Diagnostic::error(&rule.code, shown(message.as_bytes())).at(place, 0..0);
        self.0.push(match help {
            "" => found,
            help => found.help(help),
        });
    }
}

/// All rules, sorted by id.
pub static RULES: &[&Rule] = &[
    &stubs::ABORTING_STUBS,
    &search_path::ABSOLUTE_RUNPATH,
    &stubs::AMBIGUOUS_STUB_NAME,
    &workspace::BUILD_TIME_TOOLKIT,
    &packed::BUNDLED_DRIVER,
    &search_path::COMPAT_IN_RUNPATH,
    &search::DANGLING_RUNPATH,
    &device_link::DEVICE_LINKED_ARCHIVE,
    &device_link::DUPLICATE_DEVICE_LINK,
    &workspace::DYLIB_CRATE,
    &symbols::EXPORTED_GPU_SYMBOLS,
    &workspace::FORCED_LIBRARY_PATH,
    &workspace::HEADER_VERSION_MISMATCH,
    &device_link::INCOMPLETE_DEVICE_LINK,
    &container::MALFORMED_ARCHIVE,
    &container::MALFORMED_IMAGE,
    &device_link::MISSING_ARCH,
    &device_link::MISSING_DEVICE_LINK,
    &workspace::MISSING_FALLBACK,
    &workspace::MISSING_HEADER_VERSION,
    &packed::MISSING_NVRTC_BUILTINS,
    &workspace::MISSING_PROVIDER,
    &packed::MISSING_REQUIRES_DIST,
    &device_link::MIXED_CUDART,
    &workspace::MIXED_HEADER_VERSIONS,
    &runtimes::MULTIPLE_CUDARTS,
    &runtimes::MULTIPLE_MAJORS,
    &workspace::MULTIPLE_PROVIDERS,
    &linkage::NEEDED_DRIVER,
    &linkage::NEEDED_TOOLKIT,
    &workspace::NONPORTABLE_SEARCH_DIR,
    &search::ORPHAN_VERSION_NEEDS,
    &workspace::OUT_OF_SYNC,
    &packed::OVERSIZED_FILE,
    &search::RELATIVE_RUNPATH,
    &runtimes::STATIC_CUDART,
    &workspace::STATIC_CUDART_DEPENDENCY,
    &workspace::STATIC_TARGET,
    &search_path::STUBS_IN_RUNPATH,
    &stubs::STUBS_IN_STATIC_EXECUTABLE,
    &tag::TAG_DENIED_SYMBOL,
    &tag::TAG_EXTERNAL_LIBRARY,
    &tag::TAG_MACHINE_MISMATCH,
    &tag::TAG_TOO_RECENT_SYMBOL,
    &label::TOOLKIT_LABEL_MISMATCH,
    &load_names::UNKNOWN_DLOPEN_NAME,
    &workspace::UNKNOWN_LOAD_NAME,
    &symbols::UNRESOLVED_GPU_SYMBOL,
    &container::UNSAFE_PATH,
    &device_link::UNSHARED_DEVICE_GLOBALS,
    &workspace::UNSTUBBED_LIBRARY,
    &workspace::UNSUPPORTED_HEADER_VERSION,
    &workspace::UNUSABLE_MAJOR,
    &workspace::UNUSED_ALLOW,
    &load_names::UNVERSIONED_DLOPEN_NAME,
];

/// What the rules have to say of a package under a policy, sorted by place, then by rule. All are
/// errors until a [`policy`](crate::policy) says otherwise.
pub fn check(package: &Package, policy: &Policy) -> Vec<Diagnostic> {
    let mut findings = Findings::default();
    let images: Vec<Image<'_>> = gpu_images(package).collect();
    for rule in RULES {
        match rule.look {
            Look::Image(look) => images.iter().for_each(|image| look(image, &mut findings)),
            Look::Package(look) => look(package, &mut findings),
            Look::Policy(look) => look(package, policy, &mut findings),
            Look::Workspace(_) | Look::Command => {}
        }
    }
    sorted(findings.0)
}

/// What the rules have to say of a workspace, as [`check`] has it.
pub fn check_workspace(workspace: &Workspace<'_>) -> Vec<Diagnostic> {
    let mut findings = Findings::default();
    for rule in RULES {
        if let Look::Workspace(look) = rule.look {
            look(workspace, &mut findings);
        }
    }
    sorted(findings.0)
}

/// By place, then by rule.
pub fn sorted(mut found: Vec<Diagnostic>) -> Vec<Diagnostic> {
    fn key(d: &Diagnostic) -> (Option<&str>, &str, usize) {
        let start = d.origin.as_ref().map_or(0, |o| o.span.start);
        (d.origin.as_ref().map(|o| &o.file[..]), d.code.id, start)
    }
    found.sort_by(|a, b| key(a).cmp(&key(b)));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_sorted() {
        assert!(RULES.is_sorted_by(|a, b| a.code.id < b.code.id));
    }
}
