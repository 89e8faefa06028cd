//! Errors of a plan: providers of stubs and device links.

use cargo_metadata::Package;
use gpustub_core::diag::{
    DUPLICATE_DEVICE_SYMBOL, Diagnostic, INDIRECT_DEVICE_LIBRARY, Level, UNKNOWN_RESULT, has_errors,
};
use gpustub_core::manifest::LibraryType;
use gpustub_core::plan::{Inputs, Plan};
use gpustub_core::target::Target;
use gpustub_workspace::device_graph::DeviceGraph;
use gpustub_workspace::graph::PackageGraph;
use gpustub_workspace::providers::analyse;
use gpustub_workspace::tables::Declared;

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

/// The plan of a file for a build, whose stubs may be of a type that the target lacks.
pub fn plan(declared: &Declared, target: &Target, inputs: &Inputs) -> (Plan, Vec<Diagnostic>) {
    let (plan, mut diagnostics) = declared.plan(target, inputs);
    if !has_errors(&diagnostics) {
        diagnostics.extend(shared_stubs(declared, &plan));
    }
    (plan, diagnostics)
}

/// Error if the target has no shared stubs, and the plan has some.
fn shared_stubs(declared: &Declared, plan: &Plan) -> Option<Diagnostic> {
    let library = plan
        .libraries
        .iter()
        .find(|library| library.stubbed && library.library_type == LibraryType::Shared)?;
    let error = plan.target.check_shared_stubs()?;
    let mut stubs = declared.manifest.stubs.iter();
    let stub = stubs.find(|stub| stub.id.value == library.library.id)?;
    Some(error.with_origin(&declared.display_path, stub.id.span.clone()))
}

/// Functions without a known result as warnings, for commands that change tables: the list is written before a user can
/// complete it.
pub fn allow_unknown_results(diagnostics: &mut [Diagnostic]) {
    for diagnostic in diagnostics {
        if diagnostic.code.id == UNKNOWN_RESULT.id {
            diagnostic.level = Level::Warning;
            diagnostic.message.insert_str(0, "the build refuses ");
        }
    }
}
