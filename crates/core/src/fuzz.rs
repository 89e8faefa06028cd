//! Properties of every text: the bodies of the fuzz targets in `tests/fuzz` and of the property
//! tests. Each panics if the reader is wrong, never because of its input.

use crate::abi_table::{AbiTable, Adapter, MAX_ARGUMENTS};
#[cfg(feature = "device-link")]
use crate::device_link::{self, Graph};
use crate::diag::{Diagnostic, line_column};
use crate::library::Library;
use crate::manifest::Manifest;
use crate::plan::Inputs;
use crate::planner::plan;
use crate::sources::render;
use crate::symbols::SymbolList;
use crate::target::Target;
use crate::version::HeaderVersion;

/// Reads a symbol list, and if it is valid, writes and reads it again.
pub fn symbols(text: &str) {
    let (list, diagnostics) = SymbolList::parse("x", text);
    places_are_inside(text, &diagnostics);
    if diagnostics.is_empty() {
        let again = SymbolList::parse("x", &list.to_text());
        assert_eq!(again, (list, Vec::new()));
    }
}

/// A `GpuStub.toml`, read, planned for two targets and rendered. What follows a NUL is its symbol
/// list `acme.symbols`.
pub fn manifest(text: &str) {
    let (text, symbols) = text.split_once('\0').unwrap_or((text, ""));
    let (manifest, diagnostics) = Manifest::parse("GpuStub.toml", text);
    places_are_inside(text, &diagnostics);
    let mut inputs = Inputs::default();
    inputs
        .symbol_files
        .insert("acme.symbols", symbols.to_owned());
    for triple in ["x86_64-unknown-linux-gnu", "x86_64-pc-windows-msvc"] {
        let target = Target::from_triple(triple).expect("a triple");
        let (plan, diagnostics) = plan(&manifest, &target, &inputs);
        check_places(text, symbols, "acme.symbols", diagnostics);
        render(&plan);
    }
}

/// A library manifest and, after a NUL each, its symbol list and its ABI table.
pub fn library(text: &str) {
    let (text, rest) = text.split_once('\0').unwrap_or((text, ""));
    let (symbols, abi) = rest.split_once('\0').unwrap_or((rest, ""));
    for name in AbiTable::parse("x.abi", abi).0.names() {
        let (table, _) = AbiTable::parse("x.abi", abi);
        for header in [
            None,
            HeaderVersion::parse("12"),
            HeaderVersion::parse("11.8"),
        ] {
            let found = table.entries(name, header);
            assert!(found.is_sorted_by(|a, b| a.below <= b.from), "{found:?}");
            for entry in &found {
                let bound = entry.name.is_some();
                assert!(bound || entry.adapter.is_none(), "{found:?}");
                // With a reason, the name is the function's own, which the library lacks.
                let own = entry.name.as_deref() == Some(name) && entry.adapter.is_none();
                assert!(!bound || own || entry.reason.is_none(), "{found:?}");
                if let Some(Adapter::NullArgument(argument)) = entry.adapter {
                    assert!(argument < MAX_ARGUMENTS, "{found:?}");
                }
            }
        }
    }
    let (_, diagnostics) = Library::parse("x.toml", text, symbols, abi);
    check_places(text, symbols, "x.symbols", diagnostics);
}

/// A graph of device-link libraries: read, planned and rendered; a valid one, written and read again.
#[cfg(feature = "device-link")]
pub fn device_link(text: &str) {
    let (mut graph, diagnostics) = Graph::parse("x", text);
    places_are_inside(text, &diagnostics);
    let (plan, found) = device_link::plan(&graph);
    places_are_inside(text, &found);
    let _ = (plan.to_text(), plan.to_dot());
    for planned in plan.all() {
        let _ = plan.explain(planned.node);
    }
    if diagnostics.is_empty() {
        let (mut again, diagnostics) = Graph::parse("x", &graph.to_text());
        assert_eq!(diagnostics, [], "{text:?}");
        for node in graph.nodes.iter_mut().chain(&mut again.nodes) {
            node.origin = None;
        }
        assert_eq!(again, graph, "{text:?}");
    }
}

/// Checks the locations of diagnostics about two files.
fn check_places(text: &str, symbols: &str, symbols_file: &str, diagnostics: Vec<Diagnostic>) {
    let (list, other): (Vec<_>, Vec<_>) = diagnostics
        .into_iter()
        .partition(|d| d.origin.as_ref().is_some_and(|o| o.file == symbols_file));
    places_are_inside(symbols, &list);
    places_are_inside(text, &other);
}

fn places_are_inside(text: &str, diagnostics: &[Diagnostic]) {
    for origin in diagnostics.iter().filter_map(|d| d.origin.as_ref()) {
        let span = &origin.span;
        assert!(
            span.start <= span.end && text.get(span.clone()).is_some(),
            "{span:?} in {text:?}"
        );
        let _ = line_column(text, span.start);
    }
}
