//! `cargo gpustub plan`: stubs, device links and archives of a build, and the providers of stubs.

mod archive;
mod device_link;
mod modules;
mod text;

use std::collections::BTreeMap;
use std::fmt::Write;

use cargo_metadata::Package;
use gpustub_core::device_link::LinkPlan;
use gpustub_core::diag::has_errors;
use gpustub_core::library::Role;
use gpustub_core::manifest::{Archive, LibraryType, Stub};
use gpustub_core::plan::{LibraryPlan, Plan};
use gpustub_core::version::{HeaderVersion, Version};
use gpustub_workspace::device_graph::{DeviceGraph, Module};
use gpustub_workspace::error::{Error, Result};
use gpustub_workspace::finalizer;
use gpustub_workspace::graph::PackageGraph;
use gpustub_workspace::report::json::FORMAT_VERSION;
use gpustub_workspace::shell::Shell;
use gpustub_workspace::tables::{Declared, FILE};
use gpustub_workspace::workspace::{Depth, Workspace, target};
use serde::Serialize;

use crate::cli::{self, PlanFormat};
use crate::state::plan_errors;
use text::{not_shown, row};

/// Runs the command.
pub fn run(options: &cli::Plan, shell: &mut Shell) -> Result<bool> {
    if let Some(file) = &options.graph {
        return device_link::plan_graph_file(options, file, shell);
    }
    let target = target(options.target.as_deref())?;
    let workspace = Workspace::load(&options.cargo, Depth::Graph(&target.triple))
        .map_err(|error| finalizer::explain(&options.cargo, error))?;
    let selected = workspace.selected()?;
    let graph = PackageGraph::read_selected(&workspace, &selected, &options.cargo, &target.triple)?;

    let mut clean = true;
    let mut packages = Vec::new();
    for index in graph.reachable(&selected) {
        let Some(declared) = &graph.declared[index] else {
            continue;
        };
        let mut inputs = declared.inputs.clone();
        inputs.features = Some(graph.features[index].clone());
        let (plan, mut found) = declared.plan(&target, &inputs);
        found.extend(device_link::unsupported(&graph, index, &target));
        shell.diagnostics(&found, &declared.sources())?;
        if has_errors(&found) {
            clean = false;
        } else {
            let archives = archive::written(&declared.manifest, &graph.features[index]);
            packages.push((index, declared, plan, archives));
        }
    }
    if let Some(root) = Declared::read_root(&workspace)? {
        shell.diagnostics(&root.diagnostics, &root.sources())?;
        clean &= !has_errors(&root.diagnostics);
    }
    if packages.is_empty() && clean {
        let message = "no GpuStub.toml in the selected packages and their dependencies";
        return Err(Error::new(message).help("write one with `cargo gpustub init`"));
    }

    // Packages whose file has errors are left out, so the plan may lack some of their libraries.
    let device = DeviceGraph::read(&graph, &selected);
    let (links, refused) = device.plan();
    let complete = clean && device.is_complete(&links);
    let found = plan_errors::with_links(&graph, &selected, refused);
    shell.diagnostics(&found, &graph.sources())?;
    clean &= !has_errors(&found);
    if !complete {
        not_shown(shell);
        return Ok(false);
    }

    if let Some(node) = &options.why {
        shell.data(device_link::explain(&links, node)?)?;
        return Ok(clean);
    }
    match options.format {
        PlanFormat::Text => {
            let mut text = String::new();
            for (index, declared, plan, archives) in &packages {
                let modules = modules::of_package(&device, *index);
                let package = graph.packages[*index];
                describe(&mut text, package, declared, plan, archives, &modules);
            }
            device_links(&mut text, &links);
            shell.data(text)?;
        }
        PlanFormat::Json => shell.json(&Document {
            reason: "plan",
            format_version: FORMAT_VERSION,
            has_errors: !clean,
            target: &target.triple,
            packages: packages
                .iter()
                .map(|(at, declared, plan, archives)| {
                    let modules = modules::of_package(&device, *at);
                    PackageJson::new(graph.packages[*at], declared, plan, archives, &modules)
                })
                .collect(),
            device_link: device_link::Json::new(&links, Some((&device.units, &graph))),
        })?,
        PlanFormat::Dot => shell.data(links.to_dot())?,
    }
    Ok(clean)
}

/// A line for each library, crate and program with relocatable code.
fn device_links(text: &mut String, links: &LinkPlan<'_>) {
    if !links.nodes().is_empty() {
        text.push_str("device links\n");
    }
    for line in links.to_text().lines() {
        let _ = writeln!(text, "  {line}");
    }
}

