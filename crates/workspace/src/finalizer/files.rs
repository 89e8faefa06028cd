//! Files of a finalizer, and the lines about it in its package.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::display_path::display_path;
use crate::edit::cargo_toml;
use crate::edit::templates;
use crate::error::{Error, Result};
use crate::ops::Pending;
use cargo_metadata::{DependencyKind, Package};
use serde::Serialize;
use serde_json::json;
use toml_edit::{Array, InlineTable};

use super::closure::{Closure, LINK, When};
use super::naming::{DIRECTORY, is_one, name, place};
use super::renamed;
use crate::graph::Graph;
use crate::helper_source::{HelperSource, git, relative};
use crate::package_index::PackageIndex;
use crate::tables::FILE;
use crate::workspace::{Workspace, directory, library};

/// Feature of the helper that RDC libraries need.
pub const FEATURE: &str = "device-link";

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
pub(super) fn library_code(for_tests: bool, crates: &[Crate]) -> String {
    templates::render(
        LIB_RS,
        &json!({ "link": link(for_tests), "crates": crates }),
    )
}

fn link(for_tests: bool) -> Option<&'static str> {
    for_tests.then_some(LINK)
}

#[derive(Serialize)]
struct Dependency {
    key: String,
    spec: String,
}

#[derive(Serialize)]
struct Table {
    condition: String,
    dependencies: Vec<Dependency>,
}

#[derive(Serialize)]
pub(super) struct Crate {
    source: String,
    name: String,
    condition: String,
}

#[derive(Serialize)]
struct Feature {
    name: String,
    list: String,
}

/// Adds the operations for one package.
pub(super) fn operations(
    workspace: &Workspace,
    graph: &Graph,
    package: &Package,
    closure: &Closure,
    pending: &mut Pending,
) -> Result<()> {
    let dir = place(package);
    let for_tests = closure.kind == DependencyKind::Development;
    // Cargo omits a dev-dependency without a version from a published package.
    let private = for_tests || is_private(package);
    // Sorted: dependencies for all targets first.
    let mut tables: BTreeMap<Option<&str>, Vec<Dependency>> = BTreeMap::from([(None, Vec::new())]);
    let mut crates = Vec::new();
    let mut features: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    if for_tests {
        features.insert(LINK, vec![format!("\"dep:{}\"", cargo_toml::HELPER)]);
    }
    for (&at, when) in &closure.members {
        let member = graph.packages[at];
        let is_optional = !when.features.is_empty();
        let lib = library(member).map_or(member.name.as_str(), |lib| &lib.name);
        let lib = lib.replace('-', "_");
        // For each feature of the command line, cargo searches every member of the workspace for an
        // optional dependency of that name.
        let (key, source) = if is_optional {
            let key = format!("{RENAMED}{}", member.name);
            (key.clone(), key.replace('-', "_"))
        } else {
            (member.name.to_string(), lib.clone())
        };
        tables
            .entry(when.target.as_deref())
            .or_default()
            .push(Dependency {
                spec: spec(&dir, member, for_tests, is_optional),
                key: key.clone(),
            });
        crates.push(Crate {
            source,
            name: lib,
            condition: condition(when),
        });
        for feature in &when.features {
            features
                .entry(feature)
                .or_default()
                .push(format!("\"dep:{key}\""));
        }
    }
    let tables: Vec<Table> = tables
        .into_iter()
        .map(|(target, dependencies)| Table {
            condition: target.unwrap_or_default().to_owned(),
            dependencies,
        })
        .collect();
    let features: Vec<_> = features
        .into_iter()
        .map(|(name, list)| Feature {
            name: name.to_owned(),
            list: list.join(", "),
        })
        .collect();
    let cargo_toml = templates::render(
        "finalizer/Cargo.toml",
        &json!({
            "name": name(package),
            "of": package.name,
            "version": package.version,
            "private": private,
            "licence": package.license,
            "tables": tables,
            "helper": helper(workspace, graph, closure, &dir)?,
            "features": features,
        }),
    );
    let empty = json!({});
    pending.write(&dir.join("Cargo.toml"), cargo_toml)?;
    pending.write(&dir.join("build.rs"), build_script(for_tests))?;
    let code = library_code(for_tests, &crates);
    pending.write(&dir.join("src/lib.rs"), code)?;
    if is_stubbed(graph, package) {
        let text = templates::render("finalizer/GpuStub.toml", &empty);
        pending.write(&dir.join(FILE), text)?;
    }
    manifest(package, closure, &features, private, pending)
}

/// Condition in `#[cfg(…)]`; empty: none.
fn condition(when: &When) -> String {
    let named: Vec<_> = when
        .features
        .iter()
        .map(|f| format!("feature = {f:?}"))
        .collect();
    let features = match named.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        several => Some(format!("any({})", several.join(", "))),
    };
    match (features, &when.target) {
        (Some(features), Some(target)) => format!("all({features}, {target})"),
        (one, other) => one.or(other.clone()).unwrap_or_default(),
    }
}

/// Edits the package's own `Cargo.toml`, adding the finalizer as a dependency.
fn manifest(
    package: &Package,
    closure: &Closure,
    features: &[Feature],
    private: bool,
    pending: &mut Pending,
) -> Result<()> {
    let path = package.manifest_path.as_std_path();
    let old = pending.read(path)?;
    let mut value = InlineTable::from_iter([("path", DIRECTORY)]);
    if !private {
        value.insert("version", format!("={}", package.version).into());
    }
    let kind = match closure.kind {
        DependencyKind::Development => {
            value.insert("features", Array::from_iter([LINK]).into());
            "dev-dependencies"
        }
        _ => "dependencies",
    };
    let name = name(package);
    let edit = || {
        let mut text = old.clone();
        for former in renamed::former(package) {
            text = cargo_toml::rename_dependency(&text, former, &name)?;
        }
        text = cargo_toml::set_dependency(&text, kind, &name, &value)?;
        let passed = features.iter().filter(|feature| feature.name != LINK);
        let wanted = passed.map(|feature| {
            let own = package
                .features
                .get(&feature.name)
                .map_or(&[][..], Vec::as_slice);
            (feature.name.as_str(), own)
        });
        text = cargo_toml::pass_features(&text, &name, wanted)?;
        Ok::<_, toml_edit::TomlError>(text)
    };
    let new =
        edit().map_err(|e| Error::new(format!("could not edit `{}`: {e}", display_path(path))))?;
    pending.write(path, new)
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
fn helper(workspace: &Workspace, graph: &Graph, closure: &Closure, dir: &Path) -> Result<String> {
    let path = workspace.root().join("Cargo.toml");
    let root = fs::read_to_string(&path).map_err(|e| Error::io("read", &path, &e))?;
    let members = closure.members.keys().map(|&at| graph.packages[at]);
    let source = HelperSource::choose(workspace, &root, members.chain(workspace.members()))
        .map_err(|e| Error::new(format!("could not read `{}`: {e}", display_path(&path))))?;
    let mut table = source.table(dir);
    table.insert("features", Array::from_iter([FEATURE]).into());
    if closure.kind == DependencyKind::Development {
        table.insert("optional", true.into());
    }
    Ok(table.to_string().trim().to_owned())
}

/// Whether a package of the program has the stub of the CUDA runtime.
fn is_stubbed(graph: &Graph, package: &Package) -> bool {
    let reachable = graph.reachable(&[package]);
    let is_finalizer = |at: PackageIndex| is_one(graph.packages[at]);
    reachable
        .into_iter()
        .any(|at| graph.nodes[at].provides.contains_key("cudart") && !is_finalizer(at))
}
