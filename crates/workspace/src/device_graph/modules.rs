//! Modules that packages declare, which programs load and are not linked with.

use std::collections::BTreeSet;
use std::path::PathBuf;

use gpustub_core::device_link::{module_lacks_arch, module_variable_taken};
use gpustub_core::manifest::{DeviceCode, DeviceModule, Spanned};
use gpustub_engine::device_link::{Directories, sources};

use super::{Builder, Module, ModuleFile};
use crate::package_index::PackageIndex;
use crate::workspace::directory;

impl Builder<'_> {
    /// Adds the modules that a package declares.
    pub(super) fn add_modules(&mut self, index: PackageIndex) {
        let mut variables = BTreeSet::new();
        for declared in self.packages.modules(index) {
            let files = self.module_files(index, declared);
            for file in &files {
                if !variables.insert(file.variable.clone()) {
                    let source = file.source.as_deref();
                    let error = module_variable_taken(declared, source, &file.variable);
                    self.report(error, index, &declared.library.name.span);
                }
            }
            let libraries = self.libraries_of(index, declared);
            self.device_graph.modules.push(Module {
                package: index,
                declared: declared.clone(),
                libraries,
                files,
            });
        }
    }

    /// Files that the build of a module writes for each vendor: one of each source, or one of its device link.
    fn module_files(&mut self, index: PackageIndex, declared: &DeviceModule) -> Vec<ModuleFile> {
        let mut files = Vec::new();
        if let DeviceCode::Sources(patterns) = &declared.library.code {
            self.check_sources(index, declared.name(), patterns);
            if !declared.separable {
                files.extend(self.source_files(index, declared, patterns));
            }
        }
        if declared.separable {
            for vendor in declared.vendors() {
                files.push(ModuleFile {
                    variable: declared.variable(None, vendor),
                    source: None,
                });
            }
        }
        files
    }

    /// A file for each source and vendor of a module, sorted by source.
    fn source_files(
        &self,
        index: PackageIndex,
        declared: &DeviceModule,
        patterns: &[Spanned<String>],
    ) -> Vec<ModuleFile> {
        let directories = Directories {
            package: directory(self.packages.packages[index]),
            out_dir: None,
        };
        let sources: BTreeSet<PathBuf> = patterns
            .iter()
            .flat_map(|pattern| {
                sources::matching(directories, declared.name(), &pattern.value).unwrap_or_default()
            })
            .collect();
        let mut files = Vec::new();
        for source in sources {
            let stem = source.file_stem().unwrap_or_default().to_string_lossy();
            for vendor in declared.vendors() {
                files.push(ModuleFile {
                    variable: declared.variable(Some(&stem), vendor),
                    source: Some(source.display().to_string()),
                });
            }
        }
        files
    }

    /// Names of the libraries whose code is in a module's device link.
    fn libraries_of(&mut self, index: PackageIndex, module: &DeviceModule) -> Vec<String> {
        let required = self.required(index, &module.library);
        let mut names = Vec::new();
        for (library, table) in self.closure(required) {
            let has_code = !matches!(table.code, DeviceCode::Headers);
            if !has_code || !module.separable {
                continue;
            }
            let archs: Vec<_> = table.archs.iter().map(|arch| arch.value).collect();
            if let Some(error) = module_lacks_arch(module, &library.name, &archs) {
                self.report(error, index, &module.library.name.span);
            }
            names.push(self.names.library(library.package, &library.name));
        }
        names
    }
}
