//! The libraries that gpustub knows, asked for by name.

use std::fmt::Write;

use gpustub_core::diag::{Diagnostic, UNKNOWN_LIBRARY};
use gpustub_core::library::Library;
use gpustub_core::manifest::Manifest;
use gpustub_core::suggest::nearest;
use gpustub_workspace::tables::FILE;

/// The libraries of these names, and what is wrong with the names.
pub fn look_up(names: &[String]) -> (Vec<&'static Library>, Vec<Diagnostic>) {
    let mut libraries = Vec::new();
    let mut unknown = Vec::new();
    for name in names {
        if let Some(library) = Library::builtin(name) {
            libraries.push(library);
            continue;
        }
        let message = format!("unknown library `{name}`");
        let known: Vec<&str> = Library::builtin_ids().collect();
        let help = match nearest(name, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!(
                "known libraries are {}; a user-defined library is declared in {FILE} by hand, see \
                 `cargo gpustub explain unknown-library`",
                known.join(", ")
            ),
        };
        unknown.push(Diagnostic::error(&UNKNOWN_LIBRARY, message).help(help));
    }
    (libraries, unknown)
}

/// What a `GpuStub.toml` with these libraries would say.
pub fn manifest<'a>(
    libraries: impl IntoIterator<Item = (&'a str, Option<&'a str>)>,
) -> (Manifest, Vec<Diagnostic>) {
    let mut text = String::from("schema = 1\n");
    for (id, header) in libraries {
        let _ = writeln!(text, "[stub.{id}]");
        if let Some(header) = header {
            let _ = writeln!(text, "header-version = \"{header}\"");
        }
    }
    Manifest::parse("<command line>", &text)
}
