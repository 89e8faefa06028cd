//! Facts about a cargo workspace that rules read, gathered by the subcommand.

use std::collections::BTreeSet;

use gpustub_core::define_id;
use gpustub_core::diag::Origin;
use gpustub_core::ids::IndexVec;
use gpustub_core::manifest::{Manifest, Stub};

/// A workspace and its dependency graph.
#[derive(Debug, Clone, Default)]
pub struct WorkspaceFacts<'a> {
    /// Root directory, absolute, with `/`.
    pub root: String,
    /// The packages of the dependency graph.
    pub crates: IndexVec<CrateId, Crate<'a>>,
    /// Cargo's own configuration in the workspace.
    pub configs: Vec<TextFile>,
}

define_id! {
    /// Index of a crate in [`WorkspaceFacts::crates`].
    pub struct CrateId;
}

/// A package of the graph.
#[derive(Debug, Clone, Default)]
pub struct Crate<'a> {
    /// Name of the package.
    pub name: String,
    /// Version of the package.
    pub version: String,
    /// The enabled features.
    pub features: Vec<String>,
    /// The package's `GpuStub.toml`.
    pub manifest: Option<&'a Manifest>,
    /// Whether the package is a workspace member that the run checks.
    pub checked: bool,
    /// Whether the package is a workspace member: `-p` of `cargo gpustub add` accepts it.
    pub member: bool,
    /// Whether the linker links a program, or a library for other languages than Rust, from it.
    pub linked: bool,
    /// Crates that the package's own code links; no build scripts, no procedural macros.
    pub dependencies: Vec<CrateId>,
    /// Libraries that the crate's build script passes to the linker, if build scripts were run.
    pub link_libraries: Vec<LinkLibrary>,
    /// Package that requires the crate; `None` for a package that is checked.
    pub required_by: Option<RequiredBy>,
}

/// The dependency declaration through which a crate is in the graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequiredBy {
    /// The package of the workspace.
    pub package: String,
    /// The dependency of that package through which the crate is required, if it is indirect.
    pub through: Option<String>,
    /// Location of the declaration.
    pub origin: Origin,
}

/// A library that a build script passes to the linker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkLibrary {
    /// Name after `-l`.
    pub name: String,
    /// Directories outside of the build directory that the build script lets the linker search.
    pub directories: Vec<String>,
    /// Location in the build script, of a package that is checked.
    pub origin: Option<Origin>,
}

/// A text file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextFile {
    /// Display path.
    pub display_path: String,
    /// Contents of the file.
    pub text: String,
}

impl<'a> WorkspaceFacts<'a> {
    /// The packages to check that have a `GpuStub.toml`, with their manifests.
    pub fn declaring(&self) -> impl Iterator<Item = (&Crate<'a>, &'a Manifest)> {
        self.crates
            .iter()
            .filter(|krate| krate.checked)
            .filter_map(|krate| Some((krate, krate.manifest?)))
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

    /// The crates whose code is in the image that is linked from this one, including the crate itself.
    pub fn closure(&self, root: CrateId) -> BTreeSet<CrateId> {
        let mut closure = BTreeSet::from([root]);
        let mut queue = vec![root];
        while let Some(id) = queue.pop() {
            for &dependency in &self.crates[id].dependencies {
                if closure.insert(dependency) {
                    queue.push(dependency);
                }
            }
        }
        closure
    }

    /// Packages to check from which the linker links an image.
    pub fn images(&self) -> impl Iterator<Item = CrateId> {
        self.crates.ids().filter(|&id| {
            let krate = &self.crates[id];
            krate.checked && krate.linked
        })
    }
}

impl Crate<'_> {
    /// Name, version, and the dependency through which the crate is required.
    pub fn display_name(&self) -> String {
        let through = match self
            .required_by
            .as_ref()
            .and_then(|required_by| required_by.through.as_ref())
        {
            Some(through) => format!(", through `{through}`"),
            None => String::new(),
        };
        format!("`{}` {}{through}", self.name, self.version)
    }
}
