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
use gpustub_workspace::graph::PackageGraph as Packages;
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
    let (graph, mut found) = Graph::parse(&name, &text);
    let readable = !has_errors(&found);
    let (plan, more) = plan(&graph);
    if readable {
        found.extend(more);
    }
    shell.diagnostics(&found, &Sources::from([(name, text)]))?;
    // An inconsistent graph has no plan.
    if !readable || plan.nodes().len() < graph.nodes.len() {
        not_shown(shell);
    } else {
        match (&options.why, options.format) {
            (Some(node), _) => shell.data(explain(&plan, node)?)?,
            (None, PlanFormat::Text) => shell.data(plan.to_text())?,
            (None, PlanFormat::Dot) => shell.data(plan.to_dot())?,
            (None, PlanFormat::Json) => shell.json(&Document {
                reason: "plan",
                format_version: FORMAT_VERSION,
                has_errors: has_errors(&found),
                device_link: Json::new(&plan, None),
            })?,
        }
    }
    Ok(!has_errors(&found))
}

/// Display path and text of a file; `-` is standard input.
fn read(file: &Path) -> Result<(String, String)> {
    let wrong = |e: &io::Error| Error::io("read", file, e);
    let (name, mut input): (String, Box<dyn Read>) = match file.to_str() {
        Some("-") => ("<stdin>".to_owned(), Box::new(io::stdin())),
        _ => (
            display_path(file),
            Box::new(File::open(file).map_err(|e| wrong(&e))?),
        ),
    };
    let mut text = String::new();
    let mut part = input.by_ref().take(MAX_GRAPH_SIZE + 1);
    part.read_to_string(&mut text).map_err(|e| wrong(&e))?;
    if text.len() as u64 > MAX_GRAPH_SIZE {
        let message = format!("`{name}` is longer than {} MiB", MAX_GRAPH_SIZE >> 20);
        return Err(Error::new(message).help("plan the graph in parts"));
    }
    Ok((name, text))
}

/// Explains the plan of one node.
pub fn explain(plan: &LinkPlan<'_>, name: &str) -> Result<String> {
    let nodes = plan.nodes();
    if let Some(node) = plan.find(name) {
        return Ok(plan.explain(node));
    }
    let error = Error::new(format!("unknown target `{name}` in the plan"));
    let parts: Vec<&str> = nodes
        .iter()
        .map(|node| node.name.as_str())
        .filter(|known| known.split('/').any(|part| part == name))
        .collect();
    let all = || nodes.iter().map(|node| node.name.as_str());
    Err(match (parts.as_slice(), nearest(name, all())) {
        ([_, ..], _) => error.help(format!("targets of that name: {}", parts.join(", "))),
        ([], Some(near)) => error.help(format!("did you mean `{near}`?")),
        ([], None) if nodes.is_empty() => error.help("the plan has no relocatable CUDA code"),
        ([], None) => error.help("`cargo gpustub plan` lists all targets"),
    })
}

/// Error if a package has device code that must be built, and the target has no device links.
pub fn unsupported(packages: &Packages, at: PackageIndex, target: &Target) -> Option<Diagnostic> {
    let error = target.check_device_link()?;
    let modules = packages.modules(at).into_iter().map(|one| &one.library);
    let mut tables = packages.rdc(at).into_iter().chain(modules);
    let table = tables.find(|one| !one.optional)?;
    let shown = &packages.declared[at].as_ref()?.display_path;
    Some(error.with_origin(shown, table.name.span.clone()))
}

#[derive(Serialize)]
struct Document<'a> {
    reason: &'static str,
    format_version: u32,
    has_errors: bool,
    device_link: Json<'a>,
}

/// The device links of a plan.
#[derive(Serialize)]
pub struct Json<'a> {
    nodes: Vec<NodeJson<'a>>,
}

impl<'a> Json<'a> {
    /// JSON form of a plan; `cargo`: the units of its nodes, and the packages of these.
    pub fn new(
        plan: &LinkPlan<'a>,
        cargo: Option<(&'a IndexVec<NodeId, CargoUnit>, &'a Packages<'a>)>,
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
        let name = |node: NodeId| plan.node(node).name.as_str();
        let node = plan.node(planned.node);
        let items = |line: &[LinkItem]| {
            line.iter()
                .map(|item| LinkItemJson::new(plan, item))
                .collect()
        };
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
            artifacts: planned.artifacts.iter().map(|a| a.word()).collect(),
            device_link: (!planned.inputs.is_empty()).then(|| DeviceLinkJson {
                inputs: planned.inputs.iter().map(|&at| name(at)).collect(),
                archs: planned.archs.iter().map(ToString::to_string).collect(),
                lto: planned.lto,
                exports: planned.exports.iter().map(|&at| name(at)).collect(),
            }),
            uses_final: match planned.role {
                LinkRole::UseFinal(of) => Some(name(of)),
                _ => None,
            },
            host_link: items(&planned.line),
            final_host_link: items(&planned.final_line),
        }
    }
}

impl<'a> LinkItemJson<'a> {
    fn new(plan: &LinkPlan<'a>, item: &LinkItem) -> Self {
        let (item, of) = match item {
            LinkItem::Objects => ("objects", None),
            LinkItem::LinkObject => ("device-link", None),
            LinkItem::Final(of) => ("final", Some(*of)),
            LinkItem::Archive(of) => ("archive", Some(*of)),
            LinkItem::WholeArchive(of) => ("whole-archive", Some(*of)),
            LinkItem::Middle(of) => ("middle", Some(*of)),
            LinkItem::Cudart(kind) => {
                let of = Some(kind.word());
                return Self {
                    item: "cudart",
                    node: of,
                };
            }
        };
        let of = of.map(|node| plan.node(node).name.as_str());
        Self { item, node: of }
    }
}
