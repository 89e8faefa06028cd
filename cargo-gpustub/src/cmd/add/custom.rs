//! `add --from`: table and symbol list of a user-defined library, read from the library.

use std::collections::BTreeMap;
use std::path::Path;

use gpustub_cdecl::Results;
use gpustub_core::diag::{Diagnostic, MISSING_LOAD_NAME, UNKNOWN_RESULT, has_errors, listing};
use gpustub_core::library::{Library, Returns};
use gpustub_core::manifest::Stub;
use gpustub_core::symbols::SymbolList;
use gpustub_workspace::display_path::slashes;
use gpustub_workspace::edit::as_before;
use gpustub_workspace::edit::gpustub_toml::add_stub;
use gpustub_workspace::error::{Error, Result};
use gpustub_workspace::ops::Pending;
use gpustub_workspace::report::Sources;
use gpustub_workspace::shell::Shell;
use gpustub_workspace::tables::{Declared, FILE};
use gpustub_workspace::workspace::target;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Value};

use crate::cli;
use crate::state::plan_errors;
use crate::user_defined::{self, DescribedLibrary, LibraryFile};

/// Key of the names to request from the loader.
const LOAD_NAMES: &str = "load-names";

/// The table and the list of the library that the command line names; `None`: errors were printed. `syncs`: whether `sync`
/// follows.
pub fn edits(
    options: &cli::Add,
    file: &Path,
    declared: &Declared,
    syncs: bool,
    shell: &mut Shell,
) -> Result<Option<Pending>> {
    let [id] = options.libraries.as_slice() else {
        return Err(Error::new("`--from` describes one library")
            .help("run the command once for each library"));
    };
    let id = id.as_str();
    user_defined::check_id(id)?;
    let stub = declared
        .manifest
        .stubs
        .iter()
        .find(|stub| stub.id.value == id);
    let path = list_path(id, stub)?;
    let old_text = declared.inputs.symbol_files.get(&path);
    let Some(before) = parse_previous_list(&path, old_text, shell)? else {
        return Ok(None);
    };
    let allowed_symbols = stub.map_or(&[][..], |stub| &stub.custom.allowed_symbols);
    let headers = &options.own.headers;
    let read = user_defined::read(file, allowed_symbols, &before, headers, shell)?;
    let Some(DescribedLibrary {
        list,
        format,
        results,
        kept,
        ..
    }) = read
    else {
        return Ok(None);
    };
    let library = LibraryFile {
        file,
        format,
        list: &list,
    };
    let load_name = library.usable_name(id)?;
    let merged = library.merged(&before);
    let new_list = merged.as_ref().unwrap_or(&list);
    let list_text = with_comments(old_text.map_or("", String::as_str), &new_list.to_text());

    let header = options
        .header_version
        .last()
        .map(|header| header.version.as_str());
    let keys = table_keys(id, stub, &library, &path, &results);
    let text = add_stub(&declared.text, id, header)
        .and_then(|text| complete(&text, id, &keys))
        .and_then(|text| set_default_result(&text, id, headers.returns.as_ref()))
        .map_err(|why| Error::new(format!("could not edit `{}`: {why}", declared.display_path)))?;
    let mut added = Declared::from_text(&declared.directory, text.clone())?;
    added.manifest.stubs.retain(|stub| stub.id.value == id);
    added.inputs.symbol_files.insert(&path, list_text.clone());
    let (_, mut diagnostics) = added.plan(&target(library.triple())?, &added.inputs);
    if syncs {
        // `sync` reports them with all other tables.
        diagnostics.retain(|diagnostic| diagnostic.code.id != UNKNOWN_RESULT.id);
    }
    plan_errors::allow_unknown_results(&mut diagnostics);
    diagnostics.extend(unlisted_load_name(&added, &library));
    shell.diagnostics(&diagnostics, &added.sources())?;
    if has_errors(&diagnostics) {
        return Ok(None);
    }

    let mut edits = Pending::default();
    edits.write(&declared.directory.join(&path), list_text)?;
    edits.write(&declared.directory.join(FILE), text)?;
    let verb = match (edits.is_empty(), stub) {
        (true, _) => "Fresh",
        (false, None) => "Adding",
        (false, Some(_)) => "Changing",
    };
    let count = list.functions().count();
    shell.status(verb, format!("{id} ({load_name}): {count} functions"));
    if let Some(soname) = merged.as_ref().and_then(|list| list.soname.as_ref()) {
        shell.note(format!(
            "{path} is for both systems: it keeps the functions of {soname}"
        ));
    }
    report(&kept, shell);
    Ok(Some(edits))
}

