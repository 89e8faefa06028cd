//! `cargo gpustub add`: `[stub.<library>]` and `[toolkit]` tables in `GpuStub.toml`.

mod toolkit;

use std::collections::BTreeSet;

use cargo_metadata::Metadata;
use gpustub_core::diag::has_errors;
use gpustub_core::library::Library;
use gpustub_edit::as_before;
use gpustub_report::error::{Error, Result};
use gpustub_report::ops::{self, Operation};
use gpustub_report::report::Sources;
use gpustub_report::shell::Shell;
use gpustub_workspace::selection::Selection;
use gpustub_workspace::tables::{Declared, FILE};
use gpustub_workspace::workspace::{Depth, Workspace, folder, target};
use toml_edit::{DocumentMut, Item, Table};

use crate::cli::{self, FamilyVersion};
use crate::shipped;
use crate::toolkit::installed::{self, Found};

/// Runs the command.
pub fn run(options: &cli::Add, shell: &mut Shell) -> Result<bool> {
    if !options.libraries.is_empty() && !add_libraries(options, shell)? {
        return Ok(false);
    }
    if options.toolkit.is_given() {
        return toolkit::add(&options.toolkit, &options.cargo, shell);
    }
    Ok(true)
}

fn add_libraries(options: &cli::Add, shell: &mut Shell) -> Result<bool> {
    let workspace = Workspace::load(&options.cargo, Depth::Members)?;
    let package = workspace.selected_one(|_| true)?;
    let (libraries, unknown) = shipped::look_up(&options.libraries);
    if !unknown.is_empty() {
        shell.diagnostics(&unknown, &Sources::new())?;
        return Ok(false);
    }
    let declared = Declared::read_all(&workspace, &[package])?.remove(0).1;
    shell.diagnostics(&declared.diagnostics, &declared.sources())?;
    if has_errors(&declared.diagnostics) {
        return Ok(false);
    }

    let mut text = declared.text.clone();
    let mut seen = BTreeSet::new();
    for library in libraries.iter().filter(|library| seen.insert(&library.id)) {
        let stub = declared
            .manifest
            .stubs
            .iter()
            .find(|stub| stub.id.value == library.id);
        let given = FamilyVersion::for_family(&options.header_version, &library.family);
        let header = match (given, stub) {
            (Some(header), _) => Some(header.to_owned()),
            (None, Some(_)) => None,
            (None, None) => propose(library, &options.cargo, shell),
        };
        if stub.is_some() && header.is_none() {
            shell.status(
                "Fresh",
                format!("{} is already declared in {}", library.id, declared.shown),
            );
            continue;
        }
        text = insert(&text, &library.id, header.as_deref())
            .map_err(|why| Error::new(format!("could not edit `{}`: {why}", declared.shown)))?;
        let with = header.map_or_else(String::new, |header| format!(", header version {header}"));
        shell.status(
            if stub.is_some() { "Changing" } else { "Adding" },
            format!("{} ({}){with}", library.id, library.title),
        );
    }
    let operation = Operation::write(folder(package).join(FILE), declared.shown.clone(), text)?;
    if !operation.is_done() {
        ops::apply(&[operation], |o| shell.status(o.verb(), &o.shown))?;
        shell.note("next: `cargo gpustub sync`");
    }
    Ok(true)
}

/// The header version that both the workspace and this machine agree on.
fn propose(library: &Library, options: &Selection, shell: &mut Shell) -> Option<String> {
    let family = toolkit_of(library);
    let mut graph = None;
    if family == "cuda" {
        // A workspace whose graph cannot be had (no network yet) can still declare a library.
        let loaded =
            target(None).and_then(|host| Workspace::load(options, Depth::Graph(&host.triple)));
        match loaded {
            Ok(loaded) => graph = Some(loaded.metadata),
            Err(error) => shell.detail("Skipped", format!("the dependency graph: {error}")),
        }
    }
    let found = headers(family, graph.as_ref());
    let Some(first) = found.first() else {
        if !library.abi.is_empty() {
            shell.note(format!(
                "no `header-version` for {id}: functions whose ABI changed between versions return \
                 \"not supported\" until `cargo gpustub add {id} --header-version VERSION` sets \
                 the version of the headers or bindings that the program is compiled against",
                id = library.id
            ));
        }
        return None;
    };
    let versions = || {
        found
            .iter()
            .map(|f| format!("{} ({})", f.version, f.origin))
    };
    if found.iter().any(|other| other.version != first.version) {
        shell.note(format!(
            "no `header-version` for {}: found several versions: {}; choose one with `--header-version`",
            library.id,
            versions().collect::<Vec<_>>().join(", ")
        ));
        return None;
    }
    shell.status(
        "Found",
        format!(
            "header version {}",
            versions().collect::<Vec<_>>().join(", ")
        ),
    );
    Some(first.version.to_string())
}

