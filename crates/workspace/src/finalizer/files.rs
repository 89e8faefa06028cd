//! Files of a finalizer, and the lines about it in its package.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::display_path::display_path;
use crate::edit::cargo_toml;
use crate::edit::templates;
use crate::error::{Error, Result};
use crate::ops::Pending;
use cargo_metadata::Package;
use gpustub_core::gpu_arch::Arch;
use serde::Serialize;
use serde_json::json;
use toml_edit::{Array, InlineTable, TomlError};

use super::closure::{Closure, LINK, LinkCondition};
use super::naming::{DIRECTORY, finalizer_directory, finalizer_name, is_finalizer, is_generated};
use super::renamed;
use crate::graph::PackageGraph;
use crate::helper_source::{HelperSource, git, relative};
use crate::tables::FILE;
use crate::workspace::{Workspace, directory, library};

/// Feature of the helper that RDC libraries need.
pub const DEVICE_LINK_FEATURE: &str = "device-link";

/// Prefix of the names of optional dependencies.
const RENAMED: &str = "gpustub-rdc-";

/// Templates of a finalizer's code.
const BUILD_RS: &str = "finalizer/build.rs";
const LIB_RS: &str = "finalizer/lib.rs";

/// Text of a finalizer's build script.
pub(super) fn build_script(for_tests: bool) -> String {
    templates::render(BUILD_RS, &json!({ "link": link(for_tests) }))
}

/// Text of a finalizer's library, which names `crates`.
pub(super) fn library_code(for_tests: bool, crates: &[CrateLine]) -> String {
    templates::render(
        LIB_RS,
        &json!({ "link": link(for_tests), "crates": crates }),
    )
}

/// Text of a finalizer's `GpuStub.toml`. `archs`: those of its package, since a published finalizer has no other
/// file of the package.
pub(super) fn declaration_text(archs: &[Arch], is_stubbed: bool) -> String {
    let names: Vec<String> = archs.iter().map(|arch| format!("\"{arch}\"")).collect();
    templates::render(
        "finalizer/GpuStub.toml",
        &json!({ "archs": names.join(", "), "stubbed": is_stubbed }),
    )
}

fn link(for_tests: bool) -> Option<&'static str> {
    for_tests.then_some(LINK)
}

/// Dependency of a finalizer, in its manifest.
#[derive(Serialize)]
struct DependencyLine {
    key: String,
    spec: String,
}

/// Dependencies under one condition for targets, which is empty for all targets.
#[derive(Serialize)]
struct DependencyTable {
    condition: String,
    dependencies: Vec<DependencyLine>,
}

/// Crate that a finalizer's library names.
#[derive(Serialize)]
pub(super) struct CrateLine {
    source: String,
    name: String,
    condition: String,
}

/// Feature of a finalizer, in its manifest.
#[derive(Serialize)]
struct FeatureLine {
    name: String,
    list: String,
}

/// Adds the operations for one package.
pub(super) fn operations(
    workspace: &Workspace,
    graph: &PackageGraph,
    package: &Package,
    closure: &Closure,
    pending: &mut Pending,
) -> Result<()> {
    let dir = finalizer_directory(package);
    let for_tests = closure.is_for_tests();
    // Cargo omits a dev-dependency without a version from a published package.
    let private = for_tests || is_private(package);
    let features = features(graph, closure);
    let manifest = templates::render(
        "finalizer/Cargo.toml",
        &json!({
            "name": finalizer_name(package),
            "of": package.name,
            "version": package.version,
            "private": private,
            "licence": package.license,
            "tables": dependency_tables(graph, closure, &dir),
            "helper": helper(workspace, graph, closure, &dir)?,
            "features": features,
        }),
    );
    pending.write(&dir.join("Cargo.toml"), manifest)?;
    pending.write(&dir.join("build.rs"), build_script(for_tests))?;
    let code = library_code(for_tests, &crates(graph, closure));
    pending.write(&dir.join("src/lib.rs"), code)?;
    let declarations = dir.join(FILE);
    let archs = (graph.index(&package.id)).map_or(Vec::new(), |index| graph.link_archs(index));
    let is_stubbed = is_stubbed(graph, package);
    if is_stubbed || !archs.is_empty() {
        pending.write(&declarations, declaration_text(&archs, is_stubbed))?;
    } else if (pending.read(&declarations)).is_ok_and(|text| is_generated(&text)) {
        // It would leave the stub to a package that no longer has it.
        pending.remove(&declarations)?;
    }
    add_to_package(package, closure, &features, private, pending)
}