/// Warning that programs load other versions of the library than the file, by the load names of the table.
fn unlisted_load_name(declared: &Declared, library: &LibraryFile<'_>) -> Option<Diagnostic> {
    let stub = declared.manifest.stubs.first()?;
    let names = stub.custom.load_names.get(library.system())?;
    let first = names.first()?;
    let load_name = library.load_name();
    if names
        .iter()
        .any(|name| library.is_same_name(&name.value.name, &load_name))
    {
        return None;
    }
    let names: Vec<&str> = names.iter().map(|name| name.value.name.as_str()).collect();
    let message = format!(
        "`{load_name}`, the name of `{}`, is not among the load names of `{}`: programs load {}",
        slashes(library.file),
        stub.id.value,
        listing(&names)
    );
    let help = format!(
        "name it first, `{} = [\"{load_name}\", \"{}\"]`; leave out versions whose functions have other parameters",
        library.system(),
        names.join("\", \"")
    );
    let warning = Diagnostic::warning(&MISSING_LOAD_NAME, message).help(help);
    Some(warning.with_origin(&declared.display_path, first.span.clone()))
}

/// Parses the previous symbol list, and reports what is wrong in it. `None`: it has errors.
fn parse_previous_list(
    path: &str,
    text: Option<&String>,
    shell: &mut Shell,
) -> Result<Option<SymbolList>> {
    let Some(text) = text else {
        return Ok(Some(SymbolList::default()));
    };
    let (list, diagnostics) = SymbolList::parse(path, text);
    if has_errors(&diagnostics) {
        let sources = Sources::from([(path.to_owned(), text.clone())]);
        shell.diagnostics(&diagnostics, &sources)?;
        return Ok(None);
    }
    Ok(Some(list))
}

/// Path of the symbol list, relative to `GpuStub.toml`.
fn list_path(id: &str, stub: Option<&Stub>) -> Result<String> {
    match stub.and_then(|stub| stub.custom.symbols.as_ref()) {
        Some(path) => Ok(path.value.clone()),
        None if Library::builtin(id).is_some() => {
            let message = format!("gpustub knows `{id}`, and brings its symbol list");
            Err(Error::new(message).help(format!(
                "run `cargo gpustub add {id}`; to replace the list, set `symbols` in `[stub.{id}]` first"
            )))
        }
        None => Ok(format!("symbols/{id}.symbols")),
    }
}

/// Keys that describe the library, each with its value and a comment.
fn table_keys(
    id: &str,
    stub: Option<&Stub>,
    library: &LibraryFile<'_>,
    path: &str,
    results: &Results,
) -> Vec<(&'static str, Value, Option<String>)> {
    let mut keys = Vec::new();
    let link_name = library.link_name();
    if let Some(link_name) = link_name.filter(|name| stub.is_none() && name != id) {
        keys.push(("link-names", Array::from_iter([link_name]).into(), None));
    }
    keys.push((LOAD_NAMES, library.load_names().into(), None));
    keys.push(("symbols", path.into(), None));
    if let Some((name, code)) = &results.unavailable {
        let fallback = InlineTable::from_iter([("status", i64::from(*code))]);
        keys.push(("fallback", fallback.into(), Some(name.clone())));
    }
    keys
}

/// Sets `fallback.returns`, if the command line has one.
fn set_default_result(
    text: &str,
    id: &str,
    returns: Option<&Returns>,
) -> std::result::Result<String, String> {
    let Some(returns) = returns else {
        return Ok(text.to_owned());
    };
    let mut document: DocumentMut = text.parse().map_err(|e| format!("{e}"))?;
    let stub = document.get_mut("stub").and_then(|stubs| stubs.get_mut(id));
    let fallback = stub.and_then(Item::as_table_like_mut).map(|table| {
        let empty = || Item::Value(InlineTable::new().into());
        table.entry("fallback").or_insert_with(empty)
    });
    let fallback = fallback.ok_or_else(|| format!("no `stub.{id}`"))?;
    let decor = fallback.as_value().map(|value| value.decor().clone());
    let table = fallback.as_table_like_mut().ok_or("not a table")?;
    table.insert("returns", Item::Value(returns.to_string().into()));
    table.fmt();
    if let (Some(value), Some(decor)) = (fallback.as_value_mut(), decor) {
        *value.decor_mut() = decor;
    }
    Ok(as_before(text, &document.to_string()))
}

