//! The repair of one input: everything that is written, apart from the code of stub libraries.

use std::collections::BTreeMap;
use std::fs::File;
use std::mem;

use gpustub_check::Package;
use gpustub_check::read;
use gpustub_check::wheel::WheelMetadata;
use gpustub_core::by_name::ByName;
use gpustub_core::diag::{Diagnostic, Level, has_errors, listing};
use gpustub_core::plan::Inputs;
use gpustub_core::planner::plan as plan_stubs;
use gpustub_core::sources::{SourceSet, render_for_c};
use gpustub_core::target::Target;
use gpustub_engine::toolchain::Toolchain;
use gpustub_engine::write_sources;
use gpustub_image::edit::{self, EditProblem, EditRequest, Editable, Inspection, Patch};
use gpustub_image::{ConsumedFn, EditablePe, ElfImage, ImageFormat, is_pe};
use gpustub_repair::wheel::Blocks;
use gpustub_repair::{
    Inspections, PackagePlan, PlanOptions, StubPlan, candidates, followers, load_fault, loaders,
    names,
};
use gpustub_workspace::error::Result;
use gpustub_workspace::report::Sources;
use gpustub_workspace::status_line::StatusLine;
use gpustub_workspace::workspace::{host_triple, target};

use super::input::{Input, MappedImage, Source};
use super::libraries::UserLibraries;
use crate::cli;
use crate::compile::engine_error;
use crate::scratch::scratch;
use crate::shipped;

/// A planned repair.
pub struct PlannedRepair {
    /// The files.
    pub input: Input,
    /// The edits.
    pub plan: PackagePlan,
    /// Edited images by path in the package.
    pub patches: BTreeMap<String, PatchedImage>,
    /// New texts of delvewheel's lists, by path in the package.
    pub lists: BTreeMap<String, String>,
    /// Stub libraries, ready to be compiled, in the order of the plan.
    pub stubs: Vec<StubSources>,
}

/// An edited image.
pub struct PatchedImage {
    /// The original.
    pub file: File,
    /// Blocks of a member of a wheel.
    pub blocks: Blocks,
    /// The edit.
    pub patch: Patch,
}

/// Plans a repair. `None`: nothing is written, because nothing of what needs a repair could be repaired.
pub fn plan(
    mut input: Input,
    options: &cli::Repair,
    user: &UserLibraries,
    status: &StatusLine,
    diagnostics: &mut Vec<Diagnostic>,
    texts: &mut Sources,
) -> Result<Option<PlannedRepair>> {
    let mut images = BTreeMap::new();
    let mut unpacked = mem::take(&mut input.unpacked);
    for path in [
        candidates(&input.package, &user.known),
        followers(&input.package, &user.known),
    ]
    .concat()
    {
        status.show(|| input.package.display_path_of(path));
        images.insert(path.to_owned(), input.image(path, unpacked.remove(path))?);
    }
    let release = |part: &[u8]| {
        for image in images.values() {
            read::release(&image.bytes, part);
        }
    };
    let parsed: Vec<_> = images
        .iter()
        .map(|(path, image)| (path.as_str(), image, parse(&image.bytes, &release)))
        .collect();
    let editables: Editables<'_> = parsed
        .iter()
        .map(|(path, image, parsed)| {
            let editable = match parsed {
                Ok(parsed) => EditableImage::new(parsed),
                Err(problem) => Err(problem.clone()),
            };
            image.release();
            (*path, editable)
        })
        .collect();
    let edits = Edits::plan(
        &input.package,
        &images,
        &editables,
        stub_options(&input, options, user),
        user,
    )?;
    let is_failure = edits.plan.images.is_empty() && has_errors(&edits.diagnostics);
    diagnostics.extend(edits.diagnostics);
    if is_failure {
        return Ok(None);
    }
    if !edits.plan.images.is_empty() {
        report_texts(&input, diagnostics, texts);
    }
    let mut patches = BTreeMap::new();
    for (path, patch) in edits.patches {
        if let Some(image) = images.remove(&path) {
            let MappedImage { file, blocks, .. } = image;
            let patched = PatchedImage {
                file,
                blocks,
                patch,
            };
            patches.insert(path, patched);
        }
    }
    let lists = input.load_orders(&edits.plan.removed, diagnostics);
    Ok(Some(PlannedRepair {
        input,
        plan: edits.plan,
        patches,
        lists,
        stubs: edits.stubs,
    }))
}

/// The images that may need an edit, by path in the package, or the reason why one cannot be edited.
type Editables<'a> = BTreeMap<&'a str, std::result::Result<EditableImage<'a>, EditProblem>>;

/// An image, parsed.
enum ParsedImage<'d> {
    Elf(Box<ElfImage<'d>>),
    Pe(&'d [u8]),
}

fn parse<'d>(
    bytes: &'d [u8],
    consumed: ConsumedFn<'d>,
) -> std::result::Result<ParsedImage<'d>, EditProblem> {
    if is_pe(bytes) {
        return Ok(ParsedImage::Pe(bytes));
    }
    Ok(ParsedImage::Elf(Box::new(edit::read(bytes, consumed)?)))
}

