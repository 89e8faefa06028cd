//! Errors of a plan: providers of stubs and device links.

use cargo_metadata::Package;
use gpustub_core::diag::{DUPLICATE_DEVICE_SYMBOL, Diagnostic, INDIRECT_DEVICE_LIBRARY};
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
    let mut diagnostics = analyse(&graph.nodes, &graph.images(selected));
    diagnostics.extend(links);
    if diagnostics
        .iter()
        .any(|diagnostic| diagnostic.code.id == DUPLICATE_DEVICE_SYMBOL.id)
    {
        diagnostics.retain(|diagnostic| diagnostic.code.id != INDIRECT_DEVICE_LIBRARY.id);
        diagnostics.sort_by_key(|diagnostic| diagnostic.code.id != DUPLICATE_DEVICE_SYMBOL.id);
    }
    diagnostics
}
