//! The repair of one input: everything that is written, apart from the code of stub libraries.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use gpustub_check::wheel::WheelMetadata;
use gpustub_core::by_name::ByName;
use gpustub_core::diag::{Diagnostic, has_errors, listing};
use gpustub_core::plan::Inputs;
use gpustub_core::planner::plan as plan_stubs;
use gpustub_core::sources::{SourceSet, render_for_c};
use gpustub_core::target::Target;
use gpustub_engine::toolchain::Toolchain;
use gpustub_engine::write_sources;
use gpustub_image::edit::{self, Editable, Patch};
use gpustub_repair::{
    Inspections, Options, PackagePlan, StubPlan, candidates, followers, loaders, names,
};
use gpustub_workspace::error::Result;
use gpustub_workspace::report::Sources;
use gpustub_workspace::status_line::StatusLine;
use gpustub_workspace::workspace::{host_triple, target};

use super::input::{Input, Source};
use crate::cli;
use crate::compile::{engine_error, scratch};
use crate::shipped;

/// A planned repair.
pub struct Repair {
    /// The files.
    pub input: Input,
    /// The edits.
    pub plan: PackagePlan,
    /// Edited images by path in the package, with their originals.
    pub patches: BTreeMap<String, (File, Patch)>,
    /// Stub libraries, ready to be compiled, in the order of the plan.
    pub stubs: Vec<StubSources>,
}

/// Plans a repair. `None`: nothing is written, because nothing of what needs a repair could be repaired.
pub fn plan(
    input: Input,
    options: &cli::Repair,
    status: &StatusLine,
    diagnostics: &mut Vec<Diagnostic>,
    texts: &mut Sources,
) -> Result<Option<Repair>> {
    let mut images = BTreeMap::new();
    for path in [candidates(&input.package), followers(&input.package)].concat() {
        status.show(|| input.package.display_path_of(path));
        images.insert(path.to_owned(), input.image(path)?);
    }
    let parsed: Vec<_> = images
        .iter()
        .map(|(path, image)| (path, edit::read(&image.bytes)))
        .collect();
    let mut inspections = Inspections::new();
    let mut editables = BTreeMap::new();
    for (path, image) in &parsed {
        let editable = match image {
            Ok(image) => Editable::new(image),
            Err(problem) => Err(problem.clone()),
        };
        let inspection = editable
            .as_ref()
            .map(|editable| editable.inspection().clone());
        inspections.insert(path.to_string(), inspection.map_err(Clone::clone));
        editables.extend(editable.map(|editable| (path.as_str(), editable)));
    }
    let mut naming = naming(&input, options);
    // An image that turns out not to be editable keeps the libraries that it needs.
    let (plan, findings, patches, stubs) = loop {
        let (plan, mut findings) = gpustub_repair::plan(&input.package, &inspections, &naming);
        let excluded = naming.excluded.len();
        let mut stubs = Vec::new();
        for stub in &plan.stubs {
            match StubSources::generate(stub)? {
                Ok(sources) => stubs.push(sources),
                Err(reason) => {
                    let users = plan.images.iter().filter(|edit| edit.stub == stubs.len());
                    naming
                        .excluded
                        .extend(users.map(|edit| (edit.path.clone(), reason.clone())));
                    break;
                }
            }
        }
        let mut patches = BTreeMap::new();
        for edit in &plan.images {
            let Some(editable) = editables.get(edit.path.as_str()) else {
                continue;
            };
            match editable.plan(&edit.request) {
                Ok(patch) => drop(patches.insert(edit.path.clone(), patch)),
                Err(problem) => {
                    naming
                        .excluded
                        .insert(edit.path.clone(), problem.to_string());
                }
            }
        }
        if naming.excluded.len() == excluded {
            findings.extend(loaders::opened_by_images(&input.package, &plan));
            break (plan, findings, patches, stubs);
        }
    };
    let nothing_repaired = plan.images.is_empty() && has_errors(&findings);
    diagnostics.extend(findings);
    if nothing_repaired {
        return Ok(None);
    }
    if !plan.images.is_empty() {
        for (path, text) in input.texts() {
            let location = input.package.location_of(&path);
            if let Some(diagnostic) = loaders::loaded_by_text(&path, location, &text) {
                diagnostics.push(diagnostic);
                texts.insert(input.package.display_path_of(&path), text);
            }
        }
    }
    let patches = patches
        .into_iter()
        .filter_map(|(path, patch)| Some((images.remove(&path)?.file, path, patch)))
        .map(|(file, path, patch)| (path, (file, patch)))
        .collect();
    Ok(Some(Repair {
        input,
        plan,
        patches,
        stubs,
    }))
}

