//! Decision about one image: libraries to replace, functions to bind to the stub library.

use std::collections::{BTreeMap, BTreeSet};

use gpustub_check::evidence::is_from_vendor;
use gpustub_check::gpu_file::gpu_file;
use gpustub_check::symbol_names::is_gpu;
use gpustub_check::{ImageId, LoadGraph};
use gpustub_core::diag::listing;
use gpustub_core::library::{Library, Role};
use gpustub_image::edit::{ImportKind, Imported, Inspection};
use gpustub_image::{ImageFormat, ImageKind};

use crate::kept::KeptLibraries;
use crate::libraries::{
    Functions, Requirement, has_data, has_function, intersection, is_copied, replaced_library,
    requirements,
};
use crate::releases::{Majors, header_key};

/// A function that an image binds to the stub library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    /// The library whose stubs have it.
    pub owner: &'static Library,
    /// The replaced library, which has a version node.
    pub replaced: &'static Library,
}

/// The reason why an image stays as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Continues the name of the image: `needs libx.so.1, for which there are no stubs`.
    pub reason: String,
    /// The next step.
    pub help: Option<String>,
}

impl From<String> for Refusal {
    fn from(reason: String) -> Self {
        Self { reason, help: None }
    }
}

/// The edit of one image.
#[derive(Debug, Clone)]
pub struct Decision {
    /// The image in the load graph.
    pub id: ImageId,
    /// Path in the package.
    pub path: String,
    /// Format of the image.
    pub format: ImageFormat,
    /// The machine.
    pub machine: String,
    /// The libraries to replace.
    pub requirements: Vec<Requirement>,
    /// Functions by name.
    pub functions: BTreeMap<String, Binding>,
    /// Functions that the image imports without a version.
    pub unversioned: Vec<String>,
    /// Toolkit majors that the image was linked against.
    pub majors: Majors,
}

impl Decision {
    /// Whether the stub library replaces a library that the image needs by this name.
    pub fn replaces(&self, name: &str) -> bool {
        self.requirements
            .iter()
            .flat_map(|requirement| &requirement.files)
            .any(|file| file == name)
    }

    /// Binds an import to the stub library.
    fn bind(&mut self, import: &Imported, binding: Binding) -> Result<(), String> {
        // An import of Windows has no version, and names its DLL.
        if import.file.is_none() {
            self.unversioned.push(import.name.clone());
        }
        match self.functions.insert(import.name.clone(), binding.clone()) {
            Some(previous) if previous != binding => {
                Err(format!("imports `{}` of two libraries", import.name))
            }
            _ => Ok(()),
        }
    }
}

/// Decides about an image; `passed_on` are libraries that it uses through others. `None`: it requires no library
/// that stubs can replace. An error is the reason why the image cannot be repaired.
pub fn decide(
    graph: &LoadGraph<'_>,
    kept: &KeptLibraries<'_>,
    id: ImageId,
    inspection: &Inspection,
    passed_on: &[Requirement],
) -> Result<Option<Decision>, Refusal> {
    check_kept_libraries(graph, kept, id, inspection)?;
    let mut needed = inspection.needed.clone();
    if is_found_when_called(kept, inspection) {
        needed.extend_from_slice(&inspection.delayed);
    }
    // Libraries that are kept have the major of the headers, too.
    let mut known = requirements(inspection, needed.iter());
    needed.retain(|name| !kept.contains(name));
    let mut requirements = requirements(inspection, needed.iter());
    known.extend_from_slice(passed_on);
    requirements.extend_from_slice(passed_on);
    if requirements.is_empty() {
        return Ok(None);
    }
    if let Some(musl) = inspection
        .needed
        .iter()
        .find(|name| name.starts_with("libc.musl-"))
    {
        // musl ignores versions (dynlink.c: find_sym), so the stubs would be visible to all libraries.
        return Err(format!("needs {musl}: musl binds functions without their versions").into());
    }
    let majors = majors(&known)?;
    let mut decision = Decision {
        id,
        path: graph.image(id).member.path.clone(),
        format: graph.image(id).facts.format,
        machine: inspection.machine.clone(),
        functions: BTreeMap::new(),
        unversioned: Vec::new(),
        majors,
        requirements,
    };
    bind_imports(graph, kept, inspection, &mut decision)?;
    if !decision.unversioned.is_empty() && !inspection.has_versions {
        return Err(
            "requires no symbol versions, by which it could be bound to stubs of its own"
                .to_owned()
                .into(),
        );
    }
    Ok(Some(decision))
}

