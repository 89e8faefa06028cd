//! The part of a plan about relocatable CUDA code.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use gpustub_core::device_link::{
    Graph, LinkItem, LinkPlan, LinkRole, NodeId, NodeKind, NodePlan, plan,
};
use gpustub_core::diag::{Diagnostic, has_errors};
use gpustub_core::ids::IndexVec;
use gpustub_core::suggest::nearest;
use gpustub_core::target::Target;
use gpustub_workspace::device_graph::CargoUnit;
use gpustub_workspace::display_path::display_path;
use gpustub_workspace::error::{Error, Result};
use gpustub_workspace::graph::PackageGraph;
use gpustub_workspace::package_index::PackageIndex;
use gpustub_workspace::report::Sources;
use gpustub_workspace::report::json::FORMAT_VERSION;
use gpustub_workspace::shell::Shell;
use serde::Serialize;

use super::text::not_shown;
use crate::cli::{self, PlanFormat};

/// Maximum size of a graph in bytes.
const MAX_GRAPH_SIZE: u64 = 16 << 20;

/// Plans the graph of `--graph`, without cargo.
pub fn plan_graph_file(options: &cli::Plan, file: &Path, shell: &mut Shell) -> Result<bool> {
    let (name, text) = read(file)?;
    let (graph, mut diagnostics) = Graph::parse(&name, &text);
    let is_valid = !has_errors(&diagnostics);
    let (plan, plan_diagnostics) = plan(&graph);
    if is_valid {
        diagnostics.extend(plan_diagnostics);
    }
    shell.diagnostics(&diagnostics, &Sources::from([(name, text)]))?;
    // An inconsistent graph has no plan.
    if !is_valid || plan.nodes().len() < graph.nodes.len() {
        not_shown(shell);
    } else {
        match (&options.why, options.format) {
            (Some(node), _) => shell.data(explain(&plan, node)?)?,
            (None, PlanFormat::Text) => shell.data(plan.to_text())?,
            (None, PlanFormat::Dot) => shell.data(plan.to_dot())?,
            (None, PlanFormat::Json) => shell.json(&GraphDocument {
                reason: "plan",
                format_version: FORMAT_VERSION,
                has_errors: has_errors(&diagnostics),
                device_link: LinkPlanJson::new(&plan, None),
            })?,
        }
    }
    Ok(!has_errors(&diagnostics))
}

/// Display path and text of a file; `-` is standard input.
fn read(file: &Path) -> Result<(String, String)> {
    let (name, reader): (String, Box<dyn Read>) = if file.as_os_str() == "-" {
        ("<stdin>".to_owned(), Box::new(io::stdin()))
    } else {
        let reader = File::open(file).map_err(|error| Error::io("read", file, &error))?;
        (display_path(file), Box::new(reader))
    };
    let mut text = String::new();
    reader
        .take(MAX_GRAPH_SIZE + 1)
        .read_to_string(&mut text)
        .map_err(|error| Error::io("read", file, &error))?;
    if text.len() as u64 > MAX_GRAPH_SIZE {
        let message = format!("`{name}` is longer than {} MiB", MAX_GRAPH_SIZE >> 20);
        return Err(Error::new(message).help("plan the graph in parts"));
    }
    Ok((name, text))
}

/// Explains the plan of one node.
pub fn explain(plan: &LinkPlan<'_>, name: &str) -> Result<String> {
    if let Some(node) = plan.find(name) {
        return Ok(plan.explain(node));
    }
    let error = Error::new(format!("unknown target `{name}` in the plan"));
    let targets: Vec<&str> = plan.nodes().iter().map(|node| node.name.as_str()).collect();
    let namesakes: Vec<&str> = targets
        .iter()
        .copied()
        .filter(|target| target.split('/').any(|part| part == name))
        .collect();
    if !namesakes.is_empty() {
        return Err(error.help(format!("targets of that name: {}", namesakes.join(", "))));
    }
    Err(match nearest(name, targets.iter().copied()) {
        Some(target) => error.help(format!("did you mean `{target}`?")),
        None if targets.is_empty() => error.help("the plan has no relocatable CUDA code"),
        None => error.help("`cargo gpustub plan` lists all targets"),
    })
}

/// Error if a package has device code that must be built, and the target has no device links.
pub fn unsupported(
    packages: &PackageGraph,
    package: PackageIndex,
    target: &Target,
) -> Option<Diagnostic> {
    let libraries = packages.rdc(package);
    let error = target.check_device_link(!libraries.is_empty())?;
    let modules = packages.modules(package).into_iter();
    let required = libraries
        .into_iter()
        .chain(modules.map(|module| &module.library))
        .find(|table| !table.optional)?;
    let manifest = &packages.declared[package].as_ref()?.display_path;
    Some(error.with_origin(manifest, required.name.span.clone()))
}

#[derive(Serialize)]
struct GraphDocument<'a> {
    reason: &'static str,
    format_version: u32,
    has_errors: bool,
    device_link: LinkPlanJson<'a>,
}

