//! `cargo gpustub plan`: stubs, device links and archives of a build, and the providers of stubs.

mod archive;
mod device_link;
mod features;
mod modules;
mod text;

use std::collections::BTreeMap;
use std::fmt::Write;

use cargo_metadata::Package;
use gpustub_core::device_link::LinkPlan;
use gpustub_core::diag::has_errors;
use gpustub_core::gpu_arch::{NVCC_FLAGS, chooses_archs};
use gpustub_core::library::Role;
use gpustub_core::manifest::{Archive, LibraryType};
use gpustub_core::plan::{LibraryPlan, Plan};
use gpustub_core::target::Target;
use gpustub_core::version::{HeaderVersion, Version};
use gpustub_workspace::device_graph::{DeviceGraph, Module};
use gpustub_workspace::environment::variable;
use gpustub_workspace::error::{Error, Result};
use gpustub_workspace::finalizer;
use gpustub_workspace::graph::PackageGraph;
use gpustub_workspace::package_index::PackageIndex;
use gpustub_workspace::report::json::FORMAT_VERSION;
use gpustub_workspace::shell::Shell;
use gpustub_workspace::tables::{Declared, FILE};
use gpustub_workspace::workspace::{Depth, Workspace, target};
use serde::Serialize;

use crate::cli::{self, PlanFormat};
use crate::state::plan_errors;
use archive::ArchiveJson;
use device_link::LinkPlanJson;
use features::TableOff;
use modules::ModuleJson;
use text::{not_shown, row};

/// A package with a `GpuStub.toml`, and its plan.
struct PackagePlan<'a> {
    index: PackageIndex,
    package: &'a Package,
    declared: &'a Declared,
    plan: Plan,
    archives: Vec<&'a Archive>,
}

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

    let (packages, mut clean) = plan_packages(&graph, &selected, &target, shell)?;
    if let Some(root) = Declared::read_root(&workspace)? {
        shell.diagnostics(&root.diagnostics, &root.sources())?;
        clean &= !has_errors(&root.diagnostics);
    }
    if packages.is_empty() && clean {
        let message = "no GpuStub.toml in the selected packages and their dependencies";
        return Err(Error::new(message).help("`cargo gpustub add <library>` writes one"));
    }

    // Packages whose file has errors are left out, so the plan may lack some of their libraries.
    let device_graph = DeviceGraph::read(&graph, &selected);
    let (links, link_diagnostics) = device_graph.plan();
    let complete = clean && device_graph.is_complete(&links);
    let diagnostics = plan_errors::with_links(&graph, &selected, link_diagnostics);
    shell.diagnostics(&diagnostics, &graph.sources())?;
    clean &= !has_errors(&diagnostics);
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
            for package in &packages {
                let modules = modules::of_package(&device_graph, package.index);
                let enabled = &graph.features[package.index];
                let off = features::tables_off(&package.declared.manifest, enabled, &target);
                describe(&mut text, package, &modules, &off, &workspace);
            }
            describe_device_links(&mut text, &links);
            shell.data(text)?;
        }
        PlanFormat::Json => shell.json(&PlanDocument {
            reason: "plan",
            format_version: FORMAT_VERSION,
            has_errors: !clean,
            target: &target.triple,
            packages: packages
                .iter()
                .map(|package| {
                    let modules = modules::of_package(&device_graph, package.index);
                    PackageJson::new(package, &modules)
                })
                .collect(),
            device_link: LinkPlanJson::new(&links, Some((&device_graph.units, &graph))),
        })?,
        PlanFormat::Dot => shell.data(links.to_dot())?,
    }
    Ok(clean)
}

