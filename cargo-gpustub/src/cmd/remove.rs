//! `cargo gpustub remove`: removes `[stub.<library>]` tables from `GpuStub.toml`.

use gpustub_core::manifest::Manifest;
use gpustub_core::suggest::nearest;
use gpustub_workspace::edit::as_before;
use gpustub_workspace::error::{Error, Result};
use gpustub_workspace::ops::{self, Operation};
use gpustub_workspace::shell::Shell;
use gpustub_workspace::tables::{Declared, FILE};
use gpustub_workspace::workspace::{Depth, Workspace, directory};
use toml_edit::{DocumentMut, Item, Table};

use crate::cli;

/// Runs the command.
pub fn run(options: &cli::Remove, shell: &mut Shell) -> Result<bool> {
    let workspace = Workspace::load(&options.cargo, Depth::Members)?;
    let package = workspace.selected_package(|_| true)?;
    // A file with errors can be edited: the removed table may be the one with the error.
    let declared = Declared::read_all(&workspace, &[package])?.remove(0).1;
    let mut text = declared.text.clone();
    for name in &options.libraries {
        let edited = remove_stub_table(&text, name).map_err(|why| {
            Error::new(format!("could not edit `{}`: {why}", declared.display_path))
        })?;
        text = edited.ok_or_else(|| unknown(name, &declared))?;
    }
    let mut unused = Vec::new();
    for stub in &declared.manifest.stubs {
        if options.libraries.contains(&stub.id.value) {
            unused.extend(stub.custom.symbols.as_ref().map(|list| list.value.clone()));
        }
    }
    let after = Manifest::parse(&declared.display_path, &text).0;
    let operation = Operation::write(
        directory(package).join(FILE),
        declared.display_path.clone(),
        text,
    )?;
    if options.dry_run {
        shell.diff(&operation.diff())?;
        shell.note("nothing was written (--dry-run)");
        return Ok(true);
    }
    for name in &options.libraries {
        shell.status("Removing", name);
    }
    ops::apply(&[operation], |o| shell.status(o.verb(), &o.display_path))?;
    for list in unused {
        shell.note(format!("symbol list `{list}` is no longer used; delete it"));
    }
    let is_empty = after.stubs.is_empty()
        && after.device_link_names.is_empty()
        && after.archive_names.is_empty()
        && after.toolkit.is_none();
    shell.note(if is_empty {
        format!(
            "next: `cargo gpustub sync` updates GpuStub.lock; `{}` no longer declares anything: delete \
             it, and `cargo gpustub sync` reports what else to remove",
            declared.display_path
        )
    } else {
        "next: `cargo gpustub sync` updates GpuStub.lock".to_owned()
    });
    Ok(true)
}

fn unknown(name: &str, declared: &Declared) -> Error {
    let error = Error::new(format!("no `[stub.{name}]` in `{}`", declared.display_path));
    let stubs = declared.manifest.stubs.iter();
    let known: Vec<&str> = stubs.map(|stub| stub.id.value.as_str()).collect();
    match nearest(name, known.iter().copied()) {
        Some(near) => error.help(format!("did you mean `{near}`?")),
        None if known.is_empty() => error.help("the file declares no library"),
        None => error.help(format!("declared libraries are {}", known.join(", "))),
    }
}

/// Removes `[stub.<id>]` from the text; `None`: the table does not exist.
fn remove_stub_table(text: &str, id: &str) -> std::result::Result<Option<String>, String> {
    let mut document: DocumentMut = text.parse().map_err(|e| format!("{e}"))?;
    let Some(stubs) = document.get_mut("stub").and_then(Item::as_table_like_mut) else {
        return Ok(None);
    };
    let Some(removed) = stubs.remove(id) else {
        return Ok(None);
    };
    let is_empty = stubs.is_empty();
    if let Some(inline) = document.get_mut("stub").and_then(Item::as_inline_table_mut) {
        inline.fmt();
    }
    if let Some(table) = removed.as_table() {
        // Comments directly above the table are removed; those above an empty line concern the file.
        let prefix = table.decor().prefix().and_then(|prefix| prefix.as_str());
        let kept = prefix.and_then(|prefix| prefix.rfind("\n\n").map(|at| &prefix[..at + 1]));
        if let Some(kept) = kept.filter(|kept| kept.contains('#')) {
            keep(&mut document, table.position(), kept);
        }
    }
    let stub = document.get("stub");
    let is_implicit = stub
        .and_then(Item::as_table)
        .is_some_and(|table| table.is_implicit());
    if is_empty && (is_implicit || stub.is_some_and(Item::is_inline_table)) {
        document.remove("stub");
    }
    Ok(Some(as_before(text, &document.to_string())))
}

/// Inserts comments before the table that follows a position, or at the end of the file.
fn keep(document: &mut DocumentMut, position: Option<isize>, comments: &str) {
    let all = document.iter_mut().flat_map(|(_, item)| tables(item));
    let after = all.filter(|table| table.position() > position);
    match after.min_by_key(|table| table.position()) {
        Some(table) => {
            let old = table.decor().prefix().and_then(|prefix| prefix.as_str());
            let prefix = format!("{comments}{}", old.unwrap_or_default());
            table.decor_mut().set_prefix(prefix);
        }
        None => {
            let old = document.trailing().as_str().unwrap_or_default();
            let trailing = format!("{comments}{old}");
            document.set_trailing(trailing);
        }
    }
}

/// Tables with a header, in unspecified order.
fn tables(item: &mut Item) -> Vec<&mut Table> {
    match item {
        Item::Table(table) => {
            if table.is_implicit() {
                table
                    .iter_mut()
                    .flat_map(|(_, item)| tables(item))
                    .collect()
            } else {
                vec![table]
            }
        }
        Item::ArrayOfTables(tables) => tables.iter_mut().collect(),
        Item::None | Item::Value(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::remove_stub_table;

    #[test]
    fn remove_stub_table_keeps_the_rest() {
        for (before, after) in [
            (
                "schema = 1 # one\n\n[stub.cudart]\nheader-version = \"12\"\n",
                "schema = 1 # one\n",
            ),
            (
                "schema = 1\n\n# The file.\n\n# Runtime.\n[stub.cudart]\n\n# Compiler.\n[stub.nvrtc] # b\nmajors = [ \"12\" ]\n",
                "schema = 1\n\n# The file.\n\n# Compiler.\n[stub.nvrtc] # b\nmajors = [ \"12\" ]\n",
            ),
            (
                "schema = 1\n[stub.nvrtc]\n[stub.cudart]\n[stub.cudart.fallback]\nstatus = 1\n# end\n",
                "schema = 1\n[stub.nvrtc]\n# end\n",
            ),
            (
                "schema = 1\nstub = { cuda = {}, cudart = {} }\n",
                "schema = 1\nstub = { cuda = {} }\n",
            ),
            (
                "schema = 1\r\n\r\n[stub.cudart]\r\n[stub.cuda]\r\n",
                "schema = 1\r\n[stub.cuda]\r\n",
            ),
        ] {
            assert_eq!(remove_stub_table(before, "cudart").unwrap().unwrap(), after);
        }
        assert_eq!(
            remove_stub_table("schema = 1\n[stub.cuda]\n", "cudart").unwrap(),
            None
        );
        assert_eq!(remove_stub_table("schema = 1\n", "cudart").unwrap(), None);
        assert!(remove_stub_table("stub = ", "cuda").is_err());
    }
}
