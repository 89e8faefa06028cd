//! The part of a plan about modules of device code.

use std::fmt::Write;

use gpustub_core::gpu_arch::Arch;
use gpustub_workspace::device_graph::{DeviceGraph, Module};
use gpustub_workspace::package_index::PackageIndex;
use serde::Serialize;

use super::text::row;

/// Modules of one package.
pub fn of_package(device: &DeviceGraph, package: PackageIndex) -> Vec<&Module> {
    let modules = device.modules.iter();
    modules.filter(|one| one.package == package).collect()
}

/// Appends the lines of a module.
pub fn describe(text: &mut String, module: &Module) {
    let shown = Json::new(module);
    let (name, format, archs) = (shown.name, shown.format, shown.archs.join(" "));
    let _ = writeln!(text, "  device-link.{name}: module ({format}) for {archs}");
    if !shown.libraries.is_empty() {
        let libraries = shown.libraries.iter().cloned();
        row(text, "libraries", libraries);
    }
    let file = |file: &FileJson| match file.source {
        Some(source) => format!("{} ({source})", file.variable),
        None => file.variable.to_owned(),
    };
    row(text, "as", shown.files.iter().map(file));
}

/// JSON form of a module.
#[derive(Serialize)]
pub struct Json<'a> {
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

impl<'a> Json<'a> {
    /// JSON form of a module.
    pub fn new(module: &'a Module) -> Self {
        let declared = &module.declared;
        let archs = declared.library.archs.iter();
        let archs: Vec<Arch> = archs.map(|arch| arch.value).collect();
        Self {
            name: declared.name(),
            format: declared.format.word(),
            separable: declared.separable,
            archs: archs.iter().map(Arch::to_string).collect(),
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
