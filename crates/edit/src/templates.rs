//! Handlebars files for texts that are written into users' trees.

use handlebars::{Handlebars, no_escape};
use serde::Serialize;

/// Renders `tree/<name>.hbs`. The files are part of the program, and the tests render each, so that
/// a failure is a bug of the program.
pub fn render(name: &str, data: &impl Serialize) -> String {
    let path = format!("tree/{name}.hbs");
    let template = gpustub_templates::TREE
        .iter()
        .find(|template| template.path == path);
    let text = template
        .unwrap_or_else(|| panic!("no template `{path}`"))
        .text;
    let mut handlebars = Handlebars::new();
    handlebars.set_strict_mode(true);
    handlebars.register_escape_fn(no_escape);
    handlebars
        .render_template(text, data)
        .unwrap_or_else(|error| panic!("template `{path}`: {error}"))
}
