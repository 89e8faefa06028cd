//! Nodes of the libraries that packages declare.

use gpustub_core::device_link::{Node, NodeForm, NodeKind, shared_launches};
use gpustub_core::diag::{Diagnostic, MISSING_ARCH, UNKNOWN_DEVICE_LIBRARY};
use gpustub_core::gpu_arch::{Arch, ArchKind, Vendor};
use gpustub_core::manifest::{DeviceCode, DeviceLink, LibraryType, Spanned};
use gpustub_core::suggest::nearest;
use gpustub_engine::device_link::{Directories, check_archive, sources};
use gpustub_image::archive_device_code_file;

use super::visibility::PackageLibrary;
use super::{Builder, CargoUnit, link, runtime};
use crate::package_index::PackageIndex;
use crate::workspace::directory;

impl<'a> Builder<'a> {
    /// Adds the libraries that a package declares.
    pub(super) fn add_libraries(&mut self, index: PackageIndex) {
        for declared in self.packages.rdc(index) {
            let unit = CargoUnit {
                package: index,
                kind: "library",
                target: Some(declared.name.value.clone()),
            };
            let node = self.library(index, declared);
            self.add(unit, node);
        }
    }

    fn library(&mut self, index: PackageIndex, declared: &DeviceLink) -> Node {
        let (kind, form) = match (&declared.code, declared.library_type) {
            (DeviceCode::Headers, _) => (NodeKind::Interface, NodeForm::Static),
            (_, LibraryType::Static) => (NodeKind::Rdc, NodeForm::Static),
            (_, LibraryType::Shared) => (NodeKind::Rdc, NodeForm::Shared),
        };
        let id = &declared.name.value;
        let mut node = Node::new(self.names.library(index, id), kind, form);
        node.origin = self.origin(index, &declared.name.span);
        node.archs = declared.archs.iter().map(|arch| arch.value).collect();
        let has_cuda = kind == NodeKind::Rdc && Vendor::Nvidia.is_in(node.archs.iter().copied());
        node.cudart = has_cuda.then_some(declared.cudart);
        match &declared.code {
            DeviceCode::External { prebuilt, .. } => {
                self.read_archive(index, declared, prebuilt, &mut node);
            }
            DeviceCode::Sources(patterns) => self.check_sources(index, id, patterns),
            DeviceCode::Headers => {}
        }
        if declared.library_type == LibraryType::Shared {
            for vendor in [Vendor::Nvidia, Vendor::Amd] {
                // An archive with unknown architectures is of CUDA.
                let has_code = vendor.is_in(node.archs.iter().copied())
                    || (vendor == Vendor::Nvidia && node.archs.is_empty());
                let error = has_code
                    .then(|| runtime::runtime_error(self.packages, index, declared, vendor))
                    .flatten();
                self.device_graph.diagnostics.extend(error);
            }
        }
        node.version_of = self.names.is_shared(id).then(|| id.clone());
        let required = self.required(index, declared);
        if form == NodeForm::Shared {
            let closure = self.closure(required.clone());
            if let Some((library, _)) = closure.iter().find(|(_, table)| table.cudadevrt) {
                let error = shared_launches(id, &library.name);
                self.report(error, index, &declared.name.span);
            }
        }
        for library in required {
            node.links
                .push(link(self.names.library(library.package, &library.name)));
        }
        node
    }

    /// Libraries that a table requires. Reports unknown names, except modules of the same package, which
    /// were reported when its file was read.
    pub(super) fn required(
        &mut self,
        index: PackageIndex,
        table: &DeviceLink,
    ) -> Vec<PackageLibrary> {
        let mut required = Vec::new();
        for name in &table.requires {
            let libraries = self.visibility.required(index, &name.value);
            if libraries.is_empty() && !self.has_module(index, &name.value) {
                let error = self.unknown_library(index, &table.name.value, &name.value);
                self.report(error, index, &name.span);
            }
            required.extend(libraries);
        }
        required
    }

    /// Whether a package declares a module of this name.
    fn has_module(&self, index: PackageIndex, name: &str) -> bool {
        self.packages.declared[index]
            .iter()
            .flat_map(|declared| &declared.manifest.device_modules)
            .any(|module| module.name() == name)
    }

    /// Libraries and all that they require, each once.
    pub(super) fn closure(
        &mut self,
        mut open: Vec<PackageLibrary>,
    ) -> Vec<(PackageLibrary, &'a DeviceLink)> {
        let mut closure: Vec<(PackageLibrary, &DeviceLink)> = Vec::new();
        open.reverse();
        while let Some(library) = open.pop() {
            if closure.iter().any(|(known, _)| *known == library) {
                continue;
            }
            let tables = self.packages.rdc(library.package);
            let table = tables
                .into_iter()
                .find(|table| table.name.value == library.name);
            let Some(table) = table else { continue };
            // Unknown names are reported where the library is.
            for name in table.requires.iter().rev() {
                open.extend(self.visibility.required(library.package, &name.value));
            }
            closure.push((library, table));
        }
        closure
    }