/// The device links of a plan.
#[derive(Serialize)]
pub struct LinkPlanJson<'a> {
    nodes: Vec<NodeJson<'a>>,
}

impl<'a> LinkPlanJson<'a> {
    /// JSON form of a plan; `cargo`: the units of its nodes, and the packages of these.
    pub fn new(
        plan: &LinkPlan<'a>,
        cargo: Option<(&'a IndexVec<NodeId, CargoUnit>, &'a PackageGraph<'a>)>,
    ) -> Self {
        let nodes = plan.node_plans().map(|planned| {
            let unit = cargo.map(|(units, packages)| {
                let unit = &units[planned.node];
                let package = packages.packages[unit.package];
                UnitJson {
                    package: package.name.as_str(),
                    version: package.version.to_string(),
                    what: unit.kind,
                    target: unit.target.as_deref(),
                }
            });
            NodeJson::new(plan, &planned, unit)
        });
        Self {
            nodes: nodes.collect(),
        }
    }
}

#[derive(Serialize)]
struct NodeJson<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cargo: Option<UnitJson<'a>>,
    kind: &'static str,
    r#type: &'static str,
    links: Vec<&'a str>,
    opens: Vec<&'a str>,
    rule: &'static str,
    artifacts: Vec<&'static str>,
    device_link: Option<DeviceLinkJson<'a>>,
    uses_final: Option<&'a str>,
    host_link: Vec<LinkItemJson<'a>>,
    final_host_link: Vec<LinkItemJson<'a>>,
}

/// The cargo unit of a node.
#[derive(Serialize)]
struct UnitJson<'a> {
    package: &'a str,
    version: String,
    what: &'static str,
    target: Option<&'a str>,
}

#[derive(Serialize)]
struct DeviceLinkJson<'a> {
    inputs: Vec<&'a str>,
    archs: Vec<String>,
    lto: bool,
    /// Oldest PTX that all inputs have.
    ptx: Option<String>,
    /// Inputs in other images, which call the device link.
    exports: Vec<&'a str>,
}

/// An item of a host link line.
#[derive(Serialize)]
struct LinkItemJson<'a> {
    item: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<&'a str>,
}

impl<'a> NodeJson<'a> {
    fn new(plan: &LinkPlan<'a>, planned: &NodePlan, cargo: Option<UnitJson<'a>>) -> Self {
        let node = plan.node(planned.node);
        Self {
            name: &node.name,
            cargo,
            kind: match node.kind {
                NodeKind::Rdc => "rdc",
                NodeKind::Plain => "plain",
                NodeKind::Interface => "interface",
            },
            r#type: node.form.word(),
            links: node.links.iter().map(|link| link.to.as_str()).collect(),
            opens: node.opens.iter().map(|open| open.to.as_str()).collect(),
            rule: planned.role.rule(),
            artifacts: planned
                .artifacts
                .iter()
                .map(|artifact| artifact.word())
                .collect(),
            device_link: (!planned.inputs.is_empty()).then(|| DeviceLinkJson {
                inputs: node_names(plan, &planned.inputs),
                archs: planned.archs.iter().map(ToString::to_string).collect(),
                lto: planned.lto,
                ptx: planned.ptx.map(|arch| arch.to_string()),
                exports: node_names(plan, &planned.exports),
            }),
            uses_final: match planned.role {
                LinkRole::UseFinal(library) => Some(node_name(plan, library)),
                _ => None,
            },
            host_link: host_link(plan, &planned.line),
            final_host_link: host_link(plan, &planned.final_line),
        }
    }
}

impl<'a> LinkItemJson<'a> {
    fn new(plan: &LinkPlan<'a>, item: LinkItem) -> Self {
        let (item, node) = match item {
            LinkItem::Objects => ("objects", None),
            LinkItem::LinkObject => ("device-link", None),
            LinkItem::Final(library) => ("final", Some(node_name(plan, library))),
            LinkItem::Archive(library) => ("archive", Some(node_name(plan, library))),
            LinkItem::WholeArchive(library) => ("whole-archive", Some(node_name(plan, library))),
            LinkItem::Middle(library) => ("middle", Some(node_name(plan, library))),
            LinkItem::Cudart(runtime) => ("cudart", Some(runtime.word())),
        };
        Self { item, node }
    }
}

fn host_link<'a>(plan: &LinkPlan<'a>, line: &[LinkItem]) -> Vec<LinkItemJson<'a>> {
    line.iter()
        .map(|item| LinkItemJson::new(plan, *item))
        .collect()
}

fn node_name<'a>(plan: &LinkPlan<'a>, node: NodeId) -> &'a str {
    &plan.node(node).name
}

fn node_names<'a>(plan: &LinkPlan<'a>, nodes: &[NodeId]) -> Vec<&'a str> {
    nodes.iter().map(|node| node_name(plan, *node)).collect()
}
