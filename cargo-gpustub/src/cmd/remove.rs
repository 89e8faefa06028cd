//! `cargo gpustub remove`: removes `[stub.<library>]` tables from `GpuStub.toml`.

use gpustub_core::diag::{Diagnostic, UNKNOWN_LIBRARY};
use gpustub_core::suggest::nearest;
use gpustub_workspace::edit::as_before;
use gpustub_workspace::error::{Error, Result};
use gpustub_workspace::ops::Pending;
use gpustub_workspace::report::Sources;
use gpustub_workspace::shell::Shell;
use gpustub_workspace::tables::{Declared, FILE};
use gpustub_workspace::workspace::{Depth, Workspace, directory};
use toml_edit::{DocumentMut, Item, Table};

use crate::cli;
use crate::state::pending;

/// The changes of `GpuStub.toml`; `None`: errors were printed.
pub fn edits(options: &cli::Remove, shell: &mut Shell) -> Result<Option<Pending>> {
    let workspace = Workspace::load(&options.cargo, Depth::Members)?;
    let package = workspace.selected_package(|_| true)?;
    // A file with errors can be edited: the removed table may be the one with the error.
    let declared = Declared::read_all(&workspace, &[package])?.remove(0).1;
    let mut text = declared.text.clone();
    let mut unknown = Vec::new();
    for name in &options.libraries {
        let removed = remove_stub_table(&text, name).map_err(|error| {
            Error::new(format!(
                "could not edit `{}`: {error}",
                declared.display_path
            ))
        })?;
        match removed {
            Some(removed) => text = removed,
            None => unknown.push(unknown_library(name, &declared)),
        }
    }
    shell.diagnostics(&unknown, &Sources::new())?;
    if !unknown.is_empty() {
        return Ok(None);
    }
    for name in &options.libraries {
        shell.status("Removing", name);
    }
    for stub in &declared.manifest.stubs {
        if options.libraries.contains(&stub.id.value)
            && let Some(list) = &stub.custom.symbols
        {
            shell.note(format!(
                "symbol list `{}` is no longer used; delete it",
                list.value
            ));
        }
    }
    let mut edits = Pending::default();
    edits.write(&directory(package).join(FILE), text)?;
    Ok(Some(edits))
}

/// Lists what else to remove, if the file no longer declares anything.
pub fn report_unused(options: &cli::Remove, shell: &mut Shell) -> Result<()> {
    let workspace = Workspace::load(&options.cargo, Depth::Members)?;
    let package = workspace.selected_package(|_| true)?;
    let Some(declared) = Declared::read(&workspace, package)? else {
        return Ok(());
    };
    let manifest = &declared.manifest;
    let is_empty = manifest.stubs.is_empty()
        && manifest.device_link_names.is_empty()
        && manifest.archive_names.is_empty()
        && manifest.toolkit.is_none();
    if is_empty {
        let mut parts = vec![format!("`{}`", declared.display_path)];
        parts.extend(pending::parts(package));
        shell.note(format!(
            "`{}` no longer declares anything; to stop using gpustub, remove {}, and run `cargo gpustub sync`, which \
             removes GpuStub.lock",
            declared.display_path,
            pending::sentence(&parts)
        ));
    }
    Ok(())
}

fn unknown_library(name: &str, declared: &Declared) -> Diagnostic {
    let libraries: Vec<&str> = declared
        .manifest
        .stubs
        .iter()
        .map(|stub| stub.id.value.as_str())
        .collect();
    let help = match nearest(name, libraries.iter().copied()) {
        Some(library) => format!("did you mean `{library}`?"),
        None if libraries.is_empty() => "the file declares no library".to_owned(),
        None => format!("declared libraries are {}", libraries.join(", ")),
    };
    let message = format!("no `[stub.{name}]` in `{}`", declared.display_path);
    Diagnostic::error(&UNKNOWN_LIBRARY, message).help(help)
}

/// Removes `[stub.<id>]` from the text; `None`: the table does not exist.
fn remove_stub_table(text: &str, id: &str) -> std::result::Result<Option<String>, String> {
    let mut document: DocumentMut = text.parse().map_err(|error| format!("{error}"))?;
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
    if let Some(table) = removed.as_table()
        && let Some(comments) = file_comments(table)
    {
        insert_comments(&mut document, table.position(), comments);
    }
    let stubs = document.get("stub");
    let is_implicit = stubs
        .and_then(Item::as_table)
        .is_some_and(|table| table.is_implicit());
    if is_empty && (is_implicit || stubs.is_some_and(Item::is_inline_table)) {
        document.remove("stub");
    }
    Ok(Some(as_before(text, &document.to_string())))
}

/// Comments above a table that concern the file: those above an empty line. Comments directly above
/// the table concern the table.
fn file_comments(table: &Table) -> Option<&str> {
    let prefix = table.decor().prefix()?.as_str()?;
    let end = prefix.rfind("\n\n")? + 1;
    Some(&prefix[..end]).filter(|comments| comments.contains('#'))
}

/// Inserts comments before the table that follows a position, or at the end of the file.
fn insert_comments(document: &mut DocumentMut, position: Option<isize>, comments: &str) {
    let next_table = document
        .iter_mut()
        .flat_map(|(_, item)| tables(item))
        .filter(|table| table.position() > position)
        .min_by_key(|table| table.position());
    match next_table {
        Some(table) => {
            let prefix = table.decor().prefix().and_then(|prefix| prefix.as_str());
            let prefix = format!("{comments}{}", prefix.unwrap_or_default());
            table.decor_mut().set_prefix(prefix);
        }
        None => {
            let trailing = document.trailing().as_str().unwrap_or_default();
            let trailing = format!("{comments}{trailing}");
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
