//! Decision about one image: libraries to replace, functions to bind to the stub library.

use std::collections::{BTreeMap, BTreeSet};

use gpustub_check::symbol_names::is_gpu;
use gpustub_check::{ImageId, LoadGraph};
use gpustub_core::diag::listing;
use gpustub_core::library::Library;
use gpustub_core::symbols::Symbol;
use gpustub_image::edit::{ImportKind, Imported, Inspection};
use gpustub_image::{ImageFormat, ImageKind};

use super::refusal::Refusal;
use super::unavailable::unavailable_libraries;
use crate::kept::KeptLibraries;
use crate::libraries::{
    Functions, KnownLibraries, Requirement, has_data, has_function, intersection, is_copied,
};
use crate::package_plan::PlanOptions;
use crate::releases::{Majors, header_key};

/// A function that an image binds to the stub library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    /// The library whose stubs have it.
    pub owner: &'static Library,
    /// The replaced library, which has a version node.
    pub replaced: &'static Library,
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
    /// Reasons why libraries are left as they are.
    pub unavailable: Vec<Refusal>,
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
    options: &PlanOptions,
    id: ImageId,
    inspection: &Inspection,
    passed_on: &[Requirement],
) -> Result<Option<Decision>, Refusal> {
    let mut unavailable = unavailable_libraries(graph, kept, id, inspection);
    loop {
        match decide_without(graph, kept, id, inspection, passed_on, &unavailable) {
            Err(refusal) if can_keep(&refusal, passed_on) => unavailable.push(refusal),
            result if unavailable.is_empty() => return result,
            Ok(Some(decision)) if options.is_partial => {
                return Ok(Some(Decision {
                    unavailable,
                    ..decision
                }));
            }
            Ok(Some(_)) => {
                let refusal = unavailable.swap_remove(0);
                return Err(refusal.or("`--partial` repairs it for its other libraries"));
            }
            Ok(None) => {
                return Err(Refusal {
                    is_unrelated: true,
                    ..unavailable.swap_remove(0)
                });
            }
            Err(_) => return Err(unavailable.swap_remove(0)),
        }
    }
}

/// Whether an image can keep the libraries of a refusal. Those that it uses through others are theirs.
fn can_keep(refusal: &Refusal, passed_on: &[Requirement]) -> bool {
    let mut files = passed_on.iter().flat_map(|requirement| &requirement.files);
    !refusal.keeps.is_empty() && !files.any(|file| refusal.keeps.contains(file))
}

/// Decides about an image that keeps the libraries of `unavailable`.
fn decide_without(
    graph: &LoadGraph<'_>,
    kept: &KeptLibraries<'_>,
    id: ImageId,
    inspection: &Inspection,
    passed_on: &[Requirement],
    unavailable: &[Refusal],
) -> Result<Option<Decision>, Refusal> {
    let is_kept = |name: &String| {
        unavailable
            .iter()
            .any(|refusal| refusal.keeps.contains(name))
    };
    let mut needed = inspection.needed.clone();
    needed.retain(|name| !is_kept(name));
    if is_found_when_called(kept, inspection, &needed) {
        let delayed = inspection.delayed.iter().filter(|name| !is_kept(name));
        needed.extend(delayed.cloned());
    }
    // Libraries that are kept have the major of the headers, too.
    let mut known = kept.known.requirements(inspection, needed.iter());
    needed.retain(|name| !kept.contains(name));
    let mut requirements = kept.known.requirements(inspection, needed.iter());
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
        unavailable: Vec::new(),
    };
    let kept_names = unavailable.iter().flat_map(|refusal| &refusal.keeps);
    let kept_libraries = kept.known.requirements(inspection, kept_names);
    bind_imports(graph, kept, inspection, &kept_libraries, &mut decision)?;
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
fn is_found_when_called(
    kept: &KeptLibraries<'_>,
    inspection: &Inspection,
    needed: &[String],
) -> bool {
    let mut needed = needed.iter();
    inspection.kind == ImageKind::Program
        || needed.any(|name| {
            !kept.contains(name) && kept.known.replaced_library(inspection, name).is_some()
        })
}