/// Plans the selected packages and their dependencies, and reports the diagnostics. Packages with
/// errors are left out; the result is false if there are any.
fn plan_packages<'a>(
    graph: &'a PackageGraph<'_>,
    selected: &[&Package],
    target: &Target,
    shell: &mut Shell,
) -> Result<(Vec<PackagePlan<'a>>, bool)> {
    let mut packages = Vec::new();
    let mut clean = true;
    for index in graph.reachable(selected) {
        let Some(declared) = &graph.declared[index] else {
            continue;
        };
        let mut inputs = declared.inputs.clone();
        inputs.features = Some(graph.features[index].clone());
        let (plan, mut diagnostics) = plan_errors::plan(declared, target, &inputs);
        diagnostics.extend(device_link::unsupported(graph, index, target));
        shell.diagnostics(&diagnostics, &declared.sources())?;
        if has_errors(&diagnostics) {
            clean = false;
            continue;
        }
        packages.push(PackagePlan {
            index,
            package: graph.packages[index],
            declared,
            plan,
            archives: archive::written(&declared.manifest, &graph.features[index]),
        });
    }
    Ok((packages, clean))
}

/// A line for each library, crate and program with relocatable code.
fn describe_device_links(text: &mut String, links: &LinkPlan<'_>) {
    if !links.nodes().is_empty() {
        text.push_str("device links\n");
    }
    for line in links.to_text().lines() {
        let _ = writeln!(text, "  {line}");
    }
    for name in NVCC_FLAGS {
        let Some(value) = variable(name) else {
            continue;
        };
        let value = value.to_string_lossy();
        if !links.nodes().is_empty() && chooses_archs(&value) {
            let _ = writeln!(
                text,
                "  note: {name} is `{value}`: nvcc also makes code for its architectures"
            );
        }
    }
}

