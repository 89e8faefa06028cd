//! `archive find`: finds the member that defines a symbol.

use gpustub_archive::{SuperArchive, View};
use gpustub_core::diag::{Diagnostic, UNKNOWN_SYMBOL};
use gpustub_core::suggest::nearest;
use gpustub_workspace::error::Error;
use gpustub_workspace::report::{Sources, json::FORMAT_VERSION};
use gpustub_workspace::shell::Shell;
use serde_json::json;

use super::open::{ArchiveResult, Failure, columns, layers, text, views};
use crate::cli::{ArchiveFind, TextOrJson};

/// Runs the command.
pub fn run(
    archive: &SuperArchive<'_>,
    options: &ArchiveFind,
    shell: &mut Shell,
) -> ArchiveResult<bool> {
    let views = match &options.best {
        Some(target) => vec![best_view(archive, target)?],
        None => views(archive, options.view.as_deref())?,
    };
    if options.symbols.is_empty() {
        let names = Vec::from_iter(views.iter().map(|view| text(view.name())));
        match options.format {
            TextOrJson::Text => shell.data(names.join("\n") + "\n")?,
            TextOrJson::Json => {
                shell.json(&json!({ "format_version": FORMAT_VERSION, "views": names }))?
            }
        }
        return Ok(true);
    }
    let mut missing: Vec<&String> = options.symbols.iter().collect();
    let (mut rows, mut matches) = (Vec::new(), Vec::new());
    for view in &views {
        let layers = layers(view)?;
        for name in &options.symbols {
            let Some(member) = view.find_symbol(name)? else {
                continue;
            };
            missing.retain(|symbol| *symbol != name);
            let layer = layers.get(member.layer()).map_or("", String::as_str);
            matches.push(json!({
                "view": text(view.name()),
                "symbol": name,
                "member": text(member.name()),
                "index": member.position(),
                "layer": layer,
            }));
            rows.push(vec![
                text(view.name()),
                name.clone(),
                text(member.name()),
                layer.to_owned(),
            ]);
        }
    }
    match options.format {
        TextOrJson::Text => shell.data(columns(&rows))?,
        TextOrJson::Json => {
            shell.json(&json!({ "format_version": FORMAT_VERSION, "matches": matches }))?
        }
    }
    if missing.is_empty() {
        return Ok(true);
    }
    let mut known = Vec::new();
    for view in &views {
        for symbol in view.symbols() {
            known.push(text(symbol?.name));
        }
    }
    for name in missing {
        let message = match views.as_slice() {
            [view] => format!("view `{}` has no symbol `{name}`", text(view.name())),
            _ => format!("no view has a symbol `{name}`"),
        };
        let mut diagnostic = Diagnostic::error(&UNKNOWN_SYMBOL, message);
        diagnostic.help = nearest(name, known.iter().map(String::as_str))
            .map(|near| format!("did you mean `{near}`?"));
        shell.diagnostics(&[diagnostic], &Sources::new())?;
    }
    Ok(false)
}

/// View that a program would choose.
fn best_view<'a>(archive: &SuperArchive<'a>, target: &str) -> ArchiveResult<View<'a>> {
    if let Some(view) = archive.best_view(target)? {
        return Ok(view);
    }
    let names = Vec::from_iter(views(archive, None)?.iter().map(|view| text(view.name())));
    let error = Error::new(format!("no view serves `{target}`"));
    Err(Failure::Command(
        error.help(format!("views are: {}", names.join(", "))),
    ))
}
