//! Reads and decodes a package's `GpuStub.toml`.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

use crate::codes::{MISPLACED_TABLE, UNKNOWN_FEATURE};
use crate::display_path::display_path;
use crate::error::{Error, Result};
use crate::ops::Pending;
use crate::report::Sources;
use cargo_metadata::Package;
use gpustub_core::diag::Diagnostic;
use gpustub_core::manifest::{Manifest, Spanned, is_same_feature};
use gpustub_core::plan::{Inputs, Plan, symbol_list_path};
use gpustub_core::planner::plan;
use gpustub_core::suggest::nearest;
use gpustub_core::target::Target;

use crate::directories::Directories;
use crate::selection::Selection;
use crate::workspace::{Depth, Workspace, directory};

/// Name of the file.
pub const FILE: &str = "GpuStub.toml";

/// Declarations of one package.
#[derive(Debug)]
pub struct Declared {
    /// Directory of the package.
    pub directory: PathBuf,
    /// Path of the file in messages.
    pub display_path: String,
    /// Text of the file.
    pub text: String,
    /// Contents of the file that could be read.
    pub manifest: Manifest,
    /// Diagnostics of the file.
    pub diagnostics: Vec<Diagnostic>,
    /// Contents of the existing symbol lists that the file names.
    pub inputs: Inputs,
}

impl Declared {
    /// Reads a package's file; `None` if there is none.
    pub fn read(workspace: &Workspace, package: &Package) -> Result<Option<Self>> {
        let mut declared = Self::read_in(directory(package), workspace.edits())?;
        if let Some(declared) = &mut declared {
            let unknown = unknown_features(package, declared);
            let unused = misplaced(workspace, package, declared);
            declared.diagnostics.extend(unknown);
            declared.diagnostics.extend(unused);
        }
        Ok(declared)
    }

    /// Reads the file at the root of a workspace without a package at the root.
    pub fn read_root(workspace: &Workspace) -> Result<Option<Self>> {
        let root = workspace.root();
        let members = workspace.members();
        if members.iter().any(|member| directory(member) == root) {
            return Ok(None);
        }
        Self::read_virtual_root(root, workspace.edits())
    }

    /// Reads the file in a directory that has no package, at the root of a workspace.
    fn read_virtual_root(root: &Path, edits: &Pending) -> Result<Option<Self>> {
        let mut declared = Self::read_in(root, edits)?;
        if let Some(declared) = &mut declared {
            for stub in &declared.manifest.stubs {
                let id = &stub.id.value;
                let message =
                    format!("no package builds `[stub.{id}]`: there is none in this directory");
                let error = Diagnostic::error(&MISPLACED_TABLE, message)
                    .with_origin(&declared.display_path, stub.id.span.clone())
                    .help(
                        "move the table to the GpuStub.toml of the package that calls the library",
                    );
                declared.diagnostics.push(error);
            }
            if let Some(arch) = declared.manifest.link_archs.first() {
                let message =
                    "no package has the programs of `link-archs`: there is none in this directory";
                let error = Diagnostic::error(&MISPLACED_TABLE, message)
                    .with_origin(&declared.display_path, arch.span.clone())
                    .help("move the key to the GpuStub.toml of each package with programs");
                declared.diagnostics.push(error);
            }
        }
        Ok(declared)
    }

    /// Reads the files of a workspace without running cargo, the root's first. Features are not
    /// validated.
    pub fn read_directories(workspace: &Directories) -> Result<Vec<Self>> {
        let edits = Pending::default();
        let mut files = Vec::new();
        if workspace.is_virtual() {
            files.extend(Self::read_virtual_root(&workspace.root, &edits)?);
        }
        for package in &workspace.packages {
            files.extend(Self::read_in(package, &edits)?);
        }
        Ok(files)
    }

    /// Reads the file at the root of a workspace, with or without a package there: its settings for
    /// the whole workspace.
    pub fn read_shared(workspace: &Workspace) -> Result<Option<Self>> {
        Self::read_in(workspace.root(), workspace.edits())
    }

    /// Reads the file of the one selected package, or that of a directory without a package.
    pub fn read_selected(options: &Selection) -> Result<Self> {
        if let Some(file) = Self::without_package(options)? {
            return Ok(file);
        }
        let workspace = Workspace::load(&Self::package_selection(options), Depth::Members)?;
        let package = workspace.selected_package(|_| true)?;
        Ok(Self::read_all(&workspace, &[package])?.remove(0).1)
    }

