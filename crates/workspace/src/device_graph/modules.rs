//! Modules that packages declare, which programs load and are not linked with.

use std::collections::BTreeSet;
use std::path::Path;

use gpustub_core::device_link::{module_lacks_arch, module_variable_taken};
use gpustub_core::manifest::{DeviceCode, DeviceModule};
use gpustub_engine::device_link::{Directories, sources};

use super::{Builder, Module, ModuleFile};
use crate::package_index::PackageIndex;
use crate::workspace::directory;

impl Builder<'_> {
    /// Adds the modules that a package declares.
    pub(super) fn modules(&mut self, at: PackageIndex) {
        let mut variables = BTreeSet::new();
        for declared in self.packages.modules(at) {
            let library = &declared.library;
            let directories = Directories {
                package: directory(self.packages.packages[at]),
                out_dir: None,
            };
            let mut files = Vec::new();
            if let DeviceCode::Sources(patterns) = &library.code {
                self.sources(at, declared.name(), patterns);
                let found = |pattern| sources::matching(directories, declared.name(), pattern);
                let mut found: Vec<_> = patterns
                    .iter()
                    .flat_map(|pattern| found(&pattern.value).unwrap_or_default())
                    .filter(|_| !declared.separable)
                    .collect();
                found.sort();
                found.dedup();
                let of_source = |source: &Path| {
                    let stem = source.file_stem().unwrap_or_default().to_string_lossy();
                    ModuleFile {
                        variable: declared.variable(Some(&stem)),
                        source: Some(source.display().to_string()),
                    }
                };
                files.extend(found.iter().map(|source| of_source(source)));
            }
            if declared.separable {
                files.push(ModuleFile {
                    variable: declared.variable(None),
                    source: None,
                });
            }
            for file in &files {
                if !variables.insert(file.variable.clone()) {
                    let source = file.source.as_deref();
                    let mut error = module_variable_taken(declared, source, &file.variable);
                    error.origin = self.place(at, library.name.span.clone());
                    self.made.found.push(error);
                }
            }
            let libraries = self.libraries_of(at, declared);
            self.made.modules.push(Module {
                package: at,
                declared: declared.clone(),
                libraries,
                files,
            });
        }
    }

    /// Names of the libraries whose code is in a module's device link.
    fn libraries_of(&mut self, at: PackageIndex, module: &DeviceModule) -> Vec<String> {
        let required = self.required(at, &module.library);
        let mut names = Vec::new();
        for (library, table) in self.closure(required) {
            let has_code = !matches!(table.code, DeviceCode::Headers);
            if has_code && module.separable {
                let archs: Vec<_> = table.archs.iter().map(|arch| arch.value).collect();
                if let Some(mut error) = module_lacks_arch(module, &library.name, &archs) {
                    error.origin = self.place(at, module.library.name.span.clone());
                    self.made.found.push(error);
                }
                names.push(self.names.library(library.package, &library.name));
            }
        }
        names
    }
}
