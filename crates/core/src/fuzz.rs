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
    check_origins(text, &diagnostics);
    if diagnostics.is_empty() {
        let reread = SymbolList::parse("x", &list.to_text());
        assert_eq!(reread, (list, Vec::new()));
    }
}

/// A `GpuStub.toml`, read, planned for two targets and rendered. What follows a NUL is its symbol
/// list `acme.symbols`.
pub fn manifest(text: &str) {
    let (text, symbols) = text.split_once('\0').unwrap_or((text, ""));
    let (manifest, diagnostics) = Manifest::parse("GpuStub.toml", text);
    check_origins(text, &diagnostics);
    let mut inputs = Inputs::default();
    inputs
        .symbol_files
        .insert("acme.symbols", symbols.to_owned());
    for triple in ["x86_64-unknown-linux-gnu", "x86_64-pc-windows-msvc"] {
        let target = Target::from_triple(triple).expect("a triple");
        let (plan, diagnostics) = plan(&manifest, &target, &inputs);
        check_origins_of_both(text, symbols, "acme.symbols", diagnostics);
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
            let entries = table.entries(name, header);
            assert!(
                entries.is_sorted_by(|a, b| a.below <= b.from),
                "{entries:?}"
            );
            for entry in &entries {
                let is_bound = entry.name.is_some();
                assert!(is_bound || entry.adapter.is_none(), "{entries:?}");
                // With a reason, the name is the function's own, which the library lacks.
                let is_own = entry.name.as_deref() == Some(name) && entry.adapter.is_none();
                assert!(!is_bound || is_own || entry.reason.is_none(), "{entries:?}");
                if let Some(Adapter::NullArgument(argument)) = entry.adapter {
                    assert!(argument < MAX_ARGUMENTS, "{entries:?}");
                }
            }
        }
    }
    let (_, diagnostics) = Library::parse("x.toml", text, symbols, abi);
    check_origins_of_both(text, symbols, "x.symbols", diagnostics);
}

/// A graph of device-link libraries: read, planned and rendered; a valid one, written and read again.
#[cfg(feature = "device-link")]
pub fn device_link(text: &str) {
    let (mut graph, syntax_errors) = Graph::parse("x", text);
    check_origins(text, &syntax_errors);
    let (plan, diagnostics) = device_link::plan(&graph);
    check_origins(text, &diagnostics);
    let _ = (plan.to_text(), plan.to_dot());
    for planned in plan.node_plans() {
        let _ = plan.explain(planned.node);
    }
    if syntax_errors.is_empty() {
        let (mut reread, syntax_errors) = Graph::parse("x", &graph.to_text());
        assert_eq!(syntax_errors, [], "{text:?}");
        for node in graph.nodes.iter_mut().chain(&mut reread.nodes) {
            node.origin = None;
        }
        assert_eq!(reread, graph, "{text:?}");
    }
}

/// Checks the locations of diagnostics about a manifest and its symbol list.
fn check_origins_of_both(
    text: &str,
    symbols: &str,
    symbols_file: &str,
    diagnostics: Vec<Diagnostic>,
) {
    let (list_diagnostics, manifest_diagnostics): (Vec<_>, Vec<_>) =
        diagnostics.into_iter().partition(|diagnostic| {
            let origin = diagnostic.origin.as_ref();
            origin.is_some_and(|origin| origin.file == symbols_file)
        });
    check_origins(symbols, &list_diagnostics);
    check_origins(text, &manifest_diagnostics);
}

/// Checks that the locations of diagnostics are inside the text.
fn check_origins(text: &str, diagnostics: &[Diagnostic]) {
    for diagnostic in diagnostics {
        let Some(origin) = &diagnostic.origin else {
            continue;
        };
        let span = &origin.span;
        assert!(
            span.start <= span.end && text.get(span.clone()).is_some(),
            "{span:?} in {text:?}"
        );
        let _ = line_column(text, span.start);
    }
}