/// Adds the keys that `[stub.<id>]` lacks, and the systems that its load names lack.
fn complete(
    text: &str,
    id: &str,
    keys: &[(&'static str, Value, Option<String>)],
) -> std::result::Result<String, String> {
    let mut document: DocumentMut = text.parse().map_err(|e| format!("{e}"))?;
    let stub = document.get_mut("stub").and_then(|stubs| stubs.get_mut(id));
    let stub = stub.ok_or_else(|| format!("no `stub.{id}`"))?;
    // A comment would end an inline table.
    let has_lines = stub.is_table();
    let table = stub.as_table_like_mut().ok_or("not a table")?;
    for (key, value, comment) in keys {
        if !table.contains_key(key) {
            let mut value = value.clone();
            if let Some(comment) = comment.as_ref().filter(|_| has_lines) {
                value.decor_mut().set_suffix(format!(" # {comment}"));
            }
            table.insert(key, Item::Value(value));
        } else if *key == LOAD_NAMES
            && let (Some(old), Some(new)) = (table.get_mut(key), value.as_inline_table())
        {
            add_systems(old, new);
        }
    }
    Ok(as_before(text, &document.to_string()))
}

/// Adds the load names of other systems.
fn add_systems(old: &mut Item, new: &InlineTable) {
    let Some(table) = old.as_table_like_mut() else {
        return;
    };
    for (system, names) in new {
        if !table.contains_key(system) {
            table.insert(system, Item::Value(names.clone()));
        }
    }
    if let Some(table) = old.as_inline_table_mut() {
        table.fmt();
    }
}

/// Text of a new list, with the comments of the previous one before the same lines.
fn with_comments(before: &str, text: &str) -> String {
    let mut above: BTreeMap<&str, String> = BTreeMap::new();
    let mut comments = String::new();
    for line in before.lines() {
        if line.trim_start().starts_with('#') {
            comments.push_str(line);
            comments.push('\n');
        } else if !comments.is_empty() && !line.trim().is_empty() {
            above
                .entry(first_word(line))
                .or_default()
                .push_str(&comments);
            comments.clear();
        }
    }
    let mut new = String::new();
    for line in text.split_inclusive('\n') {
        if let Some(comments) = above.remove(first_word(line)) {
            new.push_str(&comments);
        }
        new.push_str(line);
    }
    new + &comments
}

fn first_word(line: &str) -> &str {
    line.split_whitespace().next().unwrap_or_default()
}

fn report(kept: &[String], shell: &mut Shell) {
    if !kept.is_empty() {
        shell.note(format!(
            "kept `returns=` of the symbol list, which the headers contradict: {}",
            listing(kept)
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_stay_above_their_lines() {
        let before =
            "@gpustub-symbols 1\n# of 3.1\n@soname a\n# x\n# y\nacmeB\nacmeC\n# z\nacmeD\n# end\n";
        let after = "@gpustub-symbols 1\n@soname b\nacmeA\nacmeB returns=null\nacmeC\n";
        assert_eq!(
            with_comments(before, after),
            "@gpustub-symbols 1\n# of 3.1\n@soname b\nacmeA\n# x\n# y\nacmeB returns=null\nacmeC\n# end\n"
        );
        assert_eq!(with_comments("", after), after);
    }

    #[test]
    fn keys_of_a_table_stay() {
        let keys = [
            ("symbols", "new".into(), None),
            (
                "fallback",
                InlineTable::from_iter([("status", 1)]).into(),
                Some("ACME_X".to_owned()),
            ),
        ];
        for (before, after) in [
            (
                "[stub.acme] # a\nsymbols = 'old' # b\n",
                "[stub.acme] # a\nsymbols = 'old' # b\nfallback = { status = 1 } # ACME_X\n",
            ),
            (
                "[stub]\nacme = {}\n",
                "[stub]\nacme = { symbols = \"new\", fallback = { status = 1 } }\n",
            ),
        ] {
            assert_eq!(complete(before, "acme", &keys).unwrap(), after);
        }
    }

    #[test]
    fn the_default_result_is_set() {
        for (before, after) in [
            (
                "[stub.acme]\nsymbols = 'x'\n",
                "[stub.acme]\nsymbols = 'x'\nfallback = { returns = \"status\" }\n",
            ),
            (
                "[stub.acme]\nfallback = { status = 7 } # ACME_X\n",
                "[stub.acme]\nfallback = { status = 7, returns = \"status\" } # ACME_X\n",
            ),
            (
                "[stub.acme.fallback]\nreturns = 'null'\n",
                "[stub.acme.fallback]\nreturns = \"status\"\n",
            ),
        ] {
            let edited = set_default_result(before, "acme", Some(&Returns::Status));
            assert_eq!(edited.unwrap(), after);
        }
    }

    #[test]
    fn load_names_of_another_system_are_added() {
        let names = InlineTable::from_iter([("windows", Array::from_iter(["b"]))]);
        let keys = [(LOAD_NAMES, names.into(), None)];
        for (before, after) in [
            (
                "[stub.acme]\nload-names = { linux = [\"a\"] } # c\n",
                "[stub.acme]\nload-names = { linux = [\"a\"], windows = [\"b\"] } # c\n",
            ),
            (
                "[stub.acme.load-names]\nlinux = [\"a\"]\n",
                "[stub.acme.load-names]\nlinux = [\"a\"]\nwindows = [\"b\"]\n",
            ),
            (
                "[stub.acme]\nload-names = { windows = [\"a\"] }\n",
                "[stub.acme]\nload-names = { windows = [\"a\"] }\n",
            ),
        ] {
            assert_eq!(complete(before, "acme", &keys).unwrap(), after);
        }
    }
}
