//! Errors of a plan: providers of stubs and device links.

use cargo_metadata::Package;
use gpustub_core::diag::{Code, DUPLICATE_DEVICE_SYMBOL, Diagnostic, INDIRECT_DEVICE_LIBRARY};
use gpustub_workspace::device_graph::DeviceGraph;
use gpustub_workspace::graph::PackageGraph;
use gpustub_workspace::providers::analyse;

/// Errors in the plan of the selected packages, whose files have no errors.
pub fn read(graph: &PackageGraph, selected: &[&Package]) -> Vec<Diagnostic> {
    with_links(graph, selected, DeviceGraph::read(graph, selected).plan().1)
}

/// Errors of providers and of device links. Duplicate device code comes first: until one copy is
/// removed, `sync` writes no device link that could reach all libraries.
pub fn with_links(
    graph: &PackageGraph,
    selected: &[&Package],
    links: Vec<Diagnostic>,
) -> Vec<Diagnostic> {
    let has_code = |diagnostic: &Diagnostic, code: &Code| diagnostic.code.id == code.id;
    let mut diagnostics = analyse(&graph.nodes, &graph.images(selected));
    diagnostics.extend(links);
    if diagnostics
        .iter()
        .any(|diagnostic| has_code(diagnostic, &DUPLICATE_DEVICE_SYMBOL))
    {
        diagnostics.retain(|diagnostic| !has_code(diagnostic, &INDIRECT_DEVICE_LIBRARY));
        diagnostics.sort_by_key(|diagnostic| !has_code(diagnostic, &DUPLICATE_DEVICE_SYMBOL));
    }
    diagnostics
}