    /// Reads the file of a directory without a package, as projects in C have it: the one that
    /// `--manifest-path` names, or else that of the current directory.
    pub fn without_package(options: &Selection) -> Result<Option<Self>> {
        let path = match &options.manifest.manifest_path {
            Some(path) if !is_gpustub_toml(path) => return Ok(None),
            Some(path) => path.as_path(),
            None => Path::new(FILE),
        };
        if path.with_file_name("Cargo.toml").exists() {
            return Ok(None);
        }
        let is_named = options.manifest.manifest_path.is_some();
        let path = std::path::absolute(path).map_err(|e| Error::io("find", path, &e))?;
        let declared = Self::read_in(path.parent().unwrap_or(&path), &Pending::default())?;
        match &declared {
            None if is_named => {
                let message = format!("no file `{}`", display_path(&path));
                return Err(Error::new(message).help("write it, or name another one"));
            }
            Some(_) if !options.selects_nothing() => {
                let message =
                    format!("{FILE} without Cargo.toml: no packages or features to select");
                return Err(Error::new(message).help("remove the options that select some"));
            }
            _ => {}
        }
        Ok(declared)
    }

    /// Selection with the path of cargo's manifest, if that of the file beside it is given.
    fn package_selection(options: &Selection) -> Selection {
        let mut options = options.clone();
        if let Some(path) = &mut options.manifest.manifest_path
            && is_gpustub_toml(path)
        {
            path.set_file_name("Cargo.toml");
        }
        options
    }

    fn read_in(directory: &Path, edits: &Pending) -> Result<Option<Self>> {
        let path = directory.join(FILE);
        let text = match edits.read_file(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(Error::io("read", &path, &e)),
        };
        Self::decode(directory, text, edits).map(Some)
    }

    /// Decodes a text that is, or will become, the file of a directory.
    pub fn from_text(directory: &Path, text: String) -> Result<Self> {
        Self::decode(directory, text, &Pending::default())
    }

    fn decode(directory: &Path, text: String, edits: &Pending) -> Result<Self> {
        let display_path = display_path(&directory.join(FILE));
        let (manifest, diagnostics) = Manifest::parse(&display_path, &text);
        let mut inputs = Inputs {
            require_header_versions: true,
            ..Inputs::default()
        };
        for stub in &manifest.stubs {
            let Some(list_path) = &stub.custom.symbols else {
                continue;
            };
            let absolute_path = directory.join(&list_path.value);
            match edits.read_file(&absolute_path) {
                Ok(list) => drop(inputs.symbol_files.insert(&list_path.value, list)),
                // The planner reports a missing list, with the location of its name.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(Error::io("read", &absolute_path, &error)),
            }
        }
        Ok(Self {
            directory: directory.to_owned(),
            display_path,
            text,
            manifest,
            diagnostics,
            inputs,
        })
    }

    /// Reads the files of those packages that have one, which must be at least one.
    pub fn read_all<'a>(
        workspace: &Workspace,
        packages: &[&'a Package],
    ) -> Result<Vec<(&'a Package, Self)>> {
        let mut files = Vec::new();
        for package in packages {
            if let Some(declared) = Self::read(workspace, package)? {
                files.push((*package, declared));
            }
        }
        if files.is_empty() {
            Err(Self::no_file(packages))
        } else {
            Ok(files)
        }
    }

    /// Error if none of these packages has a file.
    pub fn no_file(packages: &[&Package]) -> Error {
        let error = match packages {
            [package] => Error::new(format!("package `{}` has no {FILE}", package.name)),
            _ => Error::new(format!(
                "none of the {} packages has a {FILE}",
                packages.len()
            )),
        };
        error.help("`cargo gpustub add <library>` writes one")
    }

    /// Reads the files of all members that have one: of the selected ones, and of the others.
    pub fn read_members(workspace: &Workspace) -> Result<(PackageFiles<'_>, PackageFiles<'_>)> {
        let packages = workspace.selected()?;
        let ids: HashSet<_> = packages.iter().map(|package| &package.id).collect();
        let (mut selected, mut others) = (Vec::new(), Vec::new());
        for package in workspace.members() {
            let Some(declared) = Self::read(workspace, package)? else {
                continue;
            };
            if ids.contains(&package.id) {
                selected.push((package, declared));
            } else {
                others.push((package, declared));
            }
        }
        Ok((selected, others))
    }

    /// Plan for a target, and all diagnostics.
    pub fn plan(&self, target: &Target, inputs: &Inputs) -> (Plan, Vec<Diagnostic>) {
        let (plan, planning) = plan(&self.manifest, target, inputs);
        let mut diagnostics = self.diagnostics.clone();
        diagnostics.extend(planning);
        (plan, diagnostics)
    }

    /// Texts that diagnostics may refer to.
    pub fn sources(&self) -> Sources {
        let mut sources = Sources::from([(self.display_path.clone(), self.text.clone())]);
        for (path, list) in &self.inputs.symbol_files {
            sources.insert(symbol_list_path(&self.display_path, path), list.clone());
        }
        sources
    }