/// Binds each import of a replaced library to its stub. `unavailable` are libraries that the image keeps.
fn bind_imports(
    graph: &LoadGraph<'_>,
    kept: &KeptLibraries<'_>,
    inspection: &Inspection,
    unavailable: &[Requirement],
    decision: &mut Decision,
) -> Result<(), Refusal> {
    let functions = Functions::new(&decision.requirements);
    let provided = provided(graph, kept, decision.id);
    let is_kept = |name: &str| {
        let mut libraries = unavailable.iter().map(|requirement| requirement.library);
        libraries.any(|library| !library.symbols.lookup(name).is_empty())
    };
    let (mut unknown, mut unclassified) = (Vec::new(), Vec::new());
    for import in &inspection.imports {
        let requirements = &decision.requirements;
        let (binding, requirement) = match &import.file {
            Some(file) => {
                let Some(requirement) = requirements
                    .iter()
                    .find(|requirement| requirement.files.contains(file))
                else {
                    continue;
                };
                (binding(&functions, requirement, import), Some(requirement))
            }
            // A function that a library of the package defines stays with it, such as a lazy stub.
            None if provided.contains(import.name.as_str()) || is_kept(&import.name) => continue,
            None => {
                let binding = requirements
                    .iter()
                    .find_map(|requirement| binding(&functions, requirement, import))
                    .or_else(|| loaded_by_replaced(kept.known, requirements, import));
                let requirement = match &binding {
                    Some(binding) => (requirements.iter())
                        .find(|requirement| requirement.library.id == binding.replaced.id),
                    None => match owner_by_name(kept.known, requirements, &import.name) {
                        None => continue,
                        owner => owner,
                    },
                };
                (binding, requirement)
            }
        };
        let keeps = requirement.map_or_else(Vec::new, |requirement| requirement.files.clone());
        if let Err(reason) = check_kind(import, binding.as_ref()) {
            return Err(Refusal {
                keeps,
                ..reason.into()
            });
        }
        match binding {
            Some(binding) => {
                if has_unknown_result(kept.known, &binding, import) {
                    unclassified.push((import.name.as_str(), binding.owner, keeps));
                }
                decision.bind(import, binding)?;
            }
            // A weak import may be missing.
            None if import.weak => {}
            None => unknown.push((import.name.as_str(), keeps)),
        }
    }
    let is_data = |(name, _): &&(&str, Vec<String>)| {
        let mut requirements = decision.requirements.iter();
        requirements.any(|requirement| has_data(requirement.library, name))
    };
    let is_cxx = |(name, _): &&(&str, Vec<String>)| name.starts_with("_Z") || name.starts_with('?');
    let refusal = if let Some((name, keeps)) = unknown.iter().find(is_data) {
        (no_copy(name), keeps)
    } else if let Some((name, keeps)) = unknown.iter().find(is_cxx) {
        let reason = format!("imports `{name}`: there are no stubs of C++ functions");
        (reason, keeps)
    } else if let Some((_, keeps)) = unknown.first() {
        let names: Vec<&str> = unknown.iter().map(|(name, _)| *name).collect();
        let names = listing(&names);
        let reason = format!("imports functions for which there are no stubs: {names}");
        (reason, keeps)
    } else {
        return check_results(&unclassified);
    };
    let (reason, keeps) = refusal;
    Err(Refusal {
        keeps: keeps.clone(),
        ..reason.into()
    })
}

/// Whether the result of a user-defined function without its library is unknown.
fn has_unknown_result(known: &KnownLibraries, binding: &Binding, import: &Imported) -> bool {
    let mut symbols = binding.owner.symbols.lookup(&import.name).iter();
    known.is_user_defined(binding.owner)
        && symbols.all(|symbol| symbol.returns.is_none() && !symbol.kind.is_data())
}

/// Refuses functions whose result without their library is unknown. Each has its library, and the files that the image
/// can keep instead.
fn check_results(functions: &[(&str, &'static Library, Vec<String>)]) -> Result<(), Refusal> {
    let Some((_, library, keeps)) = functions.first() else {
        return Ok(());
    };
    let names: Vec<&str> = (functions.iter())
        .filter(|(_, owner, _)| owner.id == library.id)
        .map(|(name, _, _)| *name)
        .collect();
    let reason = format!(
        "imports functions of `{}` whose result without the library is unknown ({}): {}",
        library.id,
        names.len(),
        listing(&names)
    );
    let refusal = Refusal {
        keeps: keeps.clone(),
        ..reason.into()
    };
    Err(refusal.or(
        "name the headers with `--headers`, or add `returns=` to the lines of a list; `--returns status` is for functions \
         that all return a status, not for those that return pointers",
    ))
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
/// runtime. Without libhipblas nothing loads it. A user-defined library may load any.
fn loaded_by_replaced(
    known: &KnownLibraries,
    requirements: &[Requirement],
    import: &Imported,
) -> Option<Binding> {
    if import.weak {
        return None;
    }
    let owner = Library::builtin_ids()
        .filter_map(Library::builtin)
        .find(|library| {
            !library.family.is_empty()
                && requirements.iter().any(|requirement| {
                    requirement.library.family == library.family
                        || known.is_user_defined(requirement.library)
                })
                && has_function(library, &import.name)
        })?;
    Some(Binding {
        owner,
        replaced: owner,
    })
}

/// The replaced library that an import without a version and without a stub belongs to: that with its prefix, such as
/// `cuda`, if no other GPU library has it. A user-defined library has its data, too.
fn owner_by_name<'r>(
    known: &KnownLibraries,
    requirements: &'r [Requirement],
    name: &str,
) -> Option<&'r Requirement> {
    let prefix = lowercase_prefix(name);
    let is_of_gpustub = is_gpu(name)
        && !Library::builtin_ids()
            .filter_map(Library::builtin)
            .any(|library| !library.symbols.lookup(name).is_empty());
    requirements.iter().find(|requirement| {
        let library = requirement.library;
        let has_prefix =
            |function: &&Symbol| prefix.len() > 1 && lowercase_prefix(&function.name) == prefix;
        if known.is_user_defined(library) {
            // Other libraries may share a prefix that few functions have.
            let count = library.symbols.functions().filter(has_prefix).count();
            return !library.symbols.lookup(name).is_empty()
                || 2 * count > library.symbols.functions().count();
        }
        is_of_gpustub
            && library
                .symbols
                .functions()
                .any(|function| has_prefix(&function))
    })
}

fn lowercase_prefix(name: &str) -> &str {
    name.split(|c: char| !c.is_ascii_lowercase())
        .next()
        .unwrap_or_default()
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
