//! Groups of images that share a stub library. Images of one package that were compiled for different majors
//! have one each, since functions of one name have different meanings there.

use std::collections::{BTreeMap, BTreeSet};

use gpustub_check::{LoadGraph, Package};
use gpustub_core::diag::{Diagnostic, Level, listing};
use gpustub_core::library::Library;
use gpustub_image::ImageFormat;
use gpustub_image::edit::{EditRequest, Replaced, Unversioned};

use super::decide::{Binding, Decision};
use super::runpath;
use crate::libraries::is_copied;
use crate::names::{self, short_hash, stub_file};
use crate::package_plan::{
    ImagePlan, PackagePlan, PlanOptions, StubLibrary, StubPlan, unsupported,
};
use crate::releases::{Header, Majors, common, header, header_key};

/// Images that share a stub library.
struct Group {
    format: ImageFormat,
    machine: String,
    majors: Majors,
    functions: BTreeMap<String, Binding>,
    decisions: Vec<Decision>,
}

impl Group {
    /// Adds an image, unless it contradicts the others.
    fn add(&mut self, decision: &Decision) -> bool {
        let Some(majors) = common(&self.majors, &decision.majors) else {
            return false;
        };
        if (self.format, &self.machine) != (decision.format, &decision.machine)
            || decision.functions.iter().any(|(name, binding)| {
                self.functions
                    .get(name)
                    .is_some_and(|known| known != binding)
            })
        {
            return false;
        }
        self.majors = majors;
        self.functions.extend(decision.functions.clone());
        self.decisions.push(decision.clone());
        true
    }

    /// Suffix of the names, if a package has several groups: `_cuda12`.
    fn suffix(&self) -> String {
        let mut suffix = String::new();
        for (key, majors) in &self.majors {
            if let (1, Some(major)) = (majors.len(), majors.first()) {
                suffix += &format!("_{key}{major}");
            }
        }
        suffix
    }

    /// Header version of each library, or the reason why it is unknown.
    fn headers(
        &self,
        options: &PlanOptions,
    ) -> Result<BTreeMap<&'static str, Option<String>>, String> {
        let system = match self.format {
            ImageFormat::Elf => "linux",
            ImageFormat::Pe => "windows",
        };
        let owners = self.functions_by_owner();
        // All libraries of a toolkit have one version: names of one may identify that of the others.
        let mut majors = self.majors.clone();
        for (library, functions) in owners.values() {
            let key = header_key(library);
            if let Header::Version(version) = header(library, system, functions, &majors)
                && let Ok(major) = version.parse()
            {
                majors.insert(key, BTreeSet::from([major]));
            }
        }
        let mut headers = BTreeMap::new();
        for (id, (library, functions)) in owners {
            let key = header_key(library);
            let version = match requested_header(options, library) {
                Some(version) => Some(version.to_owned()),
                None => match header(library, system, &functions, &majors) {
                    Header::Version(version) => Some(version),
                    Header::Any => library
                        .abi
                        .names()
                        .any(|name| library.abi.depends_on_headers(name))
                        .then(|| "none".into()),
                    Header::Unknown(dependent) => {
                        return Err(format!(
                            "calls functions that depend on the version of its headers: {} (set \
                             `--header-version {key}=MAJOR`)",
                            listing(&dependent)
                        ));
                    }
                },
            };
            headers.insert(id, version);
        }
        Ok(headers)
    }

    /// Functions of each library, by its id.
    fn functions_by_owner(&self) -> BTreeMap<&'static str, (&'static Library, BTreeSet<&str>)> {
        let mut owners = BTreeMap::new();
        for (name, binding) in &self.functions {
            let (_, functions) = owners
                .entry(binding.owner.id.as_str())
                .or_insert((binding.owner, BTreeSet::new()));
            functions.insert(name.as_str());
        }
        owners
    }
}

/// Header version on the command line: the last one for the library, else for its toolkit, else without a name.
fn requested_header<'a>(options: &'a PlanOptions, library: &'static Library) -> Option<&'a str> {
    let key = header_key(library);
    last_header(options, Some(&library.id))
        .or_else(|| last_header(options, Some(key)))
        .or_else(|| {
            let is_of_toolkit = key != library.id || library.id == library.family;
            last_header(options, None).filter(|_| is_of_toolkit)
        })
}

fn last_header<'a>(options: &'a PlanOptions, name: Option<&str>) -> Option<&'a str> {
    options
        .headers
        .iter()
        .rfind(|(header_name, _)| header_name.as_deref() == name)
        .map(|(_, version)| version.as_str())
}

/// Adds stub libraries and edits to a plan.
pub fn plan(
    package: &Package,
    graph: &LoadGraph<'_>,
    decisions: &[Decision],
    options: &PlanOptions,
    plan: &mut PackagePlan,
) -> Vec<Diagnostic> {
    let groups = groups(decisions);
    let mut diagnostics = Vec::new();
    let mut suffixes = BTreeSet::new();
    for group in &groups {
        let headers = match group.headers(options) {
            Ok(headers) => headers,
            Err(reason) => {
                for decision in &group.decisions {
                    diagnostics.push(unsupported(package, &decision.path, Level::Error, &reason));
                }
                continue;
            }
        };
        let mut suffix = if groups.len() > 1 {
            group.suffix()
        } else {
            String::new()
        };
        if !suffixes.insert(suffix.clone()) {
            suffix += &format!("_{}", suffixes.len());
            suffixes.insert(suffix.clone());
        }
        let name = match options.name.as_str() {
            "" => format!("{}{}", options.prefix, hash(group, &headers)),
            // An earlier repair added a library of that name, which has other functions.
            name if has_file(package, &stub_file(name, &suffix, group.format)) => {
                format!("{name}_{}", hash(group, &headers))
            }
            name => name.to_owned(),
        };
        let node = |library_id: &str| names::node(&name, &suffix, library_id);
        let file = stub_file(&name, &suffix, group.format);
        for decision in &group.decisions {
            plan.images.push(ImagePlan {
                path: decision.path.clone(),
                stub: plan.stubs.len(),
                request: request(graph, decision, options, &file, &node),
            });
        }
        plan.stubs.push(StubPlan {
            paths: paths(graph, group, options, &file),
            file,
            format: group.format,
            machine: group.machine.clone(),
            libraries: stub_libraries(graph, group, options, &headers, &node),
        });
    }
    diagnostics
}