/// Appends the lines of a package.
fn describe(
    text: &mut String,
    package: &PackagePlan<'_>,
    modules: &[&Module],
    off: &[TableOff<'_>],
    workspace: &Workspace,
) {
    let PackagePlan { declared, plan, .. } = package;
    let _ = writeln!(
        text,
        "{} {} ({})",
        package.package.name, package.package.version, declared.display_path
    );
    for library in plan.libraries.iter().filter(|library| library.stubbed) {
        describe_library(text, library, &plan.target.os);
    }
    if !plan.required.is_empty() {
        let _ = writeln!(text, "  from another package: {}", plan.required.join(", "));
        // Packages with device links say so which runtime their host code calls; finalizers are generated.
        if declared.manifest.device_links.is_empty()
            && !finalizer::is_finalizer(package.package)
            && declared
                .manifest
                .stubs
                .iter()
                .any(|stub| !stub.provide && stub.library_type == LibraryType::Static)
        {
            text.push_str("    note        several packages may bring static stubs: `provide = false` is unneeded\n");
        }
    }
    for archive in &package.archives {
        archive::describe(text, archive);
    }
    for module in modules {
        modules::describe(text, module);
    }
    features::describe(text, off, package.package, workspace);
    let has_stubs = plan.libraries.iter().any(|library| library.stubbed);
    let has_tables = !package.archives.is_empty() || !modules.is_empty() || !off.is_empty();
    if !has_stubs && plan.required.is_empty() && !has_tables {
        let _ = writeln!(text, "  no stubs for {} in {FILE}", plan.target.triple);
    }
}

/// Appends the lines of a library with a stub.
fn describe_library(text: &mut String, library: &LibraryPlan, os: &str) {
    let _ = write!(
        text,
        "  {}: {}, {}",
        library.library.id,
        library.library.title,
        library.library_type.word()
    );
    if let Some(version) = library.header_version {
        let _ = write!(text, ", header version {}", format_header_version(version));
    }
    let changed_functions = library
        .functions
        .iter()
        .filter(|function| {
            library
                .specs
                .get(usize::from(function.spec))
                .is_some_and(|spec| spec.abi_name.is_some())
        })
        .count();
    let _ = write!(text, "\n    functions   {}", library.functions.len());
    if changed_functions > 0 {
        let _ = write!(
            text,
            ", {changed_functions} of them with another ABI in some releases"
        );
    }
    text.push('\n');
    if !has_abi_table(library) {
        text.push_str(
            "    note        no ABI table: calls of all releases are taken to have the same ABI\n",
        );
        if library.header_version.is_some() {
            text.push_str(
                "    note        packages share its stubs if their header versions have the same major\n",
            );
        }
    }
    // Two majors may share a file name.
    let mut names: Vec<String> = Vec::new();
    for load in &library.load_names {
        if !names.contains(&load.name) {
            names.push(load.name.clone());
        }
    }
    row(text, "load names", names.into_iter());
    if !["windows", "macos"].contains(&os) {
        let _ = writeln!(text, "    ELF note    {}", library.dlopen_note.word());
    }
    row(
        text,
        "link names",
        library
            .library
            .link_names
            .iter()
            .map(|name| format!("-l{name}")),
    );
    if library.load_names.is_empty() {
        text.push_str(
            "    note        no load name: never found, calls return the library's error value\n",
        );
        return;
    }
    for (title, directories) in search_order(library) {
        row(text, title, directories.iter().cloned());
    }
    if os == "windows" && library.library.role == Role::Toolkit {
        text.push_str("    then in     PATH\n"); // `add_last_dirs` in templates/runtime/os/windows/library.c
    }
}

/// Directories in which a library is searched, in order. Between the packages and the variables, the
/// loader searches its own directories.
fn search_order(library: &LibraryPlan) -> [(&'static str, &[String]); 6] {
    [
        ("search", &library.search_dirs),
        ("first in", &library.dirs_before_loader),
        ("packages", &library.wheel_dirs),
        ("variables", &library.library.root_env),
        ("toolkits", &library.roots),
        ("then in", &library.dirs_after_loader),
    ]
}

/// Whether headers of several releases were compared.
fn has_abi_table(library: &LibraryPlan) -> bool {
    !library.library.abi.headers().is_empty()
}

/// A header version as in `GpuStub.toml`: `12`, `12.8`.
fn format_header_version(version: HeaderVersion) -> String {
    let HeaderVersion { from, below } = version;
    if from.minor == 0 && below == Version::new(from.major + 1, 0) {
        from.major.to_string()
    } else {
        from.to_string()
    }
}

#[derive(Serialize)]
struct PlanDocument<'a> {
    reason: &'static str,
    format_version: u32,
    /// Whether errors were reported: the build then fails.
    has_errors: bool,
    target: &'a str,
    packages: Vec<PackageJson<'a>>,
    device_link: LinkPlanJson<'a>,
}

#[derive(Serialize)]
struct PackageJson<'a> {
    name: &'a str,
    version: String,
    manifest: &'a str,
    external_stubs: &'a [String],
    libraries: Vec<LibraryJson<'a>>,
    archives: Vec<ArchiveJson<'a>>,
    modules: Vec<ModuleJson<'a>>,
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
    fn new(package: &'a PackagePlan<'_>, modules: &[&'a Module]) -> Self {
        Self {
            name: package.package.name.as_str(),
            version: package.package.version.to_string(),
            manifest: &package.declared.display_path,
            external_stubs: &package.plan.required,
            libraries: package
                .plan
                .libraries
                .iter()
                .filter(|library| library.stubbed)
                .map(LibraryJson::new)
                .collect(),
            archives: package
                .archives
                .iter()
                .map(|archive| ArchiveJson::new(archive))
                .collect(),
            modules: modules
                .iter()
                .map(|module| ModuleJson::new(module))
                .collect(),
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
            r#type: library.library_type.word(),
            header_version: library.header_version.map(format_header_version),
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
                ("roots", &library.roots),
                ("root_subdirs", &library.root_subdirs),
                ("dirs_before_loader", &library.dirs_before_loader),
                ("dirs_after_loader", &library.dirs_after_loader),
            ]),
        }
    }
}
