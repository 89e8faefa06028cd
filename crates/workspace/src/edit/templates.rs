//! Handlebars files for texts that are written into users' trees.

use std::sync::{LazyLock, Mutex, PoisonError};

use handlebars::{Handlebars, no_escape};
use serde::Serialize;

/// Templates that were rendered before: parsing one takes much longer than rendering it.
static PARSED: LazyLock<Mutex<Handlebars<'static>>> = LazyLock::new(|| {
    let mut handlebars = Handlebars::new();
    handlebars.set_strict_mode(true);
    handlebars.register_escape_fn(no_escape);
    Mutex::new(handlebars)
});

/// Renders `tree/<name>.hbs`. The files are part of the program, and the tests render each, so that
/// a failure is a bug of the program.
pub fn render(name: &str, data: &impl Serialize) -> String {
    let mut parsed = PARSED.lock().unwrap_or_else(PoisonError::into_inner);
    if !parsed.has_template(name) {
        let path = format!("tree/{name}.hbs");
        let template = gpustub_templates::TREE
            .iter()
            .find(|template| template.path == path);
        let text = template
            .unwrap_or_else(|| panic!("no template `{path}`"))
            .text;
        parsed
            .register_template_string(name, text)
            .unwrap_or_else(|error| panic!("template `{path}`: {error}"));
    }
    parsed
        .render(name, data)
        .unwrap_or_else(|error| panic!("template `{name}`: {error}"))
}
