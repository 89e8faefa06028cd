//! `archive find`: finds the member that defines a symbol.

use gpustub_archive::SuperArchive;
use gpustub_core::diag::{Diagnostic, UNKNOWN_SYMBOL};
use gpustub_core::suggest::nearest;
use gpustub_workspace::report::{Sources, json::FORMAT_VERSION};
use gpustub_workspace::shell::Shell;
use serde_json::json;

use super::open::{ArchiveResult, columns, layers, text, views};
use crate::cli::{ArchiveFind, TextOrJson};

/// Runs the command.
pub fn run(
    archive: &SuperArchive<'_>,
    options: &ArchiveFind,
    shell: &mut Shell,
) -> ArchiveResult<bool> {
    let views = views(archive, options.view.as_deref())?;
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
        let message = match &options.view {
            Some(view) => format!("view `{view}` has no symbol `{name}`"),
            None => format!("no view has a symbol `{name}`"),
        };
        let mut diagnostic = Diagnostic::error(&UNKNOWN_SYMBOL, message);
        diagnostic.help = nearest(name, known.iter().map(String::as_str))
            .map(|near| format!("did you mean `{near}`?"));
        shell.diagnostics(&[diagnostic], &Sources::new())?;
    }
    Ok(false)
}
