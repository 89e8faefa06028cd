//! Libraries as a graph for the planner of core.

use gpustub_core::device_link::{Graph, Link, Node, NodeForm, NodeKind};
use gpustub_core::gpu_arch::{Arch, Vendor};
use gpustub_core::manifest::LibraryType;

use super::metadata::DeviceLibrary;

/// Creates a node for each library, in their order.
pub(super) fn from_libraries(libraries: &[DeviceLibrary]) -> Graph {
    Graph {
        nodes: libraries.iter().map(node).collect(),
    }
}

/// Creates the same graph and, as its last node, a program that links every library that was built, for `archs`.
pub(super) fn with_program(package: &str, libraries: &[DeviceLibrary], archs: &[Arch]) -> Graph {
    let mut graph = from_libraries(libraries);
    // No library's name has a space in it.
    let name = format!("package {package}");
    let mut program = Node::new(name, NodeKind::Plain, NodeForm::Bin);
    program.archs = archs.to_vec();
    program.links = libraries
        .iter()
        .filter(|library| library.built)
        .map(|library| public_link(&library.name))
        .collect();
    graph.nodes.push(program);
    graph
}

fn node(library: &DeviceLibrary) -> Node {
    // A library that is left out, for lack of nvcc, has no code to link.
    let kind = if library.built && !library.archive.as_os_str().is_empty() {
        NodeKind::Rdc
    } else {
        NodeKind::Interface
    };
    let form = match library.library_type {
        LibraryType::Shared => NodeForm::Shared,
        LibraryType::Static => NodeForm::Static,
    };
    let mut node = Node::new(&library.name, kind, form);
    node.archs = library.archs.clone();
    let has_cuda = kind == NodeKind::Rdc && library.has_code(Vendor::Nvidia);
    node.cudart = has_cuda.then_some(library.cudart);
    node.links = library
        .requires
        .iter()
        .map(|name| public_link(name))
        .collect();
    node
}

fn public_link(name: &str) -> Link {
    Link {
        to: name.to_owned(),
        private: false,
    }
}
