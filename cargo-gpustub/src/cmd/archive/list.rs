//! `archive list` and `archive nm`.

use std::fmt::Write;

use gpustub_archive::{SuperArchive, View};
use gpustub_workspace::report::json::FORMAT_VERSION;
use gpustub_workspace::shell::Shell;
use serde_json::{Value, json};

use super::open::{ArchiveResult, columns, layers, text, views};
use crate::cli::{ArchiveList, TextOrJson};

/// Runs `list`.
pub fn run(
    archive: &SuperArchive<'_>,
    options: &ArchiveList,
    shell: &mut Shell,
) -> ArchiveResult<bool> {
    let views = views(archive, options.view.as_deref())?;
    let default = default(archive)?;
    if options.format == TextOrJson::Json {
        let mut rows = Vec::new();
        for view in &views {
            rows.push(json!({
                "name": text(view.name()),
                "default": Some(view.name()) == default,
                "layers": layers(view)?,
                "symbols": view.symbol_count(),
                "members": members(view)?,
            }));
        }
        shell.json(&json!({ "format_version": FORMAT_VERSION, "views": rows }))?;
        return Ok(true);
    }
    let mut rows = Vec::new();
    for view in &views {
        let layers = layers(view)?;
        if options.view.is_some() {
            for member in view.members() {
                let member = member?;
                let layer = layers.get(member.layer()).cloned().unwrap_or_default();
                let size = member.contents().size().to_string();
                rows.push(vec![text(member.name()), size, layer]);
            }
            continue;
        }
        if rows.is_empty() {
            let header = ["VIEW", "MEMBERS", "SYMBOLS", "LAYERS"];
            rows.push(header.map(str::to_owned).to_vec());
        }
        let mut layers = layers.join(", ");
        if Some(view.name()) == default {
            layers += " (default)";
        }
        rows.push(vec![
            text(view.name()),
            view.member_count().to_string(),
            view.symbol_count().to_string(),
            layers,
        ]);
    }
    shell.data(columns(&rows))?;
    Ok(true)
}

/// The name of the default view.
pub fn default<'a>(archive: &SuperArchive<'a>) -> ArchiveResult<Option<&'a [u8]>> {
    Ok(archive.default_view()?.map(|view| view.name()))
}

fn members(view: &View<'_>) -> ArchiveResult<Vec<Value>> {
    let layers = layers(view)?;
    let mut members = Vec::new();
    for member in view.members() {
        let member = member?;
        members.push(json!({
            "name": text(member.name()),
            "index": member.position(),
            "contents": member.contents().index(),
            "size": member.contents().size(),
            "layer": layers.get(member.layer()),
            "variant": member.contents().is_variant(),
        }));
    }
    Ok(members)
}

/// Runs `nm`.
pub fn symbols(
    archive: &SuperArchive<'_>,
    options: &ArchiveList,
    shell: &mut Shell,
) -> ArchiveResult<bool> {
    let views = views(archive, options.view.as_deref())?;
    let (mut lines, mut view_rows) = (String::new(), Vec::new());
    for (index, view) in views.iter().enumerate() {
        let mut symbols = Vec::new();
        for symbol in view.symbols() {
            let symbol = symbol?;
            symbols.push((
                text(symbol.name),
                text(symbol.member.name()),
                symbol.member.position(),
            ));
        }
        symbols.sort();
        if options.view.is_none() {
            let gap = if index == 0 { "" } else { "\n" };
            let _ = writeln!(lines, "{gap}{}:", text(view.name()));
        }
        for (name, member, _) in &symbols {
            let _ = writeln!(lines, "{name} in {member}");
        }
        let symbol_rows: Vec<Value> = symbols
            .iter()
            .map(|(name, member, index)| json!({ "name": name, "member": member, "index": index }))
            .collect();
        view_rows.push(json!({ "name": text(view.name()), "symbols": symbol_rows }));
    }
    match options.format {
        TextOrJson::Text => shell.data(lines)?,
        TextOrJson::Json => {
            shell.json(&json!({ "format_version": FORMAT_VERSION, "views": view_rows }))?
        }
    }
    Ok(true)
}