/// Dependencies of a finalizer on the packages of the closure, those for all targets first.
fn dependency_tables(graph: &PackageGraph, closure: &Closure, dir: &Path) -> Vec<DependencyTable> {
    let mut tables: BTreeMap<Option<&str>, Vec<DependencyLine>> =
        BTreeMap::from([(None, Vec::new())]);
    for (&index, condition) in &closure.members {
        let member = graph.packages[index];
        let table = tables.entry(condition.target.as_deref()).or_default();
        table.push(DependencyLine {
            key: dependency_key(member, condition),
            spec: spec(
                dir,
                member,
                closure.is_for_tests(),
                condition.needs_feature(),
            ),
        });
    }
    tables
        .into_iter()
        .map(|(target, dependencies)| DependencyTable {
            condition: target.unwrap_or_default().to_owned(),
            dependencies,
        })
        .collect()
}

/// Crates of the packages of the closure.
fn crates(graph: &PackageGraph, closure: &Closure) -> Vec<CrateLine> {
    closure
        .members
        .iter()
        .map(|(&index, condition)| {
            let member = graph.packages[index];
            let name = library(member)
                .map_or(member.name.as_str(), |library| &library.name)
                .replace('-', "_");
            CrateLine {
                source: if condition.needs_feature() {
                    dependency_key(member, condition).replace('-', "_")
                } else {
                    name.clone()
                },
                name,
                condition: cfg_condition(condition),
            }
        })
        .collect()
}

/// Features of a finalizer, and the optional dependencies that each enables.
fn features(graph: &PackageGraph, closure: &Closure) -> Vec<FeatureLine> {
    let mut features: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    if closure.is_for_tests() {
        features.insert(LINK, vec![format!("\"dep:{}\"", cargo_toml::HELPER)]);
    }
    for (&index, condition) in &closure.members {
        let key = dependency_key(graph.packages[index], condition);
        for feature in &condition.features {
            let enabled = features.entry(feature).or_default();
            enabled.push(format!("\"dep:{key}\""));
        }
    }
    features
        .into_iter()
        .map(|(name, enabled)| FeatureLine {
            name: name.to_owned(),
            list: enabled.join(", "),
        })
        .collect()
}

/// Name of a finalizer's dependency on a package. For each feature of the command line, cargo searches
/// every member of the workspace for an optional dependency of that name.
fn dependency_key(member: &Package, condition: &LinkCondition) -> String {
    if condition.needs_feature() {
        format!("{RENAMED}{}", member.name)
    } else {
        member.name.to_string()
    }
}

/// Condition in `#[cfg(…)]`; empty: none.
fn cfg_condition(condition: &LinkCondition) -> String {
    let named: Vec<String> = condition
        .features
        .iter()
        .map(|feature| format!("feature = {feature:?}"))
        .collect();
    let features = match named.as_slice() {
        [] => None,
        [feature] => Some(feature.clone()),
        _ => Some(format!("any({})", named.join(", "))),
    };
    match (features, &condition.target) {
        (Some(features), Some(target)) => format!("all({features}, {target})"),
        (Some(features), None) => features,
        (None, target) => target.clone().unwrap_or_default(),
    }
}

