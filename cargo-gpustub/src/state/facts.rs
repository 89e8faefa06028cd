//! Facts about a workspace for the rules, gathered from cargo and from files.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::ops::Range;
use std::path::Path;

use cargo_metadata::{CrateType, Package, TargetKind};
use gpustub_check::workspace::{Crate, CrateId, RequiredBy, TextFile, WorkspaceFacts};
use gpustub_core::diag::Origin;
use gpustub_core::ids::{Id, IndexVec};
use gpustub_workspace::display_path::{display_path, slashes};
use gpustub_workspace::error::{Error, Result};
use gpustub_workspace::graph::PackageGraph;
use gpustub_workspace::package_index::PackageIndex;
use gpustub_workspace::report::Sources;
use gpustub_workspace::workspace::Workspace;
use toml_edit::{Document, Item, TableLike};

/// Files that rules read, except `GpuStub.toml`.
pub struct Texts {
    configs: Vec<TextFile>,
    /// The `Cargo.toml` of each selected package, in their order.
    manifests: Vec<TextFile>,
}

impl Texts {
    /// Reads the files.
    pub fn read(workspace: &Workspace, selected: &[&Package]) -> Result<Self> {
        let config = text(&workspace.root().join(".cargo/config.toml"))?;
        let mut manifests = Vec::new();
        for package in selected {
            manifests.extend(text(package.manifest_path.as_std_path())?);
        }
        Ok(Self {
            configs: config.into_iter().collect(),
            manifests,
        })
    }

    /// The texts as sources of diagnostics.
    pub fn sources(&self) -> Sources {
        self.configs
            .iter()
            .chain(&self.manifests)
            .map(|file| (file.display_path.clone(), file.text.clone()))
            .collect()
    }
}

fn text(path: &Path) -> Result<Option<TextFile>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(TextFile {
            display_path: display_path(path),
            text,
        })),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::io("read", path, &e)),
    }
}

/// Gathers the facts about the workspace.
pub fn gather<'a>(
    workspace: &Workspace,
    graph: &'a PackageGraph<'_>,
    selected: &[&Package],
    texts: &Texts,
) -> WorkspaceFacts<'a> {
    let members = workspace.members();
    let mut crates: IndexVec<CrateId, Crate<'a>> = IndexVec::new();
    for (index, package) in graph.packages.ids().zip(&graph.packages) {
        crates.push(Crate {
            name: package.name.to_string(),
            version: package.version.to_string(),
            features: graph.features[index].clone(),
            manifest: graph.declared[index]
                .as_ref()
                .map(|declared| &declared.manifest),
            checked: selected.iter().any(|chosen| chosen.id == package.id),
            member: members.iter().any(|member| member.id == package.id),
            linked: is_linked(package),
            dependencies: (graph.nodes[index].dependencies.iter())
                .map(|&dependency| crate_id(dependency))
                .collect(),
            link_libraries: Vec::new(),
            required_by: None,
        });
    }
    for (package, manifest) in selected.iter().zip(&texts.manifests) {
        ask(workspace, graph, package, manifest, &mut crates);
    }
    // Crates that no selected package requires are not checked.
    for id in crates.ids() {
        let krate = &mut crates[id];
        if !krate.checked && krate.required_by.is_none() {
            krate.features.clear();
            krate.name.clear();
        }
    }
    WorkspaceFacts {
        root: slashes(workspace.root()),
        crates,
        configs: texts.configs.clone(),
    }
}

/// Crate id of a package: [`gather`] keeps the order of packages.
fn crate_id(package: PackageIndex) -> CrateId {
    CrateId::from_index(package.index())
}

/// Whether the linker links a program, or a library for other languages than Rust, from the package.
fn is_linked(package: &Package) -> bool {
    package.targets.iter().any(|target| {
        target.is_kind(TargetKind::Bin)
            || target.crate_types.contains(&CrateType::CDyLib)
            || target.crate_types.contains(&CrateType::StaticLib)
    })
}

