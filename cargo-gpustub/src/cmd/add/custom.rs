//! `add --from`: table and symbol list of a user-defined library, read from the library.

use std::collections::BTreeMap;
use std::path::Path;

use gpustub_cdecl::{ResultClass, Results};
use gpustub_core::diag::{has_errors, listing};
use gpustub_core::library::{Library, Returns, is_id};
use gpustub_core::manifest::Stub;
use gpustub_core::symbols::{SymbolList, is_name};
use gpustub_image::{ImageFormat, LibraryExports};
use gpustub_workspace::edit::as_before;
use gpustub_workspace::edit::gpustub_toml::add_stub;
use gpustub_workspace::error::{Error, Result};
use gpustub_workspace::ops::Pending;
use gpustub_workspace::report::Sources;
use gpustub_workspace::shell::Shell;
use gpustub_workspace::tables::{Declared, FILE};
use gpustub_workspace::workspace::target;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Value};

use super::system::LibraryFile;
use crate::c_headers::{self, HeaderRequest};
use crate::{cli, exports};

/// Key of the names to request from the loader.
const LOAD_NAMES: &str = "load-names";

/// The table and the list of the library that the command line names; `None`: errors were printed.
pub fn edits(
    options: &cli::Add,
    file: &Path,
    declared: &Declared,
    shell: &mut Shell,
) -> Result<Option<Pending>> {
    let id = library_id(options)?;
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
    let Some(exports) = read_exports(file, stub, shell)? else {
        return Ok(None);
    };
    let results = results(options, &exports)?;
    let mut list = exports.list;
    let kept = classify(&mut list, &before, &results.classes);
    let library = LibraryFile {
        file,
        format: exports.format,
        list: &list,
    };
    let load_name = usable_name(id, &library)?;
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
        .map_err(|why| Error::new(format!("could not edit `{}`: {why}", declared.display_path)))?;
    let mut added = Declared::from_text(&declared.directory, text.clone())?;
    added.manifest.stubs.retain(|stub| stub.id.value == id);
    added.inputs.symbol_files.insert(&path, list_text.clone());
    let (_, diagnostics) = added.plan(&target(library.triple())?, &added.inputs);
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
    report(&list, &kept, options, shell);
    Ok(Some(edits))
}