/// Edits the package's own `Cargo.toml`, adding the finalizer as a dependency.
fn add_to_package(
    package: &Package,
    closure: &Closure,
    features: &[FeatureLine],
    private: bool,
    pending: &mut Pending,
) -> Result<()> {
    let path = package.manifest_path.as_std_path();
    let text = pending.read(path)?;
    let text = with_finalizer(text, package, closure, features, private)
        .map_err(|e| Error::new(format!("could not edit `{}`: {e}", display_path(path))))?;
    pending.write(path, text)
}

/// Text of the package's `Cargo.toml` with the dependency on the finalizer.
fn with_finalizer(
    mut text: String,
    package: &Package,
    closure: &Closure,
    features: &[FeatureLine],
    private: bool,
) -> std::result::Result<String, TomlError> {
    let mut table = InlineTable::from_iter([("path", DIRECTORY)]);
    if !private {
        table.insert("version", format!("={}", package.version).into());
    }
    let mut kind = "dependencies";
    if closure.is_for_tests() {
        table.insert("features", Array::from_iter([LINK]).into());
        kind = "dev-dependencies";
    }
    let name = finalizer_name(package);
    for former in renamed::former(package) {
        text = cargo_toml::rename_dependency(&text, former, &name)?;
    }
    text = cargo_toml::set_dependency(&text, kind, &name, &table)?;
    let forwarded = features
        .iter()
        .filter(|feature| feature.name != LINK)
        .map(|feature| {
            let effects = package.features.get(&feature.name);
            (
                feature.name.as_str(),
                effects.map_or(&[][..], Vec::as_slice),
            )
        });
    cargo_toml::pass_features(&text, &name, forwarded)
}

fn is_private(package: &Package) -> bool {
    package.publish.as_ref().is_some_and(Vec::is_empty)
}

/// Dependency of the finalizer on a package: without its features, which other dependents enable.
/// `for_tests`: the finalizer is not published. Then a new version of the package needs no change;
/// `cargo package --workspace` requires some version.
fn spec(dir: &Path, member: &Package, for_tests: bool, optional: bool) -> String {
    let mut table = InlineTable::new();
    match &member.source {
        None => {
            let path = relative(directory(member), dir);
            table.insert("path", path.into());
            // `*` matches no pre-release.
            let version = if for_tests && member.version.pre.is_empty() {
                "*".to_owned()
            } else {
                member.version.to_string()
            };
            if !is_private(member) {
                table.insert("version", version.into());
            }
        }
        Some(source) => match git(&source.repr) {
            Some(repository) => table = repository.table(dir),
            None => drop(table.insert("version", member.version.to_string().into())),
        },
    }
    table.insert("default-features", false.into());
    if optional {
        table.insert("optional", true.into());
        table.insert("package", member.name.as_str().into());
    }
    table.to_string().trim().to_owned()
}

/// Dependency of the finalizer on gpustub-build, from the source that the packages of the closure
/// declare, or that `sync` gives packages without one.
fn helper(
    workspace: &Workspace,
    graph: &PackageGraph,
    closure: &Closure,
    dir: &Path,
) -> Result<String> {
    let path = workspace.root().join("Cargo.toml");
    let root = fs::read_to_string(&path).map_err(|e| Error::io("read", &path, &e))?;
    let members = closure.members.keys().map(|&index| graph.packages[index]);
    let source = HelperSource::choose(workspace.root(), &root, members.chain(workspace.members()))
        .map_err(|e| Error::new(format!("could not read `{}`: {e}", display_path(&path))))?;
    let mut table = source.table(dir);
    table.insert("features", Array::from_iter([DEVICE_LINK_FEATURE]).into());
    if closure.is_for_tests() {
        table.insert("optional", true.into());
    }
    Ok(table.to_string().trim().to_owned())
}

/// Whether a package of the program has the stub of the CUDA runtime.
fn is_stubbed(graph: &PackageGraph, package: &Package) -> bool {
    graph.reachable(&[package]).into_iter().any(|index| {
        graph.nodes[index].provides.contains_key("cudart") && !is_finalizer(graph.packages[index])
    })
}