/// Whether delayed imports find a stub library: their helper in the image searches the directories of the program, not that
/// of a DLL, whose other imports must have loaded the stub library before.
fn is_found_when_called(kept: &KeptLibraries<'_>, inspection: &Inspection) -> bool {
    let mut needed = inspection.needed.iter();
    inspection.kind == ImageKind::Program
        || needed.any(|name| !kept.contains(name) && replaced_library(inspection, name).is_some())
}

/// Rejects an image that needs a GPU library without stubs, itself or through a vendor's library.
fn check_kept_libraries(
    graph: &LoadGraph<'_>,
    kept: &KeptLibraries<'_>,
    id: ImageId,
    inspection: &Inspection,
) -> Result<(), Refusal> {
    let unknown: Vec<&String> = inspection
        .needed
        .iter()
        .filter(|name| {
            gpu_file(name).is_some()
                && replaced_library(inspection, name).is_none()
                && graph.find(id, name).is_none()
        })
        .collect();
    if !unknown.is_empty() {
        let reason = format!("needs {}, for which there are no stubs", listing(&unknown));
        let pronoun = if unknown.len() == 1 { "it" } else { "them" };
        let mut refusal = requires_installed(reason, &unknown, pronoun);
        let mut files = unknown.iter().filter_map(|name| gpu_file(name));
        if files.all(|file| file.role == Role::Loader)
            && let Some(help) = &mut refusal.help
        {
            help.push_str("; a package may bring a loader, which auditwheel or delvewheel copies");
        }
        return Err(refusal);
    }
    if let Some((library, lacked)) = lacking_vendor_library(graph, kept, id, inspection) {
        let reason = format!(
            "loads {library} of this package, which needs {}",
            listing(&lacked)
        );
        return Err(requires_installed(reason, &lacked, library));
    }
    Ok(())
}

/// Refusal of an image that starts only where these libraries are installed.
fn requires_installed<Name: AsRef<str>>(reason: String, names: &[Name], without: &str) -> Refusal {
    let are = if names.len() == 1 { "is" } else { "are" };
    let names = listing(names);
    let help = format!(
        "it starts only where {names} {are} installed: build it without {without}, or leave it out \
         of the package"
    );
    Refusal {
        reason,
        help: Some(help),
    }
}

/// Binds each import of a replaced library to its stub.
fn bind_imports(
    graph: &LoadGraph<'_>,
    kept: &KeptLibraries<'_>,
    inspection: &Inspection,
    decision: &mut Decision,
) -> Result<(), Refusal> {
    let functions = Functions::new(&decision.requirements);
    let provided = provided(graph, kept, decision.id);
    let mut unknown = Vec::new();
    for import in &inspection.imports {
        let requirements = &decision.requirements;
        let binding = match &import.file {
            Some(file) => {
                let Some(requirement) = requirements
                    .iter()
                    .find(|requirement| requirement.files.contains(file))
                else {
                    continue;
                };
                binding(&functions, requirement, import)
            }
            // A function that a library of the package defines stays with it, such as a lazy stub.
            None if provided.contains(import.name.as_str()) => continue,
            None => {
                let binding = requirements
                    .iter()
                    .find_map(|requirement| binding(&functions, requirement, import))
                    .or_else(|| loaded_by_replaced(requirements, import));
                if binding.is_none() && !is_of(requirements, &import.name) {
                    continue;
                }
                binding
            }
        };
        check_kind(import, binding.as_ref())?;
        match binding {
            Some(binding) => decision.bind(import, binding)?,
            // A weak import may be missing.
            None if import.weak => {}
            None => unknown.push(import.name.as_str()),
        }
    }
    let is_data = |name: &&&str| {
        let mut requirements = decision.requirements.iter();
        requirements.any(|requirement| has_data(requirement.library, name))
    };
    if let Some(name) = unknown.iter().find(is_data) {
        return Err(no_copy(name).into());
    }
    if let Some(name) = unknown
        .iter()
        .find(|name| name.starts_with("_Z") || name.starts_with('?'))
    {
        return Err(format!("imports `{name}`: there are no stubs of C++ functions").into());
    }
    if !unknown.is_empty() {
        let names = listing(&unknown);
        return Err(format!("imports functions for which there are no stubs: {names}").into());
    }
    Ok(())
}

/// Binding of an import to a required library, if there are stubs of the function.
fn binding(functions: &Functions, requirement: &Requirement, import: &Imported) -> Option<Binding> {
    Some(Binding {
        owner: functions.owner(requirement.library, &import.name)?,
        replaced: requirement.library,
    })
}