/// Names and directory of the stub library.
fn naming(input: &Input, options: &cli::Repair) -> Options {
    let headers = options.header_version.iter();
    let mut naming = Options {
        headers: headers
            .map(|header| (header.family.clone(), header.version.clone()))
            .collect(),
        ..Options::default()
    };
    match &input.source {
        Source::Wheel { path, .. } => {
            let metadata = WheelMetadata::from_package(&input.package).unwrap_or_default();
            let file = path.file_name().unwrap_or_default().to_string_lossy();
            let mut parts = file.split('-');
            let (name, version) = (parts.next(), parts.next());
            naming.name = names::package_name(&[&metadata.name, &metadata.version]);
            if let (Some(name), Some(_)) = (name, version) {
                // auditwheel's directory.
                naming.directory = format!("{name}.libs");
            } else {
                naming.directory = format!("{}.libs", metadata.name.replace('-', "_"));
            }
            naming.removes_copies = true;
        }
        Source::Files(files) => {
            let stem = files.first().map_or("", |(name, _)| name.as_str());
            naming.prefix = prefix(stem);
        }
        Source::Directory(path) => {
            let name = path.canonicalize().ok();
            let name = name
                .as_deref()
                .and_then(Path::file_name)
                .unwrap_or_default();
            naming.prefix = prefix(&name.to_string_lossy());
            naming.directory = common_directory(&candidates(&input.package));
            naming.removes_copies = true;
        }
    }
    naming
}

/// Readable beginning of a name that ends in a hash.
fn prefix(file: &str) -> String {
    let stem = file.split(".so").next().unwrap_or_default();
    let stem = stem.strip_prefix("lib").unwrap_or(stem);
    match names::package_name(&[stem]) {
        name if name.is_empty() => name,
        name => format!("{name}_"),
    }
}

/// The deepest directory that contains all of the paths.
fn common_directory(paths: &[&str]) -> String {
    let components = |path: &&str| -> Vec<String> {
        let (directory, _) = path.rsplit_once('/').unwrap_or_default();
        directory.split('/').map(str::to_owned).collect()
    };
    let mut directories = paths.iter().map(components);
    let mut common = directories.next().unwrap_or_default();
    for directory in directories {
        let same = common
            .iter()
            .zip(&directory)
            .take_while(|(a, b)| a == b)
            .count();
        common.truncate(same);
    }
    common.join("/")
}

/// Sources of a stub library.
pub struct StubSources {
    /// File name and soname.
    pub file: String,
    target: Target,
    files: SourceSet,
    exports: ByName<Vec<String>>,
}

impl StubSources {
    /// Generates the sources of a stub library, or returns the reason why there can be none.
    fn generate(stub: &StubPlan) -> Result<std::result::Result<Self, String>> {
        let target = target(Some(&format!("{}-unknown-linux-gnu", stub.machine)))?;
        let (manifest, mut diagnostics) = shipped::manifest(
            stub.libraries
                .iter()
                .map(|library| (library.library.id.as_str(), library.header.as_deref())),
        );
        let (mut plan, more) = plan_stubs(&manifest, &target, &Inputs::default());
        diagnostics.extend(more);
        if has_errors(&diagnostics) {
            return Ok(Err(diagnostics
                .iter()
                .map(Diagnostic::to_string)
                .collect::<Vec<_>>()
                .join("; ")));
        }
        let mut exports: ByName<Vec<String>> = ByName::new();
        let mut missing = Vec::new();
        for library in &stub.libraries {
            let mut planned = plan.libraries.iter_mut();
            let planned = planned.find(|planned| planned.library.id == library.library.id);
            let Some(planned) = planned else { continue };
            planned
                .functions
                .to_mut()
                .retain(|function| library.exports.contains_key(&function.name));
            for (name, node) in &library.exports {
                if !planned
                    .functions
                    .iter()
                    .any(|function| function.name == *name)
                {
                    missing.push(name.as_str());
                }
                exports.get_or_default(node).push(name.clone());
            }
        }
        if !missing.is_empty() {
            let names = listing(&missing);
            return Ok(Err(format!(
                "imports functions for which there are no stubs: {names}"
            )));
        }
        Ok(Ok(Self {
            file: stub.file.clone(),
            target,
            files: render_for_c(&plan),
            exports,
        }))
    }

    /// Compiles the library.
    pub fn compile(&self) -> Result<Vec<u8>> {
        let scratch = scratch()?;
        let directory: &Path = scratch.path();
        write_sources(directory, &self.files).map_err(engine_error)?;
        let tools = Toolchain::find(&self.target, &host_triple(), directory, None, None)
            .map_err(engine_error)?;
        let library = directory.join(&self.file);
        tools
            .stub_library(directory, &library, &self.exports)
            .map_err(engine_error)
    }
}