/// Paths of a stub library. The loader of Windows knows no directory but that of the image, and takes the copy that it loaded
/// first for all images.
fn paths(
    graph: &LoadGraph<'_>,
    group: &Group,
    options: &PlanOptions,
    stub_file: &str,
) -> Vec<String> {
    let directories: BTreeSet<&str> = match group.format {
        ImageFormat::Elf => BTreeSet::from([options.directory.as_str()]),
        ImageFormat::Pe => (group.decisions.iter())
            .map(|decision| graph.image(decision.id).member.directory())
            .collect(),
    };
    (directories.into_iter())
        .map(|directory| join(directory, stub_file))
        .collect()
}

/// Whether the package has a file of this name, in any directory. Windows compares names without case.
fn has_file(package: &Package, name: &str) -> bool {
    (package.members.iter()).any(|member| member.file_name().eq_ignore_ascii_case(name))
}

fn groups(decisions: &[Decision]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for decision in decisions {
        if !groups.iter_mut().any(|group| group.add(decision)) {
            groups.push(Group {
                format: decision.format,
                machine: decision.machine.clone(),
                majors: decision.majors.clone(),
                functions: decision.functions.clone(),
                decisions: vec![decision.clone()],
            });
        }
    }
    groups
}

/// The edit of an image that needs a stub library.
fn request(
    graph: &LoadGraph<'_>,
    decision: &Decision,
    options: &PlanOptions,
    stub_file: &str,
    node: &dyn Fn(&str) -> String,
) -> EditRequest {
    let libraries = decision.requirements.iter().map(|requirement| Replaced {
        needed: requirement.files.clone(),
        nodes: requirement.nodes.iter().cloned().collect(),
        node: node(&requirement.library.id),
    });
    let unversioned = decision.unversioned.iter().filter_map(|symbol| {
        let binding = decision.functions.get(symbol)?;
        Some(Unversioned {
            symbol: symbol.clone(),
            node: node(&binding.replaced.id),
        })
    });
    let data = (decision.functions.iter())
        .filter(|(name, binding)| is_copied(binding.owner, name))
        .map(|(name, _)| name.clone());
    EditRequest {
        stub: stub_file.to_owned(),
        runpath: match decision.format {
            ImageFormat::Elf => runpath::added(&graph.image(decision.id), &options.directory),
            ImageFormat::Pe => None,
        },
        removed_runpath: runpath::removed(graph, decision.id, decision, &options.known),
        libraries: libraries.collect(),
        unversioned: unversioned.collect(),
        data: data.collect(),
        removes_signature: options.removes_signatures,
    }
}

fn stub_libraries(
    graph: &LoadGraph<'_>,
    group: &Group,
    options: &PlanOptions,
    headers: &BTreeMap<&'static str, Option<String>>,
    node: &dyn Fn(&str) -> String,
) -> Vec<StubLibrary> {
    let mut libraries = Vec::new();
    for (id, (library, _)) in group.functions_by_owner() {
        let exports = group
            .functions
            .iter()
            .filter(|(_, binding)| binding.owner.id == id)
            .map(|(name, binding)| (name.clone(), node(&binding.replaced.id)))
            .collect();
        libraries.push(StubLibrary {
            library,
            header: headers.get(id).cloned().flatten(),
            search_dirs: search_dirs(graph, group, options, library),
            exports,
        });
    }
    libraries
}

/// Directories in which the images of a group found a user-defined library.
fn search_dirs(
    graph: &LoadGraph<'_>,
    group: &Group,
    options: &PlanOptions,
    library: &Library,
) -> Vec<String> {
    let mut search_dirs: Vec<String> = Vec::new();
    if !options.known.is_user_defined(library) || group.format == ImageFormat::Pe {
        return search_dirs;
    }
    for decision in &group.decisions {
        let mut requirements = decision.requirements.iter();
        if requirements.any(|requirement| requirement.library.id == library.id) {
            for dir in runpath::search_dirs(&graph.image(decision.id), &options.directory) {
                if !search_dirs.contains(&dir) {
                    search_dirs.push(dir);
                }
            }
        }
    }
    search_dirs
}

/// Hash of a group's stub library: libraries with one name have the same functions.
fn hash(group: &Group, headers: &BTreeMap<&'static str, Option<String>>) -> String {
    let mut text = format!("{}\n{headers:?}\n", group.machine);
    for (name, binding) in &group.functions {
        text += &format!("{name} {} {}\n", binding.owner.id, binding.replaced.id);
    }
    short_hash(text.as_bytes())
}

fn join(directory: &str, name: &str) -> String {
    match directory {
        "" => name.to_owned(),
        directory => format!("{directory}/{name}"),
    }
}