    /// Reads the device code of an archive that was built elsewhere, if the file exists.
    fn read_archive(
        &mut self,
        index: PackageIndex,
        declared: &DeviceLink,
        prebuilt: &Spanned<String>,
        node: &mut Node,
    ) {
        let archive = &prebuilt.value;
        let path = directory(self.packages.packages[index]).join(archive);
        if !path.exists() {
            return;
        }
        if let Err(error) = check_archive(declared, &path) {
            self.report(*error, index, &prebuilt.span);
            return;
        }
        match archive_device_code_file(&path) {
            Ok(code) => {
                let mut archs = Vec::from_iter(code.archs());
                if let Some(mut error) = missing_archs(declared, archive, &archs) {
                    let missing = declared.archs.iter().find(|arch| {
                        arch.value.vendor() == Vendor::Nvidia && !covers(&archs, arch.value)
                    });
                    error.origin = missing.and_then(|arch| self.origin(index, &arch.span));
                    self.device_graph.diagnostics.push(error);
                    archs.extend(declared_archs(declared, Vendor::Amd));
                    node.archs = archs;
                }
                node.prelinked = code.is_device_linked().then(Vec::new);
            }
            Err(error) => {
                let mut diagnostic = error.diagnostic();
                diagnostic.origin.clone_from(&node.origin);
                self.device_graph.diagnostics.push(diagnostic);
            }
        }
    }

    /// Reports patterns that match no file, with the message of the build.
    pub(super) fn check_sources(
        &mut self,
        index: PackageIndex,
        id: &str,
        patterns: &[Spanned<String>],
    ) {
        let directories = Directories {
            package: directory(self.packages.packages[index]),
            out_dir: None,
        };
        for pattern in patterns {
            if let Err(error) = sources::matching(directories, id, &pattern.value) {
                self.report(*error, index, &pattern.span);
            }
        }
    }

    /// Reports a `requires` that names no library visible to its package.
    fn unknown_library(&self, index: PackageIndex, id: &str, name: &str) -> Diagnostic {
        let message = format!(
            "`device-link.{id}` requires `{name}`, which neither its package nor a direct \
             dependency of it declares"
        );
        let enabled: Vec<&str> = (self.packages.packages.ids())
            .flat_map(|package| self.packages.rdc(package))
            .map(|library| library.name.value.as_str())
            .collect();
        let declared: Vec<_> = self.packages.declared.iter().flatten().collect();
        let libraries: Vec<&str> = declared
            .iter()
            .flat_map(|declared| &declared.manifest.device_links)
            .map(|library| library.name.value.as_str())
            .collect();
        let mut modules = declared
            .iter()
            .flat_map(|declared| &declared.manifest.device_modules);
        let help = if enabled.contains(&name) {
            format!(
                "add the package that declares it to [dependencies] of `{}`; that package needs a \
                 `links` key, which `cargo gpustub sync` writes",
                self.packages.packages[index].name
            )
        } else if libraries.contains(&name) {
            "the library requires a cargo feature that is off".to_owned()
        } else if modules.any(|module| module.name() == name) {
            "it is a module, which nothing can be linked with: move what both need into a library \
             (`type = \"static\"`)"
                .to_owned()
        } else {
            let names = enabled.into_iter().chain(libraries);
            match nearest(name, names.filter(|known| *known != id)) {
                Some(similar) => format!("did you mean `{similar}`?"),
                None => "declare it, or remove the name".to_owned(),
            }
        };
        Diagnostic::error(&UNKNOWN_DEVICE_LIBRARY, message).help(help)
    }
}

/// Whether code for these architectures covers a declared one: a device link for the declared one
/// can be made of it, and one for newer GPUs if PTX or LTO code is declared.
fn covers(archs: &[Arch], declared: Arch) -> bool {
    archs.iter().any(|arch| {
        arch.serves(declared)
            && (arch.kind() != ArchKind::Real || declared.kind() == ArchKind::Real)
    })
}

/// Architectures of a table for a vendor.
fn declared_archs(declared: &DeviceLink, vendor: Vendor) -> Vec<Arch> {
    vendor.select(declared.archs.iter().map(|arch| arch.value))
}

/// Reports an archive built elsewhere that lacks code of CUDA for its `archs`. Builds rely on `archs`, and
/// nvlink does not report missing code. [`check_archive`] reports that of HIP.
fn missing_archs(declared: &DeviceLink, archive: &str, archs: &[Arch]) -> Option<Diagnostic> {
    fn list(archs: &[Arch]) -> String {
        archs
            .iter()
            .map(Arch::to_string)
            .collect::<Vec<_>>()
            .join(", ")
    }
    let mut missing = declared_archs(declared, Vendor::Nvidia);
    missing.retain(|arch| !covers(archs, *arch));
    if archs.is_empty() || missing.is_empty() {
        return None;
    }
    let name = &declared.name.value;
    let message = format!(
        "`archs` of device-link.{name} is {}, but {archive} has only {}",
        list(&missing),
        list(archs)
    );
    let help = "list the archive's architectures, or build the archive for these as well";
    Some(Diagnostic::error(&MISSING_ARCH, message).help(help))
}
