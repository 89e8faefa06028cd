//! Device links of relocatable CUDA code, planned from a graph of libraries and programs.
//!
//! Each object of relocatable code calls, when its image is loaded, a function that only a device
//! link over it defines. In a process each object needs just one such link, and the link registers
//! its kernels only when all its objects have called. [`plan`] returns for every node of a
//! [`Graph`] the files built from it, its device link with the inputs, and the contents of its host
//! link; it rejects graphs in which an object would have no device link or several.

mod check;
#[cfg(feature = "tools")]
mod explain;
mod faults;
mod graph;
mod loading;
mod module;
#[cfg(feature = "tools")]
mod notation;
mod plan;
mod process;
#[cfg(feature = "tools")]
mod render;
mod runtime;
mod walk;

use crate::diag::Diagnostic;
use graph::ResolvedGraph;
use walk::Walk;

pub use graph::{Graph, Link, Node, NodeForm, NodeId, NodeKind, Open};
pub use loading::{LoadFacts, LoadFault, load_faults};
pub use module::{module_archs, module_lacks_arch, module_variable_taken};
pub use plan::{Artifact, LinkItem, LinkPlan, LinkReason, LinkRole, NodePlan};
pub use runtime::{hidden_stubs, runtime_names, shared_launches, static_runtime};

/// Plans a graph. If a diagnostic is an error, nothing must be built; if the graph itself is
/// invalid, the plan is empty.
pub fn plan(graph: &Graph) -> (LinkPlan<'_>, Vec<Diagnostic>) {
    let (graph, mut diagnostics) = match ResolvedGraph::new(graph) {
        Ok(graph) => (graph, Vec::new()),
        Err(errors) => (ResolvedGraph::empty(), errors),
    };
    let plan = LinkPlan {
        walk: Walk::new(graph),
    };
    diagnostics.extend(check::check_nodes(&plan));
    diagnostics.extend(process::check_processes(&plan));
    (plan, diagnostics)
}