/// An image that can be edited.
enum EditableImage<'a> {
    Elf(Box<Editable<'a, 'a>>),
    Pe(Box<EditablePe<'a>>),
}

impl<'a> EditableImage<'a> {
    fn new(image: &'a ParsedImage<'a>) -> std::result::Result<Self, EditProblem> {
        Ok(match image {
            ParsedImage::Elf(image) => Self::Elf(Box::new(Editable::new(image)?)),
            ParsedImage::Pe(bytes) => Self::Pe(Box::new(EditablePe::new(bytes)?)),
        })
    }

    fn inspection(&self) -> &Inspection {
        match self {
            Self::Elf(image) => image.inspection(),
            Self::Pe(image) => image.inspection(),
        }
    }

    /// The edited image, and its requirements.
    fn edit(&self, request: &EditRequest) -> std::result::Result<(Patch, Inspection), EditProblem> {
        Ok(match self {
            Self::Elf(image) => (image.plan(request)?, image.expected(request)?),
            Self::Pe(image) => (image.plan(request)?, image.expected(request)?),
        })
    }
}

/// A plan that can be carried out: each stub library can be generated, and each image edited.
struct Edits {
    plan: PackagePlan,
    diagnostics: Vec<Diagnostic>,
    /// Edits of the images, by path in the package.
    patches: BTreeMap<String, Patch>,
    stubs: Vec<StubSources>,
}

impl Edits {
    /// Plans again until no further image is excluded. An image that turns out not to be editable keeps the
    /// libraries that it needs.
    fn plan(
        package: &Package,
        images: &BTreeMap<String, MappedImage>,
        editables: &Editables<'_>,
        mut options: PlanOptions,
        user: &UserLibraries,
    ) -> Result<Self> {
        let inspections: Inspections<'_> = editables
            .iter()
            .map(|(path, editable)| {
                let inspection = match editable {
                    Ok(editable) => Ok(editable.inspection()),
                    Err(problem) => Err(problem.clone()),
                };
                (*path, inspection)
            })
            .collect();
        loop {
            let (plan, mut diagnostics) = gpustub_repair::plan(package, &inspections, &options);
            let excluded_count = options.excluded.len();
            let stubs = generate_stubs(&plan, user, &mut options.excluded)?;
            let patches = patch_images(package, &plan, images, editables, &mut options.excluded);
            if options.excluded.len() == excluded_count {
                diagnostics.extend(loaders::opened_by_images(package, &plan, &user.known));
                return Ok(Self {
                    plan,
                    diagnostics,
                    patches,
                    stubs,
                });
            }
        }
    }
}

/// Generates the stub libraries. If one cannot be generated, the images that use it are added to `excluded`.
fn generate_stubs(
    plan: &PackagePlan,
    user: &UserLibraries,
    excluded: &mut BTreeMap<String, String>,
) -> Result<Vec<StubSources>> {
    let mut stubs = Vec::new();
    for (index, stub) in plan.stubs.iter().enumerate() {
        match StubSources::generate(stub, user)? {
            Ok(sources) => stubs.push(sources),
            Err(reason) => {
                let users = plan.images.iter().filter(|image| image.stub == index);
                excluded.extend(users.map(|image| (image.path.clone(), reason.clone())));
                break;
            }
        }
    }
    Ok(stubs)
}

/// Plans the edit of each image. The images that cannot be edited are added to `excluded`.
fn patch_images(
    package: &Package,
    plan: &PackagePlan,
    images: &BTreeMap<String, MappedImage>,
    editables: &Editables<'_>,
    excluded: &mut BTreeMap<String, String>,
) -> BTreeMap<String, Patch> {
    let mut patches = BTreeMap::new();
    for image in &plan.images {
        let Some(Ok(editable)) = editables.get(image.path.as_str()) else {
            continue;
        };
        let edit = editable.edit(&image.request);
        if let Some(mapped) = images.get(&image.path) {
            mapped.release();
        }
        let reason = match edit {
            Ok((patch, edited)) => match load_fault(package, plan, image, &edited) {
                None => {
                    patches.insert(image.path.clone(), patch);
                    continue;
                }
                Some(fault) => fault,
            },
            Err(problem) => problem.to_string(),
        };
        excluded.insert(image.path.clone(), reason);
    }
    patches
}

/// Reports texts of the package, such as Python modules, that load GPU libraries themselves.
fn report_texts(input: &Input, diagnostics: &mut Vec<Diagnostic>, texts: &mut Sources) {
    let mut reports = BTreeMap::new();
    for (path, text) in input.texts() {
        let location = input.package.location_of(path);
        if let Some(diagnostic) = loaders::loaded_by_text(path, location, &text) {
            reports.insert(path, diagnostic);
            texts.insert(input.package.display_path_of(path), text);
        }
    }
    diagnostics.extend(reports.into_values());
}

