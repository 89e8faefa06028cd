//! Nodes of the libraries that packages declare.

use gpustub_core::device_link::{Kind, Node, NodeForm, shared_launches};
use gpustub_core::diag::{Diagnostic, MISSING_ARCH, UNKNOWN_DEVICE_LIBRARY};
use gpustub_core::gpu_arch::{Arch, ArchKind};
use gpustub_core::manifest::{DeviceCode, DeviceLink, LibraryType, Spanned};
use gpustub_core::suggest::nearest;
use gpustub_engine::device_link::{Directories, sources};
use gpustub_image::archive_device_code_file;

use super::visibility::Library;
use super::{Builder, CargoUnit, link, runtime};
use crate::package_index::PackageIndex;
use crate::workspace::directory;

impl<'a> Builder<'a> {
    /// Adds the libraries that a package declares.
    pub(super) fn libraries(&mut self, at: PackageIndex) {
        for declared in self.packages.rdc(at) {
            let unit = CargoUnit {
                package: at,
                what: "library",
                target: Some(declared.name.value.clone()),
            };
            let node = self.library(at, declared);
            self.add(unit, node);
        }
    }

    fn library(&mut self, at: PackageIndex, declared: &DeviceLink) -> Node {
        let (kind, form) = match (&declared.code, declared.library_type) {
            (DeviceCode::Headers, _) => (Kind::Interface, NodeForm::Static),
            (_, LibraryType::Static) => (Kind::Rdc, NodeForm::Static),
            (_, LibraryType::Shared) => (Kind::Rdc, NodeForm::Shared),
        };
        let id = &declared.name.value;
        let mut node = Node::new(self.names.library(at, id), kind, form);
        node.origin = self.place(at, declared.name.span.clone());
        node.archs = declared.archs.iter().map(|arch| arch.value).collect();
        node.cudart = (kind == Kind::Rdc).then_some(declared.cudart);
        match &declared.code {
            DeviceCode::External { prebuilt, .. } => {
                self.external(at, declared, &prebuilt.value, &mut node);
            }
            DeviceCode::Sources(patterns) => self.sources(at, id, patterns),
            DeviceCode::Headers => {}
        }
        if declared.library_type == LibraryType::Shared {
            self.made
                .found
                .extend(runtime::refused(self.packages, at, declared));
        }
        node.version_of = self.names.is_shared(id).then(|| id.clone());
        let required = self.required(at, declared);
        if form == NodeForm::Shared {
            let launches = |(_, table): &(Library, &DeviceLink)| table.cudadevrt;
            if let Some((library, _)) = self.closure(required.clone()).into_iter().find(launches) {
                let mut error = shared_launches(id, &library.name);
                error.origin = self.place(at, declared.name.span.clone());
                self.made.found.push(error);
            }
        }
        let required = required.into_iter();
        node.links.extend(
            required.map(|library| link(self.names.library(library.package, &library.name))),
        );
        node
    }

    /// Libraries that a table requires. Reports unknown names, except modules of the same package, which
    /// were reported when its file was read.
    pub(super) fn required(&mut self, at: PackageIndex, table: &DeviceLink) -> Vec<Library> {
        let mut required = Vec::new();
        for name in &table.requires {
            let found = self.visibility.required(at, &name.value);
            let declared = self.packages.declared[at].iter();
            let mut modules = declared.flat_map(|one| &one.manifest.device_modules);
            if found.is_empty() && !modules.any(|module| module.name() == name.value) {
                let mut error = self.unknown(at, &table.name.value, &name.value);
                error.origin = self.place(at, name.span.clone());
                self.made.found.push(error);
            }
            required.extend(found);
        }
        required
    }

    /// Libraries and all that they require, each once.
    pub(super) fn closure(&mut self, mut open: Vec<Library>) -> Vec<(Library, &'a DeviceLink)> {
        let mut found: Vec<(Library, &DeviceLink)> = Vec::new();
        open.reverse();
        while let Some(library) = open.pop() {
            if found.iter().any(|(known, _)| *known == library) {
                continue;
            }
            let tables = self.packages.rdc(library.package);
            let table = tables
                .into_iter()
                .find(|one| one.name.value == library.name);
            let Some(table) = table else { continue };
            // Unknown names are reported where the library is.
            let required = table.requires.iter().rev();
            for name in required {
                open.extend(self.visibility.required(library.package, &name.value));
            }
            found.push((library, table));
        }
        found
    }