/// A package, and the direct dependency that it was reached through.
struct Reached {
    package: PackageIndex,
    direct: PackageIndex,
}

/// Records for each crate that a package requires the location of the requirement.
fn ask(
    workspace: &Workspace,
    graph: &PackageGraph<'_>,
    package: &Package,
    manifest: &TextFile,
    crates: &mut IndexVec<CrateId, Crate<'_>>,
) {
    let Some(root) = graph.index(&package.id) else {
        return;
    };
    // Breadth first, so that the shortest path is reported.
    let mut queue: VecDeque<Reached> = dependencies(workspace, graph, root)
        .map(|direct| Reached {
            package: direct,
            direct,
        })
        .collect();
    while let Some(Reached {
        package: index,
        direct,
    }) = queue.pop_front()
    {
        let krate = &mut crates[crate_id(index)];
        if krate.checked || krate.required_by.is_some() {
            continue;
        }
        let name = graph.packages[direct].name.as_str();
        let key = package
            .dependencies
            .iter()
            .find(|dependency| dependency.name == name)
            .and_then(|dependency| dependency.rename.as_deref())
            .unwrap_or(name);
        krate.required_by = Some(RequiredBy {
            package: package.name.to_string(),
            through: (index != direct).then(|| name.to_owned()),
            origin: Origin::new(
                &manifest.display_path,
                dependency_key(&manifest.text, key).unwrap_or(0..0),
            ),
        });
        queue.extend(
            dependencies(workspace, graph, index).map(|package| Reached { package, direct }),
        );
    }
}

/// Packages that a package depends on directly.
fn dependencies<'a>(
    workspace: &'a Workspace,
    graph: &'a PackageGraph<'_>,
    package: PackageIndex,
) -> impl Iterator<Item = PackageIndex> + 'a {
    let id = &graph.packages[package].id;
    let resolve = workspace.metadata.resolve.as_ref();
    resolve
        .and_then(|resolve| resolve.nodes.iter().find(|node| node.id == *id))
        .into_iter()
        .flat_map(|node| &node.deps)
        .filter_map(|dependency| graph.index(&dependency.pkg))
}

/// Span of a dependency's key in a `Cargo.toml`.
fn dependency_key(text: &str, key: &str) -> Option<Range<usize>> {
    let document = Document::parse(text).ok()?;
    let top: &dyn TableLike = document.as_table();
    key_in_dependency_tables(top, key).or_else(|| {
        let targets = top.get("target")?.as_table_like()?;
        targets
            .iter()
            .find_map(|(_, target)| key_in_dependency_tables(target.as_table_like()?, key))
    })
}

fn key_in_dependency_tables(table: &dyn TableLike, key: &str) -> Option<Range<usize>> {
    ["dependencies", "build-dependencies", "dev-dependencies"]
        .iter()
        .find_map(|kind| {
            let table = table.get(kind).and_then(Item::as_table_like)?;
            table.get_key_value(key)?.0.span()
        })
}

#[cfg(test)]
mod tests {
    use super::dependency_key;

    #[test]
    fn dependency_key_finds_all_forms() {
        for text in [
            "[dependencies]\na = \"1\"\ncudarc = \"0.19\"\n",
            "[dependencies]\ncudarc = { version = \"0.19\" }\n",
            "[dependencies]\ncudarc.workspace = true\n",
            "[dependencies.cudarc]\nversion = \"0.19\"\n",
            "[build-dependencies]\ncudarc = \"0.19\"\n",
            "[target.'cfg(unix)'.dependencies]\ncudarc = \"0.19\"\n",
        ] {
            let span = dependency_key(text, "cudarc").unwrap_or_else(|| panic!("{text}"));
            assert_eq!(&text[span], "cudarc", "{text}");
        }
        assert_eq!(
            dependency_key("[dependencies]\na = \"1\"\n", "cudarc"),
            None
        );
        assert_eq!(dependency_key("[", "cudarc"), None);
    }
}