/// The family whose headers say which ones a program uses for a library. A toolkit says nothing of
/// the headers of a library that it does not bring.
fn toolkit_of(library: &Library) -> &str {
    if library.independent_major {
        ""
    } else {
        &library.family
    }
}

/// What is known of the headers of a family: the toolkit on this machine, and binding crates.
fn headers(family: &str, graph: Option<&Metadata>) -> Vec<Found> {
    let mut found: Vec<Found> = installed::installed(family).into_iter().collect();
    found.extend(
        graph
            .into_iter()
            .flat_map(|graph| installed::binding(family, graph)),
    );
    found
}

/// The header version, if all that is known of it says the same.
pub fn agreed(library: &Library, graph: &Metadata) -> Option<String> {
    let found = headers(toolkit_of(library), Some(graph));
    let first = found.first()?.version;
    let agree = found.iter().all(|other| other.version == first);
    agree.then(|| first.to_string())
}

/// The text with `[stub.<id>]` in it, and its `header-version` set if one is given.
pub fn insert(text: &str, id: &str, header: Option<&str>) -> std::result::Result<String, String> {
    let mut document: DocumentMut = text.parse().map_err(|e| format!("{e}"))?;
    let trailing = document.trailing().as_str().unwrap_or_default().to_owned();
    let empty = document.is_empty();
    let stubs = document.entry("stub").or_insert_with(|| {
        let mut stubs = Table::new();
        stubs.set_implicit(true);
        Item::Table(stubs)
    });
    let stubs = stubs.as_table_like_mut().ok_or("`stub` is not a table")?;
    let is_new = !stubs.contains_key(id);
    let stub = stubs.entry(id).or_insert_with(|| Item::Table(Table::new()));
    let table = stub
        .as_table_like_mut()
        .ok_or_else(|| format!("`stub.{id}` is not a table"))?;
    if let Some(header) = header {
        match table.get_mut("header-version").and_then(Item::as_value_mut) {
            Some(value) => {
                let decor = value.decor().clone();
                *value = header.into();
                *value.decor_mut() = decor;
            }
            None => drop(table.insert("header-version", toml_edit::value(header))),
        }
    }
    if let Some(table) = stub
        .as_table_mut()
        .filter(|table| is_new && !table.is_dotted())
    {
        // What stands at the end of the file stays above what comes after it.
        let comments = if trailing.trim().is_empty() {
            ""
        } else {
            trailing.as_str()
        };
        table
            .decor_mut()
            .set_prefix(format!("{comments}{}", if empty { "" } else { "\n" }));
        if !comments.is_empty() {
            document.set_trailing("");
        }
    }
    Ok(as_before(text, &document.to_string()))
}

#[cfg(test)]
mod tests {
    use super::insert;

    #[test]
    fn tables_are_added_and_the_rest_is_kept() {
        for (before, after) in [
            (
                "schema = 1\n",
                "schema = 1\n\n[stub.cudart]\nheader-version = \"12\"\n",
            ),
            (
                "schema = 1 # one\n# end\n",
                "schema = 1 # one\n# end\n\n[stub.cudart]\nheader-version = \"12\"\n",
            ),
            (
                "schema = 1\n\n[stub.nvrtc] # a\nmajors = [ \"12\" ]\n",
                "schema = 1\n\n[stub.nvrtc] # a\nmajors = [ \"12\" ]\n\n[stub.cudart]\nheader-version = \"12\"\n",
            ),
            (
                "schema = 1\n[stub.cudart]\n  header-version = \"11\" # old\n[stub.cuda]\n",
                "schema = 1\n[stub.cudart]\n  header-version = \"12\" # old\n[stub.cuda]\n",
            ),
            (
                "schema = 1\n[stub]\ncuda = {}\n",
                "schema = 1\n[stub]\ncuda = {}\n\n[stub.cudart]\nheader-version = \"12\"\n",
            ),
            (
                "schema = 1\nstub = { cuda = {} }\n",
                "schema = 1\nstub = { cuda = {} , cudart.header-version = \"12\" }\n",
            ),
        ] {
            assert_eq!(insert(before, "cudart", Some("12")).unwrap(), after);
        }
        assert_eq!(
            insert("schema = 1\n", "cuda", None).unwrap(),
            "schema = 1\n\n[stub.cuda]\n"
        );
        assert_eq!(
            insert("schema = 1\r\n", "cuda", None).unwrap(),
            "schema = 1\r\n\r\n[stub.cuda]\r\n"
        );
        assert!(insert("stub = 1", "cuda", None).is_err());
    }

    #[test]
    fn several_in_a_row() {
        let one = insert("schema = 1\n", "cudart", Some("12")).unwrap();
        let two = insert(&one, "cuda", None).unwrap();
        assert_eq!(
            two,
            "schema = 1\n\n[stub.cudart]\nheader-version = \"12\"\n\n[stub.cuda]\n"
        );
    }
}