    /// Reads the device code of an archive that was built elsewhere, if the file exists.
    fn external(
        &mut self,
        at: PackageIndex,
        declared: &DeviceLink,
        archive: &str,
        node: &mut Node,
    ) {
        let path = directory(self.packages.packages[at]).join(archive);
        if !path.exists() {
            return;
        }
        match archive_device_code_file(&path) {
            Ok(code) => {
                let holds: Vec<Arch> = code.archs().into_iter().collect();
                if let Some(mut error) = wrong_archs(declared, archive, &holds) {
                    let first = declared.archs.iter().find(|a| !has(&holds, a.value));
                    error.origin = first.and_then(|arch| self.place(at, arch.span.clone()));
                    self.made.found.push(error);
                    node.archs = holds;
                }
                node.prelinked = code.is_device_linked().then(Vec::new);
            }
            Err(error) => self.made.found.push(node_placed(error.diagnostic(), node)),
        }
    }

    /// Reports patterns that match no file, with the message of the build.
    pub(super) fn sources(&mut self, at: PackageIndex, id: &str, patterns: &[Spanned<String>]) {
        let directories = Directories {
            package: directory(self.packages.packages[at]),
            out_dir: None,
        };
        for pattern in patterns {
            if let Err(mut error) = sources::matching(directories, id, &pattern.value) {
                error.origin = self.place(at, pattern.span.clone());
                self.made.found.push(*error);
            }
        }
    }

    /// Reports a `requires` that names no library visible to its package.
    fn unknown(&self, at: PackageIndex, id: &str, name: &str) -> Diagnostic {
        let message = format!(
            "`device-link.{id}` requires `{name}`, which neither its package nor a direct \
             dependency of it declares"
        );
        let others = self.packages.declared.iter().flatten();
        let known: Vec<(&str, bool)> = (self.packages.packages.ids())
            .flat_map(|other| self.packages.rdc(other))
            .map(|one| (one.name.value.as_str(), true))
            .chain(others.flat_map(|declared| {
                let all = declared.manifest.device_links.iter();
                all.map(|one| (one.name.value.as_str(), false))
            }))
            .collect();
        let mut modules = self.packages.declared.iter().flatten();
        let is_module = modules.any(|declared| {
            let mut all = declared.manifest.device_modules.iter();
            all.any(|module| module.name() == name)
        });
        let help = match known.iter().find(|(known, _)| *known == name) {
            Some((_, true)) => format!(
                "add the package that declares it to [dependencies] of `{}`; that package needs a \
                 `links` key, which `cargo gpustub sync` writes",
                self.packages.packages[at].name
            ),
            Some((_, false)) => "the library requires a cargo feature that is off".to_owned(),
            None if is_module => {
                "it is a module, which nothing can be linked with: move what both need into a library \
                 (`type = \"static\"`)"
                    .to_owned()
            }
            None => {
                let others = known.iter().map(|(known, _)| *known);
                match nearest(name, others.filter(|other| *other != id)) {
                    Some(meant) => format!("did you mean `{meant}`?"),
                    None => "declare it, or remove the name".to_owned(),
                }
            }
        };
        Diagnostic::error(&UNKNOWN_DEVICE_LIBRARY, message).help(help)
    }
}

/// Whether code for these architectures covers a declared one: a device link for the declared one
/// can be made of it, and one for newer GPUs if PTX or LTO code is declared.
fn has(holds: &[Arch], declared: Arch) -> bool {
    let lasts = |kind| kind != ArchKind::Real;
    let mut holds = holds.iter();
    holds.any(|arch| arch.serves(declared) && lasts(arch.kind) >= lasts(declared.kind))
}

/// Reports an archive built elsewhere that lacks code for its `archs`. Builds rely on `archs`, and
/// nvlink does not report missing code.
fn wrong_archs(declared: &DeviceLink, archive: &str, holds: &[Arch]) -> Option<Diagnostic> {
    let words = |archs: &[Arch]| {
        archs
            .iter()
            .map(Arch::to_string)
            .collect::<Vec<_>>()
            .join(", ")
    };
    let archs = declared.archs.iter().map(|arch| arch.value);
    let missing: Vec<Arch> = archs.filter(|arch| !has(holds, *arch)).collect();
    if holds.is_empty() || missing.is_empty() {
        return None;
    }
    let name = &declared.name.value;
    let message = format!(
        "`archs` of device-link.{name} is {}, but {archive} has only {}",
        words(&missing),
        words(holds)
    );
    let help = "list the archive's architectures, or build the archive for these as well";
    Some(Diagnostic::error(&MISSING_ARCH, message).help(help))
}

fn node_placed(mut diagnostic: Diagnostic, node: &Node) -> Diagnostic {
    diagnostic.origin.clone_from(&node.origin);
    diagnostic
}