    /// Whether this package itself provides a stub.
    pub fn provides(&self) -> bool {
        self.manifest.stubs.iter().any(|stub| stub.provide)
    }

    /// Whether the package has libraries of relocatable CUDA code.
    pub fn has_rdc(&self) -> bool {
        !self.manifest.device_links.is_empty()
    }

    /// Whether the package has modules of device code.
    pub fn has_modules(&self) -> bool {
        !self.manifest.device_modules.is_empty()
    }

    /// Whether the package has super-archives.
    pub fn has_archives(&self) -> bool {
        !self.manifest.archive_names.is_empty()
    }

    /// Whether a super-archive of the package has compressed members.
    pub fn has_compressed_archives(&self) -> bool {
        let mut archives = self.manifest.archives.iter();
        archives.any(|archive| archive.compress)
    }

    /// Whether a super-archive of the package has members of split modules.
    pub fn has_split_archives(&self) -> bool {
        let mut archives = self.manifest.archives.iter();
        archives.any(|archive| archive.split)
    }
}

fn is_gpustub_toml(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == FILE)
}

/// Packages, each with its file.
pub type PackageFiles<'a> = Vec<(&'a Package, Declared)>;

/// Declarations of the members that have a file.
#[derive(Debug)]
pub struct Members<'a> {
    /// Declarations of the selected packages.
    pub selected: Vec<(&'a Package, &'a Declared)>,
    /// Declarations of the others: some checks concern the whole workspace.
    pub others: Vec<(&'a Package, &'a Declared)>,
}

impl<'a> Members<'a> {
    /// Combines the files of the selected packages and of the others.
    pub fn new(
        selected: &'a [(&'a Package, Declared)],
        others: &'a [(&'a Package, Declared)],
    ) -> Self {
        fn borrowed<'a>(files: &'a [(&'a Package, Declared)]) -> Vec<(&'a Package, &'a Declared)> {
            files
                .iter()
                .map(|(package, declared)| (*package, declared))
                .collect()
        }
        Self {
            selected: borrowed(selected),
            others: borrowed(others),
        }
    }

    /// Declarations of all members.
    pub fn all(&self) -> impl Iterator<Item = (&'a Package, &'a Declared)> {
        self.selected.iter().chain(&self.others).copied()
    }
}

/// Reports unknown features: a stub that requires one would never be built.
fn unknown_features(package: &Package, declared: &Declared) -> Vec<Diagnostic> {
    let manifest = &declared.manifest;
    let mut tables = Vec::new();
    for stub in &manifest.stubs {
        tables.push(("stub", &stub.id.value, &stub.required_features));
    }
    for archive in &manifest.archives {
        tables.push(("archive", &archive.name.value, &archive.required_features));
    }
    let modules = manifest.device_modules.iter().map(|module| &module.library);
    for library in manifest.device_links.iter().chain(modules) {
        tables.push((
            "device-link",
            &library.name.value,
            &library.required_features,
        ));
    }
    let known: Vec<&str> = package.features.keys().map(String::as_str).collect();
    let mut diagnostics = Vec::new();
    for (table, id, required) in tables {
        for Spanned { value, span } in &required.0 {
            if known.iter().any(|known| is_same_feature(known, value)) {
                continue;
            }
            let message = format!(
                "unknown feature `{value}` in `{table}.{id}.required-features`: package `{}` does not have it",
                package.name
            );
            let help = match nearest(value, known.iter().copied()) {
                Some(similar) => format!("did you mean `{similar}`?"),
                None => format!("add `{value} = []` to [features] in its Cargo.toml"),
            };
            let error = Diagnostic::error(&UNKNOWN_FEATURE, message);
            diagnostics.push(
                error
                    .with_origin(&declared.display_path, span.clone())
                    .help(help),
            );
        }
    }
    diagnostics
}

/// Reports a `[toolkit]` outside of the workspace's root, where it is read. A package from
/// elsewhere has its own in the root of its own workspace.
fn misplaced(workspace: &Workspace, package: &Package, declared: &Declared) -> Option<Diagnostic> {
    if !workspace.has(package) || declared.directory == workspace.root() {
        return None;
    }
    let table = declared.manifest.toolkit.as_ref()?;
    let message = format!(
        "the `[toolkit]` of package `{}` is not used: it is one for the workspace",
        package.name
    );
    let help = format!("move it to {}", display_path(&workspace.root().join(FILE)));
    let warning = Diagnostic::warning(&MISPLACED_TABLE, message);
    Some(
        warning
            .with_origin(&declared.display_path, table.span.clone())
            .help(help),
    )
}
