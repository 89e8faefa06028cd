//! The part of a plan about modules of device code.

use std::fmt::Write;

use gpustub_workspace::device_graph::{DeviceGraph, Module};
use gpustub_workspace::package_index::PackageIndex;
use serde::Serialize;

use super::text::row;

/// Modules of one package.
pub fn of_package(device_graph: &DeviceGraph, package: PackageIndex) -> Vec<&Module> {
    device_graph
        .modules
        .iter()
        .filter(|module| module.package == package)
        .collect()
}

/// Appends the lines of a module.
pub fn describe(text: &mut String, module: &Module) {
    let module = ModuleJson::new(module);
    let _ = writeln!(
        text,
        "  device-link.{}: module ({}) for {}",
        module.name,
        module.format,
        module.archs.join(" ")
    );
    row(text, "libraries", module.libraries.iter().cloned());
    row(
        text,
        "as",
        module.files.iter().map(|file| match file.source {
            Some(source) => format!("{} ({source})", file.variable),
            None => file.variable.to_owned(),
        }),
    );
}

/// JSON form of a module.
#[derive(Serialize)]
pub struct ModuleJson<'a> {
    name: &'a str,
    format: &'static str,
    separable: bool,
    archs: Vec<String>,
    /// Libraries in its device link.
    libraries: &'a [String],
    files: Vec<FileJson<'a>>,
}

#[derive(Serialize)]
struct FileJson<'a> {
    variable: &'a str,
    source: Option<&'a str>,
}

impl<'a> ModuleJson<'a> {
    /// JSON form of a module.
    pub fn new(module: &'a Module) -> Self {
        let declared = &module.declared;
        Self {
            name: declared.name(),
            format: declared.format.word(),
            separable: declared.separable,
            archs: declared
                .library
                .archs
                .iter()
                .map(|arch| arch.value.to_string())
                .collect(),
            libraries: &module.libraries,
            files: module
                .files
                .iter()
                .map(|file| FileJson {
                    variable: &file.variable,
                    source: file.source.as_deref(),
                })
                .collect(),
        }
    }
}