/// Rejects data without a copy in the stubs, and what is data on one side only.
fn check_kind(import: &Imported, binding: Option<&Binding>) -> Result<(), String> {
    let name = &import.name;
    let has_copy = binding.is_some_and(|binding| is_copied(binding.owner, name));
    match import.kind {
        ImportKind::Ordinal => Err(format!(
            "imports function {name} of {} by its number, which differs between releases",
            import.file.as_deref().unwrap_or("a library")
        )),
        ImportKind::ThreadLocal => Err(format!(
            "imports the thread-local data `{name}`, of which a stub has no copy"
        )),
        ImportKind::Data if !has_copy => Err(no_copy(name)),
        ImportKind::Data => Ok(()),
        _ if import.copied => Err(no_copy(name)),
        ImportKind::Function if has_copy => Err(format!(
            "imports `{name}` as a function, which is data of the library"
        )),
        _ => Ok(()),
    }
}

fn no_copy(name: &str) -> String {
    format!("imports the data `{name}`, of which the stubs have no copy")
}

/// A function of a library that the image does not need itself: it links libhipblas, which loads the HIP
/// runtime. Without libhipblas nothing loads it.
fn loaded_by_replaced(requirements: &[Requirement], import: &Imported) -> Option<Binding> {
    if import.weak {
        return None;
    }
    let owner = Library::builtin_ids()
        .filter_map(Library::builtin)
        .find(|library| {
            !library.family.is_empty()
                && requirements
                    .iter()
                    .any(|requirement| requirement.library.family == library.family)
                && has_function(library, &import.name)
        })?;
    Some(Binding {
        owner,
        replaced: owner,
    })
}

/// Whether an unknown function has a prefix of one of the replaced libraries, such as `cuda`, and no other GPU
/// library of their toolkits has it: one that NCCL has may be of a newer RCCL.
fn is_of(requirements: &[Requirement], name: &str) -> bool {
    let prefix = lowercase_prefix(name);
    is_gpu(name)
        && prefix.len() > 1
        && !Library::builtin_ids()
            .filter_map(Library::builtin)
            .filter(|library| {
                let mut replaced = requirements.iter().map(|requirement| requirement.library);
                library.family.is_empty() || replaced.any(|other| other.family == library.family)
            })
            .any(|library| !library.symbols.lookup(name).is_empty())
        && requirements.iter().any(|requirement| {
            let mut functions = requirement.library.symbols.functions();
            functions.any(|function| lowercase_prefix(&function.name) == prefix)
        })
}

fn lowercase_prefix(name: &str) -> &str {
    name.split(|c: char| !c.is_ascii_lowercase())
        .next()
        .unwrap_or_default()
}

/// A vendor's library of the package that stays a requirement of the image, and the GPU libraries that it needs and
/// the package lacks. A vendor's library is not edited.
fn lacking_vendor_library<'a>(
    graph: &LoadGraph<'a>,
    kept: &KeptLibraries<'_>,
    id: ImageId,
    inspection: &Inspection,
) -> Option<(&'a str, Vec<&'a str>)> {
    for name in graph.image(id).needed() {
        if replaced_library(inspection, name).is_some() && !kept.contains(name) {
            continue;
        }
        let Some(library) = graph.find(id, name) else {
            continue;
        };
        if !is_from_vendor(&graph.image(library)) {
            continue;
        }
        for loaded in graph.loaded_with(library) {
            let image = graph.image(loaded);
            if !is_from_vendor(&image) {
                continue;
            }
            let lacked: Vec<&str> = image
                .needed()
                .iter()
                .map(String::as_str)
                .filter(|name| gpu_file(name).is_some() && graph.find(loaded, name).is_none())
                .collect();
            if !lacked.is_empty() {
                return Some((image.member.file_name(), lacked));
            }
        }
    }
    None
}

/// GPU functions that images of the package define and the loader loads with the image.
fn provided<'a>(
    graph: &'a LoadGraph<'_>,
    kept: &KeptLibraries<'_>,
    id: ImageId,
) -> BTreeSet<&'a str> {
    graph
        .loaded_with(id)
        .into_iter()
        .skip(1)
        .map(|loaded| graph.image(loaded))
        .filter(|image| kept.provides(image))
        .flat_map(|image| image.facts.exports.iter().map(String::as_str))
        .collect()
}

/// Majors of all replaced libraries; an error if those of one toolkit differ.
fn majors(requirements: &[Requirement]) -> Result<Majors, String> {
    let mut majors = Majors::new();
    for requirement in requirements {
        let key = header_key(requirement.library);
        let Some(common) = intersection(majors.remove(key), requirement.majors.clone()) else {
            continue;
        };
        if common.is_empty() {
            let files: Vec<&String> = requirements
                .iter()
                .flat_map(|requirement| &requirement.files)
                .collect();
            return Err(format!(
                "needs libraries of two {key} majors: {}",
                listing(&files)
            ));
        }
        majors.insert(key, common);
    }
    Ok(majors)
}
