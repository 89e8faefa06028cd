//! `gpustub_target_device_link` compared with the planner of core, on random graphs.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use gpustub_core::device_link::{Graph, Link, LinkRole, Node, NodeForm, NodeKind, plan};
use gpustub_tests::command::succeed;
use gpustub_tests::scratch::scratch;
use gpustub_tests::{Result, repository};

const GRAPHS: usize = 300;

/// Knuth's linear congruential generator: the graphs are the same in each run.
struct Numbers(u64);

impl Numbers {
    /// A number below `end`.
    fn draw(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// A graph of up to six libraries and a program or module, which is its last node.
fn graph(numbers: &mut Numbers, prefix: &str) -> Graph {
    let mut nodes: Vec<Node> = Vec::new();
    // Whether the node contains or passes on a static library, which a shared one may not.
    let mut passes_static: Vec<bool> = Vec::new();
    for index in 0..=numbers.draw(6) {
        let (kind, form) = match numbers.draw(6) {
            0..=2 => (NodeKind::Rdc, NodeForm::Shared),
            3 => (NodeKind::Rdc, NodeForm::Static),
            4 => (NodeKind::Plain, NodeForm::Shared),
            _ => (NodeKind::Interface, NodeForm::Static),
        };
        let mut node = Node::new(format!("{prefix}n{index}"), kind, form);
        for (below, passes) in nodes.iter().zip(&passes_static) {
            if numbers.draw(3) == 0 && !(form == NodeForm::Shared && *passes) {
                node.links.push(link(&below.name));
            }
        }
        let inherits = node.links.iter().any(|link| {
            (nodes.iter().zip(&passes_static))
                .any(|(below, passes)| *passes && below.name == link.to)
        });
        let is_static = kind == NodeKind::Rdc && form == NodeForm::Static;
        passes_static.push(is_static || (form != NodeForm::Shared && inherits));
        nodes.push(node);
    }
    let form = [NodeForm::Bin, NodeForm::Plugin][numbers.draw(2) as usize];
    let kind = [NodeKind::Plain, NodeKind::Plain, NodeKind::Rdc][numbers.draw(3) as usize];
    let mut program = Node::new(format!("{prefix}top"), kind, form);
    for node in &nodes {
        if numbers.draw(2) == 0 {
            program.links.push(link(&node.name));
        }
    }
    nodes.push(program);
    Graph { nodes }
}

fn link(name: &str) -> Link {
    Link {
        to: name.to_owned(),
        private: false,
    }
}

/// Target of CMake for a link.
fn target(graph: &Graph, link: &Link) -> String {
    let is_static = graph.nodes.iter().any(|node| {
        node.name == link.to && node.kind == NodeKind::Rdc && node.form == NodeForm::Static
    });
    format!("{}{}", link.to, if is_static { "_static" } else { "" })
}

/// The same graph in CMake. Packages have imported targets with these properties.
fn cmake(graph: &Graph, out: &mut String) -> Result<()> {
    for node in &graph.nodes {
        let name = &node.name;
        let targets: Vec<String> = node.links.iter().map(|link| target(graph, link)).collect();
        let links = targets.join(" ");
        match (node.kind, node.form) {
            (NodeKind::Rdc, NodeForm::Shared) => writeln!(out, "pair({name} {links})")?,
            (NodeKind::Rdc, NodeForm::Static) => writeln!(out, "archive({name} {links})")?,
            (NodeKind::Plain, NodeForm::Shared) => {
                writeln!(out, "add_library({name} SHARED empty.cpp)")?;
                writeln!(out, "target_link_libraries({name} PRIVATE {links})")?;
            }
            (_, NodeForm::Static) => {
                writeln!(out, "add_library({name} INTERFACE)")?;
                writeln!(out, "target_link_libraries({name} INTERFACE {links})")?;
            }
            (kind, form) => {
                let source = if kind == NodeKind::Rdc { "own.cu" } else { "" };
                match form {
                    NodeForm::Bin => writeln!(out, "add_executable({name} empty.cpp {source})")?,
                    _ => writeln!(out, "add_library({name} MODULE empty.cpp {source})")?,
                }
                writeln!(
                    out,
                    "set_property(TARGET {name} PROPERTY CUDA_SEPARABLE_COMPILATION ON)"
                )?;
                writeln!(out, "target_link_libraries({name} PRIVATE {links})")?;
                writeln!(out, "gpustub_target_device_link({name})")?;
            }
        }
    }
    Ok(())
}

/// Message that CMake prints for the last node if it agrees with core; `None`: no device link.
fn planned(graph: &Graph) -> Option<String> {
    let (plan, _) = plan(graph);
    let id = plan.find(&graph.nodes.last()?.name)?;
    let name = &plan.node(id).name;
    match plan.role(id) {
        LinkRole::UseFinal(top) => {
            let top = &plan.node(top).name;
            Some(format!("{name} uses the device link {top}_final"))
        }
        LinkRole::OwnLink(_) => {
            let inputs: Vec<&str> = (plan.inputs(id).into_iter())
                .map(|id| plan.node(id).name.as_str())
                .collect();
            // CMake links a program's own code alone without this function.
            let is_alone = plan.node(id).kind == NodeKind::Rdc && inputs.len() == 1;
            let inputs = inputs.join(" ");
            (!is_alone).then(|| format!("{name} has its own device link over {inputs}"))
        }
        _ => None,
    }
}

const TARGETS: &str = "cmake_minimum_required(VERSION 3.19)
project(graphs CXX)
include(${FUNCTIONS}/gpustub-device-link.cmake)
function(part name type kind library)
  add_library(${name} ${type} IMPORTED GLOBAL)
  set_target_properties(${name} PROPERTIES IMPORTED_LOCATION ${CMAKE_SOURCE_DIR}/empty.cpp
    CUDA_RDC_LIBRARY_TYPE ${kind} CUDA_RDC_STATIC_LIBRARY ${library}_static CUDA_RUNTIME_LIBRARY Shared
    CUDA_ARCHITECTURES 80-real GPUSTUB_DEVICE_LIBRARY ${library})
endfunction()
function(archive name)
  part(${name}_static STATIC Static ${name})
  set_property(TARGET ${name}_static PROPERTY INTERFACE_LINK_LIBRARIES ${ARGN})
endfunction()
function(pair name)
  archive(${name})
  part(${name} SHARED Shared ${name})
  part(${name}_final SHARED Final ${name})
  set_property(TARGET ${name} PROPERTY INTERFACE_LINK_LIBRARIES ${ARGN})
  set_property(TARGET ${name} PROPERTY CUDA_RDC_FINAL_LIBRARY ${name}_final)
endfunction()
";

/// Copies the files that define `gpustub_target_device_link`.
pub fn copy_functions(directory: &Path) -> Result<()> {
    for name in [
        "device-link",
        "device-graph",
        "device-archs",
        "device-hip",
        "check-image",
    ] {
        let from = format!("templates/tree/export/device-link/gpustub-{name}.cmake.hbs");
        let to = directory.join(format!("gpustub-{name}.cmake"));
        fs::copy(repository().join(from), to)?;
    }
    Ok(())
}

#[test]
#[ignore = "needs CMake: ./tests/run"]
fn cmake_plans_as_core() -> Result<()> {
    let dir = scratch()?;
    let dir = dir.path();
    let mut numbers = Numbers(2026);
    let (mut lists, mut expected) = (TARGETS.to_owned(), Vec::new());
    for index in 0..GRAPHS {
        let graph = graph(&mut numbers, &format!("g{index}"));
        cmake(&graph, &mut lists)?;
        expected.extend(planned(&graph));
    }
    // Each decision occurs often.
    for word in [" uses the device link ", " has its own device link "] {
        let count = expected.iter().filter(|line| line.contains(word)).count();
        assert!(count > GRAPHS / 10, "{count} times{word}");
    }
    // Not the compiler: nothing is built.
    fs::write(dir.join("nvcc"), "")?;
    fs::write(dir.join("libcudart.so"), "")?;
    for name in ["empty.cpp", "own.cu"] {
        fs::write(dir.join(name), "")?;
    }
    copy_functions(dir)?;
    fs::write(dir.join("CMakeLists.txt"), lists)?;
    let mut cmake = Command::new("cmake");
    cmake.arg("-S").arg(dir).arg("-B").arg(dir.join("build"));
    for (variable, file) in [
        ("FUNCTIONS", ""),
        ("GPUSTUB_NVCC", "nvcc"),
        ("CMAKE_LIBRARY_PATH", ""),
    ] {
        cmake.arg(format!("-D{variable}={}", dir.join(file).display()));
    }
    let ran = succeed(cmake.arg("--log-level=VERBOSE"))?;
    let decisions: Vec<&str> = (ran.stdout.lines())
        .filter_map(|line| line.strip_prefix("-- gpustub: "))
        .collect();
    assert_eq!(decisions, expected);
    Ok(())
}
