//! The form of cargo and rustc: the marked source line, and the help.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use gpustub_core::diag::{self, Diagnostic};

use super::Sources;

/// Groups diagnostics of files without source text that are equal except for the file: they have the
/// same fix.
pub fn grouped<'a>(diagnostics: &[&'a Diagnostic], sources: &Sources) -> Vec<Vec<&'a Diagnostic>> {
    let mut groups = Vec::<Vec<&Diagnostic>>::new();
    let mut indices = BTreeMap::<_, usize>::new();
    for &diagnostic in diagnostics {
        let origin = diagnostic.origin.as_ref();
        if origin.is_none_or(|origin| sources.contains_key(&*origin.display())) {
            groups.push(vec![diagnostic]);
            continue;
        }
        let Diagnostic { message, help, .. } = diagnostic;
        let key = (diagnostic.level, diagnostic.code.id, message, help);
        match indices.entry(key) {
            Entry::Occupied(index) => groups[*index.get()].push(diagnostic),
            Entry::Vacant(entry) => {
                entry.insert(groups.len());
                groups.push(vec![diagnostic]);
            }
        }
    }
    groups
}

/// The diagnostic as text, without a line break at its end, with the locations of `more`.
pub fn render(
    diagnostic: &Diagnostic,
    more: &[&Diagnostic],
    sources: &Sources,
    styled: bool,
) -> String {
    let level = match diagnostic.level {
        diag::Level::Note => Level::NOTE,
        diag::Level::Warning => Level::WARNING,
        diag::Level::Error => Level::ERROR,
    };
    let mut group = Group::with_title(
        level
            .primary_title(&diagnostic.message)
            .id(diagnostic.code.id),
    );
    if let Some(origin) = &diagnostic.origin {
        let file = origin.display();
        let text = sources.get(&*file);
        // A span that does not fit the text would make the renderer panic.
        match text.filter(|text| text.get(origin.span.clone()).is_some()) {
            Some(text) => {
                let mut annotation = AnnotationKind::Primary.span(origin.span.clone());
                if !diagnostic.label.is_empty() {
                    annotation = annotation.label(diagnostic.label.as_str());
                }
                group = group.element(
                    Snippet::source(text.as_str())
                        .path(file)
                        .annotation(annotation),
                );
            }
            None => group = group.element(Origin::path(file)),
        }
    }
    for diagnostic in more {
        if let Some(origin) = &diagnostic.origin {
            group = group.element(Origin::path(origin.display()));
        }
    }
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(help.as_str()));
    }
    let renderer = if styled {
        Renderer::styled()
    } else {
        Renderer::plain()
    };
    renderer.render(&[group])
}
