//! Functions and libraries as text.

use std::fmt::Write as _;

use gpustub_core::library::Returns;
use gpustub_core::version::Version;

use super::record::{Change, Record, Source, returns, written};

/// Text of the libraries, then of the functions.
pub fn text(libraries: &[&Source], records: &[Record<'_>]) -> String {
    let mut blocks: Vec<String> = libraries.iter().map(|source| library(source)).collect();
    blocks.extend(records.iter().map(function));
    blocks.join("\n")
}

fn row(text: &mut String, title: &str, value: &str) {
    let _ = writeln!(text, "  {title:<13}{value}");
}

fn library(source: &Source) -> String {
    let library = source.library;
    let mut text = format!("{} ({})\n", library.id, library.title);
    let releases: Vec<String> = library
        .symbols
        .releases
        .iter()
        .map(ToString::to_string)
        .collect();
    row(&mut text, "releases", &releases.join(" "));
    let records = source.records();
    row(&mut text, "functions", &records.len().to_string());
    let changed = library.abi.names();
    let changed = changed.filter(|name| library.abi.depends_on_headers(name));
    row(&mut text, "ABI changes", &changed.count().to_string());
    if let (Some(first), Some(last)) = (library.abi.headers().first(), library.abi.headers().last())
    {
        row(&mut text, "headers", &format!("{first} to {last}"));
    }
    let library_missing = library.status.library_missing;
    row(&mut text, "status", &status(source, library_missing));
    text
}

/// Codes of functions that return a status; `library_missing`: without the library.
fn status(source: &Source, library_missing: i32) -> String {
    let status = &source.library.status;
    format!(
        "{} without the library, {} without the function, {} if refused",
        code(source, library_missing),
        code(source, status.missing),
        code(source, status.refused),
    )
}

/// A status code with its name: `35 (cudaErrorInsufficientDriver)`.
fn code(source: &Source, code: i32) -> String {
    let number = code.to_string();
    let name = source.library.errors.lines().find_map(|line| {
        let (row_code, name) = line.split_once(' ')?;
        (row_code == number).then_some(name)
    });
    match name {
        Some(name) => format!("{number} ({name})"),
        None => number,
    }
}

fn function(record: &Record<'_>) -> String {
    let mut text = format!("{} ({})\n", record.name, record.source.library.id);
    let ranges: Vec<String> = record
        .releases()
        .iter()
        .map(|(since, until)| {
            let text = range(*since, *until);
            match record.lacking_before(*since) {
                Some(before) => format!("{text} ({before} lacks it, none between was read)"),
                None => text,
            }
        })
        .collect();
    row(&mut text, "releases", &ranges.join(", "));
    for symbol in &record.symbols {
        if let Some(system) = symbol.system {
            row(&mut text, "system", system);
        }
        if let Some(version) = &symbol.version {
            row(&mut text, "version node", version);
        }
    }
    for meaning in record.meanings() {
        let below = meaning
            .below
            .map_or(String::new(), |below| format!(" and before {below}"));
        let value = format!(
            "{}, in headers from {}{below}",
            meaning.source, meaning.since
        );
        row(&mut text, "in sources", &value);
    }
    let prototypes = record.prototypes();
    if prototypes.is_empty() {
        let reason = if record.source.library.abi.headers().is_empty() {
            "unknown: headers of this library were not compared"
        } else {
            "unknown: no header in C that was compared declares it"
        };
        row(&mut text, "prototype", reason);
    }
    for prototype in prototypes {
        let title = match prototype.since {
            Some(release) => format!("  from {release}"),
            None => "prototype".to_owned(),
        };
        row(&mut text, &title, &prototype.text);
    }
    for line in variants(&record.changes()) {
        row(&mut text, "ABI", &line);
    }
    let result = match record.returns() {
        Returns::Status => status(record.source, record.library_missing()),
        other => returns(&other),
    };
    row(&mut text, "returns", &result);
    for out in record.outs() {
        let value = match written(out.kind) {
            (writes, Some(size)) => format!("argument {}: {writes}, {size} bytes", out.position),
            (writes, None) => format!("argument {}: {writes}", out.position),
        };
        row(&mut text, "writes", &value);
    }
    text
}

fn range(since: Version, until: Option<Version>) -> String {
    match until {
        Some(until) if until == since => since.to_string(),
        Some(until) => format!("{since} to {until}"),
        None => format!("{since} and newer"),
    }
}

/// Lines about the variants of a function.
fn variants(changes: &[Change]) -> Vec<String> {
    if changes.is_empty() {
        return vec!["one in all releases".to_owned()];
    }
    changes
        .iter()
        .map(|change| {
            let variant = match change.variant {
                Some(number) => format!("variant {number}"),
                None if change.is_exported => "not as headers declare it".to_owned(),
                None => "not exported".to_owned(),
            };
            let difference = change
                .difference
                .map_or(String::new(), |difference| format!(": {difference}"));
            format!("{variant} from {}{difference}", change.since)
        })
        .collect()
}
