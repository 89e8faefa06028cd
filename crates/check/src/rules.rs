//! The rules, by theme. Each row says what it means, why, and what to do; the cases in
//! `tests/cases/check/<id>` show each of them broken and kept.

mod label;
mod linkage;
mod packed;
mod search;
mod search_path;
mod tag;

use gpustub_core::diag::{Code, Diagnostic};
use gpustub_core::manifest::{Policy, RuleLevel};

use crate::package::{Image, Package};

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
    /// Every program and library for itself.
    Image(fn(&Image<'_>, &mut Findings)),
    /// The package as a whole.
    Package(fn(&Package, &mut Findings)),
    /// The package as a whole, against what the policy asks for.
    Policy(fn(&Package, &Policy, &mut Findings)),
    /// A cargo workspace: `cargo gpustub check` looks there.
    Workspace,
}

/// What the rules have found.
#[derive(Debug, Default)]
pub struct Findings(Vec<Diagnostic>);

impl Findings {
    /// Something to say of an image.
    fn of(&mut self, rule: &'static Rule, image: &Image<'_>, message: String, help: &str) {
        self.at(rule, image.shown(), message, help);
    }

    /// Something to say of the file that is shown like this.
    fn at(&mut self, rule: &'static Rule, shown: String, message: String, help: &str) {
        let found = Diagnostic::error(&rule.code, message).at(shown, 0..0);
        self.0.push(match help {
            "" => found,
            help => found.help(help),
        });
    }
}

/// All rules, sorted by id.
pub static RULES: &[&Rule] = &[
    &search_path::ABSOLUTE_RUNPATH,
    &linkage::NEEDED_DRIVER,
    &linkage::NEEDED_TOOLKIT,
    &packed::NVRTC_WITHOUT_BUILTINS,
    &packed::OVERSIZE,
    &packed::PACKED_DRIVER,
    &search::RELATIVE_RUNPATH,
    &search::RUNPATH_TO_NOTHING,
    &search_path::STUBS_IN_RUNPATH,
    &tag::TAG_LIBRARIES,
    &tag::TAG_MACHINE,
    &tag::TAG_SYMBOLS,
    &tag::TAG_VERSIONS,
    &packed::UNDECLARED_SIBLING,
    &search::VERSIONS_OF_NOBODY,
    &label::WRONG_LABEL,
];

/// What the rules have to say of a package under a policy, sorted by place, then by rule. All are errors until a
/// [`policy`](crate::policy) says otherwise.
pub fn check(package: &Package, policy: &Policy) -> Vec<Diagnostic> {
    let mut findings = Findings::default();
    for rule in RULES {
        match rule.look {
            Look::Image(look) => package
                .images()
                .for_each(|image| look(&image, &mut findings)),
            Look::Package(look) => look(package, &mut findings),
            Look::Policy(look) => look(package, policy, &mut findings),
            Look::Workspace => {}
        }
    }
    let mut found = findings.0;
    found.sort_by(|a, b| {
        let key = |d: &Diagnostic| (d.origin.as_ref().map(|o| o.file.clone()), d.code.id);
        key(a).cmp(&key(b))
    });
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
