//! The toolkit options of `cargo gpustub add`: the `[toolkit]` table, and the directory that `sync`
//! updates.

use gpustub_core::diag::has_errors;
use gpustub_core::version::Version;
use gpustub_workspace::edit::{as_before, separate};
use gpustub_workspace::error::{Error, Result};
use gpustub_workspace::ops::{self, Operation};
use gpustub_workspace::selection::Selection;
use gpustub_workspace::shell::Shell;
use gpustub_workspace::tables::{Declared, FILE};
use gpustub_workspace::workspace::{Depth, Workspace};
use toml_edit::{Array, DocumentMut, Item, Table, TableLike, Value};

use crate::cli::AddToolkit;
use crate::toolkit::{self, SyncProgress, headers, installed};

/// Writes the table and the directory, as only this command receives the paths of real headers.
pub fn add(options: &AddToolkit, selection: &Selection, shell: &mut Shell) -> Result<bool> {
    let workspace = Workspace::load(selection, Depth::Members)?;
    let before = match Declared::read_shared(&workspace)? {
        Some(declared) => declared,
        None => Declared::from_text(workspace.root(), "schema = 1\n".to_owned())?,
    };
    shell.diagnostics(&before.diagnostics, &before.sources())?;
    if has_errors(&before.diagnostics) {
        return Ok(false);
    }
    let mut headers = headers::Headers::new();
    for path in &options.headers {
        headers.extend(headers::read(path)?);
    }
    let text = declare(options, &headers, &before)
        .map_err(|why| Error::new(format!("could not edit `{}`: {why}", before.display_path)))?;
    let declared = Declared::from_text(workspace.root(), text)?;
    let mut diagnostics = declared.diagnostics.clone();
    let mut operations = vec![Operation::write(
        workspace.root().join(FILE),
        declared.display_path.clone(),
        declared.text.clone(),
    )?];
    if !has_errors(&diagnostics) {
        operations.extend(toolkit::operations(
            &workspace,
            &declared,
            &headers,
            &mut diagnostics,
        )?);
    }
    shell.diagnostics(&diagnostics, &declared.sources())?;
    if has_errors(&diagnostics) {
        return Ok(false);
    }
    let is_empty = declared.manifest.toolkit.as_ref().is_none_or(|table| {
        let table = &table.value;
        table.cuda.is_none() && table.hip.is_none() && table.override_build_scripts.is_empty()
    });
    if is_empty {
        return Err(Error::new("no toolkit release given").help(
            "add `--toolkit cuda=12.8` or `--toolkit hip=6.4`; or name real headers with \
             `--toolkit-headers`",
        ));
    }
    operations.retain(|operation| !operation.is_done());
    let mut progress = SyncProgress::new(&workspace, Some(&declared), shell);
    ops::apply(&operations, |operation| progress.report(operation))?;
    progress.finish();
    if operations.is_empty() {
        shell.status("Fresh", format!("everything agrees with {FILE}"));
    }
    Ok(true)
}

/// Sets the command line's values in `[toolkit]` of the text.
fn declare(
    options: &AddToolkit,
    headers: &headers::Headers,
    before: &Declared,
) -> std::result::Result<String, String> {
    let mut document: DocumentMut = before.text.parse().map_err(|e| format!("{e}"))?;
    if !document.contains_key("toolkit") {
        document.insert("toolkit", Item::Table(Table::new()));
        separate(&mut document, "toolkit");
    }
    let table = document["toolkit"]
        .as_table_like_mut()
        .ok_or("`toolkit` is not a table")?;
    if let Some(dir) = &options.dir {
        set(table, "path", dir.as_str());
    }
    for (key, family) in [("cuda", "cuda"), ("hip", "rocm")] {
        let release = match options.release(key) {
            Some(release) => Some(release.to_owned()),
            None => header_release(family, headers).map(|version| version.to_string()),
        };
        if let Some(release) = release {
            set(table, key, release);
        }
    }
    if options.force {
        set(table, "force", true);
    }
    if !options.override_build_scripts.is_empty() {
        let declared = before
            .manifest
            .toolkit
            .iter()
            .flat_map(|table| &table.value.override_build_scripts)
            .map(|name| &name.value);
        let mut crates: Vec<&str> = Vec::new();
        for name in declared.chain(&options.override_build_scripts) {
            if !crates.contains(&name.as_str()) {
                crates.push(name);
            }
        }
        set(table, "override-build-scripts", Array::from_iter(crates));
    }
    Ok(as_before(&before.text, &document.to_string()))
}

/// Release that a family's own header names.
fn header_release(family: &str, headers: &headers::Headers) -> Option<Version> {
    installed::version_in(family, headers.get(installed::header(family)?)?)
}

/// Sets the value of a key; the spaces and the comment around an old value stay.
fn set(table: &mut dyn TableLike, key: &str, value: impl Into<Value>) {
    let mut value = value.into();
    match table.get_mut(key).and_then(Item::as_value_mut) {
        Some(old) => {
            *value.decor_mut() = old.decor().clone();
            *old = value;
        }
        None => drop(table.insert(key, Item::Value(value))),
    }
}