/// Names and directory of the stub library.
fn stub_options(input: &Input, options: &cli::Repair, user: &UserLibraries) -> PlanOptions {
    let mut stub_options = PlanOptions {
        headers: options
            .header_version
            .iter()
            .map(|header| (header.family.clone(), header.version.clone()))
            .collect(),
        removes_copies: options.remove_copies,
        known: user.known.clone(),
        is_partial: options.partial,
        removes_signatures: options.unsign,
        ..PlanOptions::default()
    };
    match &input.source {
        Source::Wheel { path, .. } => {
            let metadata = WheelMetadata::from_package(&input.package).unwrap_or_default();
            let file = path.file_name().unwrap_or_default().to_string_lossy();
            stub_options.name = names::package_name(&[&metadata.name, &metadata.version]);
            stub_options.directory = match file.split_once('-') {
                // auditwheel's directory.
                Some((name, _)) => format!("{name}.libs"),
                None => format!("{}.libs", metadata.name.replace('-', "_")),
            };
        }
        Source::Files(files) => {
            let name = files.first().map_or("", |(name, _)| name.as_str());
            stub_options.prefix = prefix(name);
        }
        Source::Directory(path) => {
            let full_path = path.canonicalize().unwrap_or_default();
            let name = full_path.file_name().unwrap_or_default();
            stub_options.prefix = prefix(&name.to_string_lossy());
            stub_options.directory = common_directory(&candidates(&input.package, &user.known));
        }
    }
    stub_options
}

/// Readable beginning of a name that ends in a hash.
fn prefix(file: &str) -> String {
    let windows = [".dll", ".pyd", ".exe"].iter();
    let stem = windows
        .filter_map(|extension| file.strip_suffix(extension))
        .next()
        .unwrap_or(file);
    let (stem, _) = stem.split_once(".so").unwrap_or((stem, ""));
    match names::package_name(&[stem.strip_prefix("lib").unwrap_or(stem)]) {
        name if name.is_empty() => name,
        name => format!("{name}_"),
    }
}

/// The deepest directory that contains all of the paths.
fn common_directory(paths: &[&str]) -> String {
    let mut directories = paths.iter().map(|path| -> Vec<&str> {
        let (directory, _) = path.rsplit_once('/').unwrap_or_default();
        directory.split('/').collect()
    });
    let mut common = directories.next().unwrap_or_default();
    for directory in directories {
        let common_length = common
            .iter()
            .zip(&directory)
            .take_while(|(a, b)| a == b)
            .count();
        common.truncate(common_length);
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
    fn generate(
        stub: &StubPlan,
        user: &UserLibraries,
    ) -> Result<std::result::Result<Self, String>> {
        let system = match stub.format {
            ImageFormat::Elf => "unknown-linux-gnu",
            ImageFormat::Pe => "pc-windows-gnu",
        };
        let target = target(Some(&format!("{}-{system}", stub.machine)))?;
        let shipped = (stub.libraries.iter())
            .filter(|stubbed| !user.known.is_user_defined(stubbed.library))
            .map(|stubbed| (stubbed.library.id.as_str(), stubbed.header.as_deref()));
        let (mut manifest, mut diagnostics) = shipped::manifest(shipped);
        let mut inputs = Inputs::default();
        user.add_tables(&stub.libraries, &mut manifest, &mut inputs);
        let (mut plan, plan_diagnostics) = plan_stubs(&manifest, &target, &inputs);
        diagnostics.extend(plan_diagnostics);
        if has_errors(&diagnostics) {
            diagnostics.retain(|diagnostic| diagnostic.level == Level::Error);
            let messages: Vec<&str> = diagnostics.iter().map(|error| &error.message[..]).collect();
            let messages = messages.join("; ");
            return Ok(Err(format!(
                "imports functions whose stubs cannot be generated: {messages}"
            )));
        }
        let mut exports: ByName<Vec<String>> = ByName::new();
        let mut missing = Vec::new();
        for stubbed in &stub.libraries {
            let Some(library_plan) = plan
                .libraries
                .iter_mut()
                .find(|library| library.library.id == stubbed.library.id)
            else {
                continue;
            };
            let functions = library_plan.functions.to_mut();
            functions.retain(|function| stubbed.exports.contains_key(&function.name));
            for (name, node) in &stubbed.exports {
                if !functions.iter().any(|function| function.name == *name) {
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
        let directory = scratch.path();
        write_sources(directory, &self.files).map_err(engine_error)?;
        let tools = Toolchain::find(&self.target, &host_triple(), directory, None, None)
            .map_err(engine_error)?;
        let library = directory.join(&self.file);
        let linked = match self.target.os.as_str() {
            "windows" => tools.stub_dll(directory, &library, &self.exports),
            _ => tools.stub_library(directory, &library, &self.exports),
        };
        linked.map_err(engine_error)
    }
}
