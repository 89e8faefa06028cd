//! Cargo workspaces of graphs: a package for each library, program and cdylib.

use std::env::join_paths;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_core::device_link::{Graph, Node, NodeForm, NodeId, NodeKind};
use gpustub_core::gpu_arch::Vendor;
use gpustub_core::ids::Id;
use gpustub_tests::Result;
use gpustub_tests::command::{Ran, run};
use gpustub_tests::nvcc::{TOOLKIT_13, hip_recorder, recorder};
use gpustub_tests::opener::host;
use gpustub_tests::rdc::{Library, Project};

/// Whether packages can have these libraries: a program links the crate of a static library also if a
/// shared library contains it, and the plan refuses two copies.
pub fn are_possible(graph: &Graph) -> bool {
    let form = |name: &str| graph.find(name).map(|at| graph[at].form);
    let mut shared = graph
        .nodes
        .iter()
        .filter(|node| node.form == NodeForm::Shared);
    shared.all(|node| {
        node.links
            .iter()
            .all(|link| form(&link.to) != Some(NodeForm::Static))
    })
}

/// Number of the packages of a graph.
pub fn count(graph: &Graph) -> usize {
    packages(graph).count()
}

/// Nodes that are packages: the program that opens cdylibs is none.
fn packages(graph: &Graph) -> impl Iterator<Item = &Node> {
    graph.nodes.iter().filter(|node| node.opens.is_empty())
}

/// Several graphs in one workspace. A name of graph 3 starts with `g3_`.
pub struct Workspace {
    project: Project,
    /// Recording runtime.
    runtime: PathBuf,
    host: PathBuf,
}

impl Workspace {
    /// Writes the packages, and builds them.
    pub fn new(graphs: &[Graph], vendor: Vendor) -> Result<Self> {
        let (project, runtime) = match vendor {
            Vendor::Nvidia => {
                let project = Project::new(TOOLKIT_13)?;
                let runtime = recorder(&project.path("runtime"), 13)?;
                (project, runtime)
            }
            Vendor::Amd => {
                let project = Project::headers_alone()?;
                project.install_rocm()?;
                let runtime = hip_recorder(&project.path("runtime"))?;
                fs::create_dir(project.rocm().join("lib"))?;
                symlink(&runtime, project.rocm().join("lib/libamdhip64.so"))?;
                (project, runtime)
            }
        };
        for (number, graph) in graphs.iter().enumerate() {
            for node in packages(graph) {
                add(&project, number, node, vendor)?;
            }
        }
        let host = host(&project.path(""))?;
        project.build()?;
        Ok(Self {
            project,
            runtime,
            host,
        })
    }

    /// Runs the first node of a graph, or opens its cdylibs. Names in the output are those of the graph.
    pub fn run(&self, number: usize, graph: &Graph) -> Result<Ran> {
        let process = &graph[NodeId::from_index(0)];
        let mut command = if process.opens.is_empty() {
            Command::new(self.project.built(&prefixed(number, &process.name)))
        } else {
            let mut host = Command::new(&self.host);
            for open in &process.opens {
                let name = format!("lib{}.so", prefixed(number, &open.to));
                host.arg(self.project.built(&name));
            }
            host
        };
        command.env("LD_LIBRARY_PATH", join_paths(self.directories()?)?);
        let mut ran = run(&mut command)?;
        ran.stderr = ran.stderr.replace(&prefixed(number, ""), "");
        Ok(ran)
    }

    /// Directories of the runtime and of the shared libraries that programs are linked with.
    fn directories(&self) -> Result<Vec<PathBuf>> {
        let mut directories = self.project.library_dirs()?;
        directories.extend(self.runtime.parent().map(Path::to_owned));
        Ok(directories)
    }
}

fn prefixed(number: usize, name: &str) -> String {
    format!("g{number}_{name}")
}

fn add(project: &Project, number: usize, node: &Node, vendor: Vendor) -> Result<()> {
    let name = prefixed(number, &node.name);
    let requires: Vec<String> = node
        .links
        .iter()
        .map(|link| prefixed(number, &link.to))
        .collect();
    let names: Vec<&str> = requires.iter().map(String::as_str).collect();
    if node.kind == NodeKind::Rdc {
        let table = match node.form {
            NodeForm::Shared => "type = \"shared\"",
            _ => "",
        };
        let archs = match vendor {
            Vendor::Nvidia => "\"sm_80\"",
            Vendor::Amd => "\"gfx90a\"",
        };
        project.library(Library {
            table,
            archs,
            ..Library::new(&name, &names)
        })?;
        // With stubs, shared libraries would need shared ones.
        let manifest = format!("{name}/GpuStub.toml");
        let text = fs::read_to_string(project.root().join(&manifest))?;
        let (_, tables) = text.split_once("[device-link").ok_or("no table")?;
        project.write(&manifest, &format!("schema = 1\n[device-link{tables}"))?;
    } else {
        let dependency = |name: &String| format!("{name} = {{ path = \"../{name}\" }}\n");
        let dependencies: String = requires.iter().map(dependency).collect();
        project.package(&name, &format!("[dependencies]\n{dependencies}"), &[])?;
    }
    let runs: String = match node.kind {
        NodeKind::Rdc if node.form == NodeForm::Bin => format!("{name}::run()"),
        NodeKind::Rdc => "run()".to_owned(),
        _ => {
            requires
                .iter()
                .map(|name| format!("{name}::run() + "))
                .collect::<String>()
                + "0"
        }
    };
    let print = format!("println!(\"{name} {{}}\", {runs});");
    match node.form {
        NodeForm::Bin => project.write(
            &format!("{name}/src/main.rs"),
            &format!("fn main() {{\n    {print}\n}}\n"),
        ),
        NodeForm::Cdylib => {
            let library = project.root().join(&name).join("src/lib.rs");
            let code = fs::read_to_string(library).unwrap_or_default();
            // C calls `<name>_run` of the CUDA code, and `run` of the cdylib.
            let code = code.replace("pub fn run(", "fn all(");
            let print = print.replace(", run())", ", all())");
            project.write(
                &format!("{name}/src/lib.rs"),
                &format!("{code}\n#[no_mangle]\npub extern \"C\" fn run() {{\n    {print}\n}}\n"),
            )?;
            let manifest = format!("{name}/Cargo.toml");
            let text = fs::read_to_string(project.root().join(&manifest))?;
            project.write(
                &manifest,
                &format!("{text}\n[lib]\ncrate-type = [\"cdylib\"]\n"),
            )
        }
        _ => Ok(()),
    }
}