/// The name to request from the loader, unless a symbol list cannot have it.
fn usable_name(id: &str, library: &LibraryFile<'_>) -> Result<String> {
    let name = library.load_name();
    if is_name(&name) {
        return Ok(name);
    }
    let message = format!(
        "`{}` has the name `{}`: names in symbol lists and after `-l` have no spaces",
        library.file.display(),
        name.escape_debug()
    );
    Err(Error::new(message).help(format!(
        "give a copy with a name without spaces, then write the name to `load-names` of `[stub.{id}]`"
    )))
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

/// Reads the list of the library's exports. `None`: the library cannot be read.
fn read_exports(
    file: &Path,
    stub: Option<&Stub>,
    shell: &mut Shell,
) -> Result<Option<LibraryExports>> {
    let allowed_symbols = stub.map_or(&[][..], |stub| &stub.custom.allowed_symbols);
    let read = exports::read(file, &|name| {
        allowed_symbols.iter().any(|symbol| symbol.value == name)
    });
    match read {
        Ok((exports, diagnostics)) => {
            shell.diagnostics(&diagnostics, &Sources::new())?;
            Ok(Some(exports))
        }
        Err(error) => {
            shell.diagnostics(&[error.diagnostic()], &Sources::new())?;
            Ok(None)
        }
    }
}

/// The id of the library.
fn library_id(options: &cli::Add) -> Result<&str> {
    let [id] = options.libraries.as_slice() else {
        return Err(Error::new("`--from` describes one library")
            .help("run the command once for each library"));
    };
    if !is_id(id) {
        let message = format!("`{}` cannot be the name of a library", id.escape_debug());
        let help = "a name has lower-case letters, digits, `-` and `_`, and begins with a letter";
        return Err(Error::new(message).help(help));
    }
    Ok(id)
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

/// Classes of the functions by the headers of the command line.
fn results(options: &cli::Add, exports: &LibraryExports) -> Result<Results> {
    let list = &exports.list;
    let custom = &options.own;
    if custom.headers.is_empty() {
        return Ok(Results::default());
    }
    let request = HeaderRequest {
        paths: &custom.headers,
        include: &custom.include,
        clang_arg: &custom.clang_arg,
        windows_machine: list
            .machine
            .as_deref()
            .filter(|_| exports.format == ImageFormat::Pe),
        known: list.soname.as_deref().and_then(c_headers::known),
        option: "`--headers`",
        without: "return types stay unknown",
    };
    let declarations = request.read(&|name| !list.lookup(name).is_empty())?;
    Ok(Results::new(&declarations))
}

/// Sets the classes of functions: those of the previous list, else those of the headers. Returns the
/// functions for which the two differ.
fn classify(
    list: &mut SymbolList,
    before: &SymbolList,
    classes: &BTreeMap<String, ResultClass>,
) -> Vec<String> {
    let mut kept = Vec::new();
    for symbol in &mut list.symbols {
        let old = before
            .lookup(&symbol.name)
            .iter()
            .find_map(|entry| entry.returns.clone());
        let new = classes.get(&symbol.name).and_then(|class| returns(*class));
        if old.is_some() && new.is_some() && old != new {
            kept.push(symbol.name.clone());
        }
        symbol.returns = old.or(new);
    }
    kept
}

/// `None`: the struct is larger than a stub fills.
fn returns(class: ResultClass) -> Option<Returns> {
    let text = match class {
        ResultClass::Void => "void".to_owned(),
        ResultClass::Status => "status".to_owned(),
        ResultClass::String => "string".to_owned(),
        ResultClass::Null => "null".to_owned(),
        ResultClass::Struct(size) => format!("zeroed-struct:{size}"),
        ResultClass::Hfa(size) => format!("zeroed-hfa:{size}"),
    };
    Returns::parse(&text)
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

fn report(list: &SymbolList, kept: &[String], options: &cli::Add, shell: &mut Shell) {
    if !kept.is_empty() {
        shell.note(format!(
            "kept `returns=` of the symbol list, which the headers contradict: {}",
            listing(kept)
        ));
    }
    let unknown: Vec<&str> = list
        .functions()
        .filter(|symbol| symbol.returns.is_none())
        .map(|symbol| symbol.name.as_str())
        .collect();
    if unknown.is_empty() {
        return;
    }
    let next_step = if options.own.headers.is_empty() {
        "add `--headers` with the library's header, or `returns=` to the list"
    } else {
        "the headers do not declare them: add `returns=` to the list"
    };
    shell.note(format!(
        "unknown return types of {} functions, which return NULL or 0 if the library is missing: {}; {next_step}",
        unknown.len(),
        listing(&unknown)
    ));
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

    #[test]
    fn the_list_wins_over_the_headers() {
        let parse_list =
            |text: &str| SymbolList::parse("x", &format!("@gpustub-symbols 1\n{text}")).0;
        let mut list = parse_list("a\nb\nc\nd\n");
        let before = parse_list("a returns=null\nb returns=value:-1\nz returns=void\n");
        let classes = BTreeMap::from([
            ("a".to_owned(), ResultClass::Null),
            ("b".to_owned(), ResultClass::Status),
            ("c".to_owned(), ResultClass::Hfa(32)),
        ]);
        assert_eq!(classify(&mut list, &before, &classes), ["b"]);
        assert_eq!(
            list.to_text(),
            "@gpustub-symbols 1\na returns=null\nb returns=value:-1\nc returns=zeroed-hfa:32\nd\n"
        );
    }
}
