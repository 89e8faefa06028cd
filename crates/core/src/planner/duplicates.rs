//! Names that two libraries of a plan have.

use std::ops::Range;

use super::Planner;
use crate::by_name::ByName;
use crate::diag::{DUPLICATE_FUNCTION, DUPLICATE_STUB_NAME, Diagnostic, listing};
use crate::library::{Library, c_name};
use crate::manifest::{Stub, is_same_feature};
use crate::plan::{Function, LibraryPlan};
use crate::spanned::Spanned;

impl Planner<'_> {
    /// Checks that ids differ as parts of C names as well.
    pub fn check_names(&mut self, stubs: &[&Stub]) {
        let mut ids: ByName<String> = ByName::new();
        for stub in stubs {
            let id = &stub.id.value;
            if let Some(previous) = ids.insert(&c_name(id), id.clone()) {
                let message = format!("`{previous}` and `{id}` are the same name in C");
                let error =
                    Diagnostic::error(&DUPLICATE_STUB_NAME, message).help("rename one of them");
                self.add(error, &stub.id.span);
            }
        }
    }

    /// Byte range of a library's id in its stub table.
    fn stub_span(&self, id: &str) -> Range<usize> {
        match self.manifest.stubs.iter().find(|stub| stub.id.value == id) {
            Some(stub) => stub.id.span.clone(),
            None => 0..0,
        }
    }

    /// Whether each of two libraries requires a cargo feature that the other does not.
    fn are_alternatives(&self, first: &str, second: &str) -> bool {
        let [first, second] = [first, second].map(|id| {
            let stub = self.manifest.stubs.iter().find(|stub| stub.id.value == id);
            stub.map_or(&[][..], |stub| &stub.required_features.0)
        });
        let lacks = |features: &[Spanned<String>], required: &Spanned<String>| {
            !features
                .iter()
                .any(|feature| is_same_feature(&feature.value, &required.value))
        };
        first.iter().any(|feature| lacks(second, feature))
            && second.iter().any(|feature| lacks(first, feature))
    }

    pub fn check_link_names(&mut self, libraries: &[LibraryPlan]) {
        let mut owners: ByName<String> = ByName::new();
        for planned in libraries.iter().filter(|planned| planned.stubbed) {
            let id = &planned.library.id;
            for name in &planned.library.link_names {
                if let Some(owner) = owners.insert(name, id.clone()) {
                    let message = format!("`{owner}` and `{id}` both have the link name `{name}`");
                    let help = "give one of them other `link-names`, or remove it";
                    self.add(
                        Diagnostic::error(&DUPLICATE_STUB_NAME, message).help(help),
                        &self.stub_span(id),
                    );
                }
            }
        }
    }

    /// Checks that no two libraries of an image have a function of one name.
    pub fn check_functions(&mut self, libraries: &[LibraryPlan]) {
        for (index, first) in libraries.iter().enumerate() {
            let later = &libraries[index + 1..];
            for (later_index, second) in later.iter().enumerate() {
                let mut names = common_names(&first.functions, &second.functions);
                // A name in three libraries is reported for neighbours only.
                let between = &later[..later_index];
                names.retain(|name| !between.iter().any(|planned| has_function(planned, name)));
                let id = &second.library.id;
                let are_alternatives = self.are_alternatives(&first.library.id, id);
                // `sync` does not know which features a build enables.
                if names.is_empty() || (are_alternatives && self.inputs.features.is_none()) {
                    continue;
                }
                let message = format!(
                    "`{}` and `{id}` both have {}",
                    first.library.id,
                    listing(&names)
                );
                let is_shipped =
                    |planned: &LibraryPlan| Library::builtin(&planned.library.id).is_some();
                let help = if are_alternatives {
                    "one program has one of the two: enable the features of one only"
                } else if is_shipped(first) && is_shipped(second) {
                    "one program has one of the two: remove the other, or name a feature for each in `required-features`"
                } else {
                    "remove them from the symbol list of one of the two"
                };
                self.add(
                    Diagnostic::error(&DUPLICATE_FUNCTION, message).help(help),
                    &self.stub_span(id),
                );
            }
        }
    }
}

/// The names that two lists have in common.
fn common_names<'l>(mut left: &'l [Function], mut right: &[Function]) -> Vec<&'l str> {
    let mut names = Vec::new();
    while let ([a, after_a @ ..], [b, after_b @ ..]) = (left, right) {
        let order = a.name.cmp(&b.name);
        if order.is_eq() {
            names.push(a.name.as_str());
        }
        if order.is_le() {
            left = after_a;
        }
        if order.is_ge() {
            right = after_b;
        }
    }
    names
}

fn has_function(planned: &LibraryPlan, name: &str) -> bool {
    planned
        .functions
        .binary_search_by(|function| function.name.as_str().cmp(name))
        .is_ok()
}
