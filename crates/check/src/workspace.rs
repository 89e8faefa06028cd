//! A cargo workspace, as far as rules look at it: values that the subcommand has gathered.

use std::collections::BTreeSet;

use gpustub_core::define_id;
use gpustub_core::diag::Origin;
use gpustub_core::ids::IndexVec;
use gpustub_core::manifest::{Manifest, Stub};

/// A workspace and all that is built for it.
#[derive(Debug, Clone, Default)]
pub struct Workspace<'a> {
    /// Its folder, absolute, with `/`.
    pub root: String,
    /// The packages of the dependency graph.
    pub crates: IndexVec<CrateId, Crate<'a>>,
    /// Cargo's own configuration in the workspace.
    pub configs: Vec<Text>,
}

define_id! {
    /// Index of a crate in [`Workspace::crates`].
    pub struct CrateId;
}

/// A package of the graph.
#[derive(Debug, Clone, Default)]
pub struct Crate<'a> {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The features that are on.
    pub features: Vec<String>,
    /// What its `GpuStub.toml` says.
    pub manifest: Option<&'a Manifest>,
    /// Whether it is a package of the workspace that is to be checked.
    pub checked: bool,
    /// Whether the linker makes a program or a library for others than Rust of it.
    pub linked: bool,
    /// Crates that its own code links; no build scripts, no procedural macros.
    pub dependencies: Vec<CrateId>,
    /// How it comes into the workspace; none for a package that is checked.
    pub asked: Option<Asked>,
}

/// Who asks for a crate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The package of the workspace.
    pub by: String,
    /// The dependency of that package that brings the crate, if it is another.
    pub through: Option<String>,
    /// Where the package says so.
    pub origin: Origin,
}

/// A text file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// How messages call it.
    pub shown: String,
    /// What is in it.
    pub text: String,
}

impl<'a> Workspace<'a> {
    /// The packages to check that have a `GpuStub.toml`, each with that.
    pub fn declaring(&self) -> impl Iterator<Item = (&Crate<'a>, &'a Manifest)> {
        let checked = self.crates.iter().filter(|c| c.checked);
        checked.filter_map(|c| Some((c, c.manifest?)))
    }

    /// The stubs that the packages to check declare.
    pub fn stubs(&self) -> impl Iterator<Item = (&Crate<'a>, &'a Manifest, &'a Stub)> {
        self.declaring().flat_map(|(owner, manifest)| {
            manifest
                .stubs
                .iter()
                .filter(|stub| {
                    stub.required_features
                        .are_enabled(owner.features.iter().map(String::as_str))
                })
                .map(move |stub| (owner, manifest, stub))
        })
    }

    /// The crates whose code is in what the linker makes of this one, itself included.
    pub fn closure(&self, root: CrateId) -> BTreeSet<CrateId> {
        let mut seen = BTreeSet::from([root]);
        let mut open = vec![root];
        while let Some(next) = open.pop() {
            for &dependency in &self.crates[next].dependencies {
                if seen.insert(dependency) {
                    open.push(dependency);
                }
            }
        }
        seen
    }

    /// Packages to check that the linker makes an image of.
    pub fn images(&self) -> impl Iterator<Item = CrateId> {
        self.crates.ids().filter(|&id| {
            let krate = &self.crates[id];
            krate.checked && krate.linked
        })
    }
}

impl Crate<'_> {
    /// Name and version, and how it comes into the workspace.
    pub fn display_name(&self) -> String {
        let through = match self.asked.as_ref().and_then(|asked| asked.through.as_ref()) {
            Some(through) => format!(", through `{through}`"),
            None => String::new(),
        };
        format!("`{}` {}{through}", self.name, self.version)
    }
}