fn describe(
    text: &mut String,
    package: &Package,
    declared: &Declared,
    plan: &Plan,
    archives: &[&Archive],
    modules: &[&Module],
) {
    let _ = writeln!(
        text,
        "{} {} ({})",
        package.name, package.version, declared.display_path
    );
    for library in plan.libraries.iter().filter(|library| library.stubbed) {
        let library_type = match library.library_type {
            LibraryType::Static => "static",
            LibraryType::Shared => "shared",
        };
        let header = library
            .header_version
            .map_or_else(String::new, |h| format!(", header version {}", header(h)));
        let _ = writeln!(
            text,
            "  {}: {}, {library_type}{header}",
            library.library.id, library.library.title
        );
        let changing = library
            .functions
            .iter()
            .filter(|f| {
                library
                    .specs
                    .get(usize::from(f.spec))
                    .is_some_and(|s| s.abi_name.is_some())
            })
            .count();
        let note = match changing {
            0 => String::new(),
            n => format!(", {n} of them with another ABI in some releases"),
        };
        let _ = writeln!(text, "    functions   {}{note}", library.functions.len());
        if !has_abi_table(library) {
            text.push_str(
                "    note        no ABI table: all releases are taken to have the same ABI\n",
            );
        }
        let names = library.load_names.iter().map(|load| load.name.clone());
        row(text, "load names", names);
        let _ = writeln!(text, "    ELF note    {}", library.dlopen_note.word());
        row(
            text,
            "link names",
            library
                .library
                .link_names
                .iter()
                .map(|name| format!("-l{name}")),
        );
        for (title, dirs) in search_order(library) {
            row(text, title, dirs.iter().cloned());
        }
    }
    if !plan.required.is_empty() {
        let _ = writeln!(text, "  from another package: {}", plan.required.join(", "));
        let is_unneeded = |stub: &Stub| !stub.provide && stub.library_type == LibraryType::Static;
        let mut stubs = declared.manifest.stubs.iter();
        // Packages with device links say so which runtime their host code calls.
        if declared.manifest.device_links.is_empty() && stubs.any(is_unneeded) {
            text.push_str("    note        several packages may bring static stubs: `provide = false` is unneeded\n");
        }
    }
    for archive in archives {
        archive::describe(text, archive);
    }
    for module in modules {
        modules::describe(text, module);
    }
    let stubbed = plan.libraries.iter().any(|library| library.stubbed);
    if !stubbed && plan.required.is_empty() && archives.is_empty() && modules.is_empty() {
        let _ = writeln!(text, "  no stubs for {} in {FILE}", plan.target.triple);
    }
}

/// Directories in which a library is searched, in order.
fn search_order(library: &LibraryPlan) -> Vec<(&'static str, &[String])> {
    let loader: &[String] = &[];
    let mut dirs: Vec<(&str, &[String])> = vec![
        ("search", &library.search_dirs),
        ("first in", &library.dirs_before_loader),
        ("packages", &library.wheel_dirs),
    ];
    dirs.push(("loader", loader));
    dirs.extend([
        ("variables", &library.library.root_env[..]),
        ("toolkits", &library.library.roots),
        ("then in", &library.dirs_after_loader),
    ]);
    dirs
}

/// Whether headers of several releases were compared.
fn has_abi_table(library: &LibraryPlan) -> bool {
    !library.library.abi.headers().is_empty()
}

/// A header version as in `GpuStub.toml`: `12`, `12.8`.
fn header(header: HeaderVersion) -> String {
    let HeaderVersion { from, below } = header;
    let whole = from.minor == 0 && below == Version::new(from.major + 1, 0);
    if whole {
        from.major.to_string()
    } else {
        from.to_string()
    }
}

#[derive(Serialize)]
struct Document<'a> {
    reason: &'static str,
    format_version: u32,
    /// Whether errors were reported: the build then fails.
    has_errors: bool,
    target: &'a str,
    packages: Vec<PackageJson<'a>>,
    device_link: device_link::Json<'a>,
}

#[derive(Serialize)]
struct PackageJson<'a> {
    name: &'a str,
    version: String,
    manifest: &'a str,
    external_stubs: &'a [String],
    libraries: Vec<LibraryJson<'a>>,
    archives: Vec<archive::Json<'a>>,
    modules: Vec<modules::Json<'a>>,
}

#[derive(Serialize)]
struct LibraryJson<'a> {
    id: &'a str,
    title: &'a str,
    role: &'static str,
    r#type: &'static str,
    header_version: Option<String>,
    min_version: Option<String>,
    link_names: &'a [String],
    load_names: Vec<&'a str>,
    dlopen_note: &'static str,
    functions: usize,
    abi_table: bool,
    required_functions: &'a [String],
    search: BTreeMap<&'static str, &'a [String]>,
}

impl<'a> PackageJson<'a> {
    fn new(
        package: &'a Package,
        declared: &'a Declared,
        plan: &'a Plan,
        archives: &[&'a Archive],
        modules: &[&'a Module],
    ) -> Self {
        Self {
            name: package.name.as_str(),
            version: package.version.to_string(),
            manifest: &declared.display_path,
            external_stubs: &plan.required,
            libraries: plan
                .libraries
                .iter()
                .filter(|l| l.stubbed)
                .map(LibraryJson::new)
                .collect(),
            archives: archives.iter().map(|one| archive::Json::new(one)).collect(),
            modules: modules.iter().map(|one| modules::Json::new(one)).collect(),
        }
    }
}

impl<'a> LibraryJson<'a> {
    fn new(library: &'a LibraryPlan) -> Self {
        Self {
            id: &library.library.id,
            title: &library.library.title,
            role: match library.library.role {
                Role::Driver => "driver",
                Role::Toolkit => "toolkit",
                Role::Loader => "loader",
            },
            r#type: match library.library_type {
                LibraryType::Static => "static",
                LibraryType::Shared => "shared",
            },
            header_version: library.header_version.map(header),
            min_version: library.min_version.map(|version| version.to_string()),
            link_names: &library.library.link_names,
            load_names: library
                .load_names
                .iter()
                .map(|load| load.name.as_str())
                .collect(),
            dlopen_note: library.dlopen_note.word(),
            functions: library.functions.len(),
            abi_table: has_abi_table(library),
            required_functions: &library.required_functions,
            search: BTreeMap::from([
                ("search_dirs", &library.search_dirs[..]),
                ("wheel_dirs", &library.wheel_dirs),
                ("root_env", &library.library.root_env),
                ("roots", &library.library.roots),
                ("root_subdirs", &library.root_subdirs),
                ("dirs_before_loader", &library.dirs_before_loader),
                ("dirs_after_loader", &library.dirs_after_loader),
            ]),
        }
    }
}
