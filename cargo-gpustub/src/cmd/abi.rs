//! `cargo gpustub abi`: releases, ABI variants and prototypes of functions.

mod prototypes;
mod record;
mod show;

use std::collections::BTreeSet;

use gpustub_core::diag::{Diagnostic, UNKNOWN_FUNCTION, listing};
use gpustub_core::library::Library;
use gpustub_core::suggest::nearest;
use gpustub_workspace::error::Result;
use gpustub_workspace::report::{Sources, json::FORMAT_VERSION};
use gpustub_workspace::shell::Shell;
use serde_json::{Value, json};

use crate::cli::{self, AbiFormat};
use crate::shipped::look_up;
use record::{Record, Source};

/// Runs the command. Returns whether all names are known.
pub fn run(options: &cli::Abi, shell: &mut Shell) -> Result<bool> {
    let (selected, mut diagnostics) = match &options.library {
        Some(library) => look_up(std::slice::from_ref(library)),
        None => (
            Library::builtin_ids()
                .filter_map(Library::builtin)
                .collect(),
            Vec::new(),
        ),
    };
    let sources: Vec<Source> = selected.into_iter().map(Source::of).collect();
    let mut libraries = Vec::new();
    let mut records = Vec::new();
    if options.all && diagnostics.is_empty() {
        records = sources.iter().flat_map(Source::records).collect();
    }
    let mut seen = BTreeSet::new();
    for name in options.names.iter().filter(|name| seen.insert(*name)) {
        if let Some(source) = sources.iter().find(|source| source.library.id == *name) {
            // As text a library is summarized, as JSON its functions are listed.
            match options.format {
                AbiFormat::Text => libraries.push(source),
                AbiFormat::Json | AbiFormat::Jsonl => records.extend(source.records()),
            }
            continue;
        }
        let named = find(&sources, name);
        if named.is_empty() && !sources.is_empty() {
            diagnostics.push(unknown(&sources, name));
        }
        records.extend(named);
    }
    shell.data(match options.format {
        AbiFormat::Text => show::text(&libraries, &records),
        AbiFormat::Jsonl => records
            .iter()
            .map(|record| format!("{}\n", record.json()))
            .collect(),
        AbiFormat::Json => {
            let functions: Vec<Value> = records.iter().map(Record::json).collect();
            let document = json!({ "format_version": FORMAT_VERSION, "functions": functions });
            format!("{document}\n")
        }
    })?;
    shell.diagnostics(&diagnostics, &Sources::new())?;
    Ok(diagnostics.is_empty())
}

/// Functions of this name, and those that it means in sources.
fn find<'s>(sources: &'s [Source], name: &str) -> Vec<Record<'s>> {
    let mut named = Vec::new();
    for source in sources {
        let meant: Vec<&str> = source
            .prototypes
            .macros
            .iter()
            .filter(|row| row.source == name)
            .flat_map(|row| row.functions.iter().map(|(_, function)| *function))
            .collect();
        let records = source.records();
        named.extend(
            records
                .into_iter()
                .filter(|record| record.name == name || meant.contains(&record.name)),
        );
    }
    named
}

/// The error for a name that no library has, or not the selected one.
fn unknown(sources: &[Source], name: &str) -> Diagnostic {
    let (message, owners) = match sources {
        [source] => (
            format!("`{}` has no function `{name}`", source.library.id),
            owners(name),
        ),
        _ => (
            format!("no known library has a function `{name}`"),
            Vec::new(),
        ),
    };
    let error = Diagnostic::error(&UNKNOWN_FUNCTION, message);
    if let [owner, ..] = owners[..] {
        let libraries = listing(&owners);
        return error.help(format!(
            "it is a function of {libraries}: omit `--library`, or pass `--library {owner}`"
        ));
    }
    let known = sources.iter().flat_map(|source| {
        let functions = source.library.symbols.functions();
        let functions = functions.map(|symbol| symbol.name.as_str());
        functions.chain([source.library.id.as_str()])
    });
    error.help(match nearest(name, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`cargo gpustub abi LIBRARY` counts the functions of a library, and `cargo gpustub symbols FILE` \
                 lists those of a file"
            .to_owned(),
    })
}

/// Libraries with a function of this name, or one that it means in sources.
fn owners(name: &str) -> Vec<&'static str> {
    Library::builtin_ids()
        .filter(|id| {
            let source = Library::builtin(id).map(Source::of);
            !find(source.as_slice(), name).is_empty()
        })
        .collect()
}
