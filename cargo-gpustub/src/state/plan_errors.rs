//! Errors of a plan: providers of stubs and device links.

use cargo_metadata::Package;
use gpustub_core::diag::{Code, DUPLICATE_DEVICE_SYMBOL, Diagnostic, INDIRECT_DEVICE_LIBRARY};
use gpustub_workspace::device_graph::DeviceGraph;
use gpustub_workspace::graph::Graph;
use gpustub_workspace::providers::analyse;

/// Errors in the plan of the selected packages, whose files have no errors.
pub fn read(graph: &Graph, selected: &[&Package]) -> Vec<Diagnostic> {
    with_links(graph, selected, DeviceGraph::read(graph, selected).plan().1)
}

/// Errors of providers and of device links. Duplicate device code comes first: until one copy is
/// removed, `sync` writes no device link that could reach all libraries.
pub fn with_links(graph: &Graph, selected: &[&Package], links: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let has_code = |one: &Diagnostic, code: &Code| one.code.id == code.id;
    let mut found = analyse(&graph.nodes, &graph.images(selected));
    found.extend(links);
    if found
        .iter()
        .any(|one| has_code(one, &DUPLICATE_DEVICE_SYMBOL))
    {
        found.retain(|one| !has_code(one, &INDIRECT_DEVICE_LIBRARY));
        found.sort_by_key(|one| !has_code(one, &DUPLICATE_DEVICE_SYMBOL));
    }
    found
}
