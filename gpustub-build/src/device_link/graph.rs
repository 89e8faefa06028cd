//! Libraries as the planner of core sees them.

use gpustub_core::arch::Arch;
use gpustub_core::device_link::{Graph, Kind, Link, Node, NodeForm};
use gpustub_core::manifest::{Cudart, LibraryType};

use super::published::Library;

/// A node for each library, in their order.
pub(super) fn of(libraries: &[Library]) -> Graph {
    Graph {
        nodes: libraries.iter().map(node).collect(),
    }
}

/// The same and, as the last node, a program that links all that were built.
pub(super) fn with_program(package: &str, libraries: &[Library]) -> Graph {
    let mut graph = of(libraries);
    // No library's name has a space in it.
    let name = format!("package {package}");
    let mut last = Node::new(name, Kind::Plain, NodeForm::Bin);
    let built = libraries.iter().filter(|library| library.built);
    last.links = built.map(|library| to(&library.name)).collect();
    graph.nodes.push(last);
    graph
}

fn node(library: &Library) -> Node {
    // One that was left out, as there is no nvcc, has nothing to link.
    let kind = match library.built && !library.archive.as_os_str().is_empty() {
        true => Kind::Rdc,
        false => Kind::Interface,
    };
    let form = match library.form == LibraryType::Shared.word() {
        true => NodeForm::Shared,
        false => NodeForm::Static,
    };
    let mut node = Node::new(&library.name, kind, form);
    node.archs = library
        .archs
        .iter()
        .filter_map(|name| Arch::parse(name))
        .collect();
    node.cudart = (kind == Kind::Rdc).then_some(cudart(library));
    node.links = library.requires.iter().map(|name| to(name)).collect();
    node
}

fn to(name: &str) -> Link {
    Link {
        to: name.to_owned(),
        private: false,
    }
}

pub(super) fn cudart(library: &Library) -> Cudart {
    let kinds = [Cudart::Shared, Cudart::Static, Cudart::None];
    let named = kinds.into_iter().find(|kind| kind.word() == library.cudart);
    named.unwrap_or_default()
}
