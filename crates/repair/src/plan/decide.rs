//! Decision about one image: libraries to replace, functions to bind to the stub library.

use std::collections::{BTreeMap, BTreeSet};

use gpustub_check::evidence::is_from_vendor;
use gpustub_check::gpu_file::gpu_file;
use gpustub_check::symbol_names::is_gpu;
use gpustub_check::{Image, ImageId, LoadGraph};
use gpustub_core::diag::listing;
use gpustub_core::library::Library;
use gpustub_image::edit::{ImportKind, Imported, Inspection};

use crate::libraries::{
    Functions, Required, has_function, intersection, replaced_library, required,
};
use crate::releases::{Majors, header_key};

/// A function of the stub library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
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
    /// The machine.
    pub machine: String,
    /// The libraries to replace.
    pub required: Vec<Required>,
    /// Functions by name.
    pub functions: BTreeMap<String, Bound>,
    /// Functions that the image imports without a version.
    pub unversioned: Vec<String>,
    /// Toolkit majors that the image was linked against.
    pub majors: Majors,
}

/// Decides about an image; `passed_on` are libraries that it uses through others. `None`: it requires no library
/// that stubs can replace. An error is the reason why the image cannot be repaired.
pub fn decide(
    graph: &LoadGraph<'_>,
    id: ImageId,
    inspection: &Inspection,
    passed_on: &[Required],
) -> Result<Option<Decision>, Refusal> {
    let image = graph.image(id);
    let mut required = required(inspection);
    required.extend_from_slice(passed_on);
    let unknown = inspection.needed.iter().filter(|name| {
        gpu_file(name).is_some()
            && replaced_library(inspection, name).is_none()
            && graph.find(id, name).is_none()
    });
    let unknown: Vec<&String> = unknown.collect();
    if !unknown.is_empty() {
        let reason = format!("needs {}, for which there are no stubs", listing(&unknown));
        let them = if unknown.len() == 1 { "it" } else { "them" };
        return Err(refusal(reason, &unknown, them));
    }
    if let Some((library, lacked)) = lacking(graph, id, inspection) {
        let reason = format!(
            "loads {library} of this package, which needs {}",
            listing(&lacked)
        );
        return Err(refusal(reason, &lacked, library));
    }
    if required.is_empty() {
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
    let mut decision = Decision {
        id,
        path: image.member.path.clone(),
        machine: inspection.machine.clone(),
        functions: BTreeMap::new(),
        unversioned: Vec::new(),
        majors: majors(&required)?,
        required,
    };
    let functions = Functions::new(&decision.required);
    let provided = provided(graph, id);
    let mut unknown = Vec::new();
    for import in &inspection.imports {
        let bound = match &import.file {
            Some(file) => match decision
                .required
                .iter()
                .find(|one| one.files.contains(file))
            {
                Some(one) => functions
                    .owner(one.library, &import.name)
                    .map(|owner| Bound {
                        owner,
                        replaced: one.library,
                    }),
                None => continue,
            },
            // A function that a library of the package defines stays with it, such as a lazy stub.
            None if provided.contains(import.name.as_str()) => continue,
            None => {
                let owner = |one: &Required| {
                    let owner = functions.owner(one.library, &import.name)?;
                    Some(Bound {
                        owner,
                        replaced: one.library,
                    })
                };
                let bound = decision.required.iter().find_map(owner);
                match bound.or_else(|| loaded_by_replaced(&decision.required, import)) {
                    None if !is_of(&decision.required, &import.name) => continue,
                    bound => bound,
                }
            }
        };
        check_kind(import)?;
        let Some(bound) = bound else {
            // A weak import may be missing.
            if !import.weak {
                unknown.push(import.name.as_str());
            }
            continue;
        };
        if import.node.is_none() {
            decision.unversioned.push(import.name.clone());
        }
        if let Some(other) = decision
            .functions
            .insert(import.name.clone(), bound.clone())
            && other != bound
        {
            return Err(format!("imports `{}` of two libraries", import.name).into());
        }
    }
    if let Some(name) = unknown.iter().find(|name| name.starts_with("_Z")) {
        return Err(format!("imports `{name}`: there are no stubs of C++ functions").into());
    }
    if !unknown.is_empty() {
        let names = listing(&unknown);
        return Err(format!("imports functions for which there are no stubs: {names}").into());
    }
    if !decision.unversioned.is_empty() && !inspection.has_versions {
        return Err(
            "requires no symbol versions, by which it could be bound to stubs of its own"
                .to_owned()
                .into(),
        );
    }
    Ok(Some(decision))
}

/// Refusal of an image that starts only where these libraries are installed.
fn refusal<Name: AsRef<str>>(reason: String, names: &[Name], without: &str) -> Refusal {
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

/// Rejects what is not a function.
fn check_kind(import: &Imported) -> Result<(), String> {
    match import.kind {
        ImportKind::Data | ImportKind::ThreadLocal => Err(format!(
            "imports the data `{}`; a stub has functions only",
            import.name
        )),
        _ if import.copied => Err(format!(
            "has a copy of the data `{}` (copy relocation); a stub has functions only",
            import.name
        )),
        _ => Ok(()),
    }
}

/// A function of a library that the image does not need itself: it links libhipblas, which loads the HIP
/// runtime. Without libhipblas nothing loads it.
fn loaded_by_replaced(required: &[Required], import: &Imported) -> Option<Bound> {
    let is_related = |library: &&Library| {
        let mut replaced = required.iter().map(|one| one.library);
        !library.family.is_empty() && replaced.any(|one| one.family == library.family)
    };
    let all = Library::builtin_ids().filter_map(Library::builtin);
    let mut related = all.filter(is_related);
    let owner = related.find(|library| !import.weak && has_function(library, &import.name))?;
    Some(Bound {
        owner,
        replaced: owner,
    })
}

/// Whether an unknown function has a prefix of one of the replaced libraries, such as `cuda`, and no other GPU
/// library has it.
fn is_of(required: &[Required], name: &str) -> bool {
    let has = |library: &Library| !library.symbols.lookup(name).is_empty();
    let prefix = |name: &str| -> String {
        name.chars()
            .take_while(|c| c.is_ascii_lowercase())
            .collect()
    };
    is_gpu(name)
        && !Library::builtin_ids().filter_map(Library::builtin).any(has)
        && required.iter().any(|one| {
            let mut functions = one.library.symbols.functions();
            let own = prefix(name);
            own.len() > 1 && functions.any(|function| prefix(&function.name) == own)
        })
}

/// A vendor's library of the package that stays a requirement of the image, and the GPU libraries that it needs and
/// the package lacks. A vendor's library is not edited.
fn lacking<'a>(
    graph: &LoadGraph<'a>,
    id: ImageId,
    inspection: &Inspection,
) -> Option<(&'a str, Vec<&'a str>)> {
    let needed = graph.image(id).needed().iter();
    let kept = needed.filter(|name| replaced_library(inspection, name).is_none());
    let of_vendor = |one: &ImageId| is_from_vendor(&graph.image(*one));
    let kept = kept
        .filter_map(|name| graph.find(id, name))
        .filter(of_vendor);
    let mut loaded = kept
        .flat_map(|library| graph.loaded_with(library))
        .filter(of_vendor);
    loaded.find_map(|library| {
        let image = graph.image(library);
        let is_lacked =
            |name: &&str| gpu_file(name).is_some() && graph.find(library, name).is_none();
        let needed = image.needed().iter().map(String::as_str);
        let lacked: Vec<&str> = needed.filter(is_lacked).collect();
        (!lacked.is_empty()).then(|| (image.member.file_name(), lacked))
    })
}

/// GPU functions that images of the package define and the loader loads with the image.
fn provided<'a>(graph: &'a LoadGraph<'_>, id: ImageId) -> BTreeSet<&'a str> {
    let others = graph.loaded_with(id).into_iter().skip(1);
    let others = others.map(|other| graph.image(other));
    let others = others.filter(|other: &Image<'_>| !is_from_vendor(other));
    others
        .flat_map(|other| other.facts.exports.iter().map(String::as_str))
        .collect()
}

/// Majors of all replaced libraries; an error if those of one toolkit differ.
fn majors(required: &[Required]) -> Result<Majors, String> {
    let mut all = Majors::new();
    for one in required {
        let key = header_key(one.library);
        let Some(majors) = intersection(all.remove(key), one.majors.clone()) else {
            continue;
        };
        if majors.is_empty() {
            let files: Vec<&String> = required.iter().flat_map(|one| &one.files).collect();
            return Err(format!(
                "needs libraries of two {key} majors: {}",
                listing(&files)
            ));
        }
        all.insert(key, majors);
    }
    Ok(all)
}
