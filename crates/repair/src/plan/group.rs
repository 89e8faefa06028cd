//! Groups of images that share a stub library. Images of one package that were compiled for different majors
//! have one each, since functions of one name have different meanings there.

use std::collections::{BTreeMap, BTreeSet};

use gpustub_check::{LoadGraph, Package};
use gpustub_core::diag::{Diagnostic, Level, listing};
use gpustub_core::library::Library;
use gpustub_image::edit::{Replaced, Request, Unversioned};

use super::decide::{Bound, Decision};
use super::runpath;
use crate::names::{node, short_hash, stub_file};
use crate::package_plan::{ImagePlan, Options, PackagePlan, StubLibrary, StubPlan, unsupported};
use crate::releases::{Header, Majors, common, header, header_key};

/// Images that share a stub library.
struct Group {
    machine: String,
    majors: Majors,
    functions: BTreeMap<String, Bound>,
    members: Vec<Decision>,
}

impl Group {
    /// Adds an image, unless it contradicts the others.
    fn add(&mut self, decision: &Decision) -> bool {
        let Some(majors) = common(&self.majors, &decision.majors) else {
            return false;
        };
        let differs = |(name, bound): (&String, &Bound)| {
            self.functions.get(name).is_some_and(|other| other != bound)
        };
        if self.machine != decision.machine || decision.functions.iter().any(differs) {
            return false;
        }
        self.majors = majors;
        self.functions.extend(decision.functions.clone());
        self.members.push(decision.clone());
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
    fn headers(&self, options: &Options) -> Result<BTreeMap<&'static str, Option<String>>, String> {
        let mut owners: BTreeMap<&'static str, (&'static Library, BTreeSet<&str>)> =
            BTreeMap::new();
        for (name, bound) in &self.functions {
            let entry = owners.entry(&bound.owner.id);
            entry
                .or_insert((bound.owner, BTreeSet::new()))
                .1
                .insert(name);
        }
        // All libraries of a toolkit have one version: names of one may identify that of the others.
        let mut known = self.majors.clone();
        for (library, functions) in owners.values() {
            let key = header_key(library);
            if let Header::Version(version) = header(library, functions, known.get(key))
                && let Ok(major) = version.parse()
            {
                known.insert(key, BTreeSet::from([major]));
            }
        }
        let mut headers = BTreeMap::new();
        for (id, (library, functions)) in owners {
            let given = given(options, library);
            let version = match given {
                Some(version) => Some(version.to_owned()),
                None => match header(library, &functions, known.get(header_key(library))) {
                    Header::Version(version) => Some(version),
                    Header::Any => {
                        let mut names = library.abi.names();
                        names
                            .any(|name| library.abi.depends_on_headers(name))
                            .then(|| "none".into())
                    }
                    Header::Unknown(depends) => {
                        return Err(format!(
                            "calls functions that depend on the version of its headers: {} (set \
                             `--header-version {}=MAJOR`)",
                            listing(&depends),
                            header_key(library)
                        ));
                    }
                },
            };
            headers.insert(id, version);
        }
        Ok(headers)
    }
}

/// Version on the command line: the last one for the library, else for its toolkit, else without a name.
fn given<'a>(options: &'a Options, library: &'static Library) -> Option<&'a str> {
    let last = |wanted: Option<&str>| {
        let mut all = options.headers.iter().rev();
        all.find(|(name, _)| name.as_deref() == wanted)
            .map(|(_, version)| version.as_str())
    };
    let key = header_key(library);
    let of_toolkit = key != library.id || library.id == library.family;
    last(Some(&library.id))
        .or_else(|| last(Some(key)))
        .or_else(|| last(None).filter(|_| of_toolkit))
}

/// Plans stub libraries and edits.
pub fn plan(
    package: &Package,
    graph: &LoadGraph<'_>,
    decisions: Vec<Decision>,
    options: &Options,
) -> (PackagePlan, Vec<Diagnostic>) {
    let mut groups: Vec<Group> = Vec::new();
    for decision in &decisions {
        if !groups.iter_mut().any(|group| group.add(decision)) {
            groups.push(Group {
                machine: decision.machine.clone(),
                majors: decision.majors.clone(),
                functions: decision.functions.clone(),
                members: vec![decision.clone()],
            });
        }
    }
    let mut plan = PackagePlan::default();
    let mut diagnostics = Vec::new();
    let several = groups.len() > 1;
    let mut used = BTreeSet::new();
    for group in &groups {
        let headers = match group.headers(options) {
            Ok(headers) => headers,
            Err(reason) => {
                let paths = group.members.iter().map(|member| &member.path);
                diagnostics
                    .extend(paths.map(|path| unsupported(package, path, Level::Error, &reason)));
                continue;
            }
        };
        let mut suffix = if several {
            group.suffix()
        } else {
            String::new()
        };
        if !used.insert(suffix.clone()) {
            suffix += &format!("_{}", used.len());
            used.insert(suffix.clone());
        }
        let name = match options.name.as_str() {
            "" => format!("{}{}", options.prefix, hash(group, &headers)),
            name => name.to_owned(),
        };
        let nodes = |library: &str| node(&name, &suffix, library);
        let file = stub_file(&name, &suffix);
        let stub = plan.stubs.len();
        plan.stubs.push(StubPlan {
            path: join(&options.directory, &file),
            file: file.clone(),
            machine: group.machine.clone(),
            libraries: libraries(group, headers, &nodes),
        });
        for member in &group.members {
            plan.images.push(ImagePlan {
                path: member.path.clone(),
                stub,
                request: Request {
                    stub: file.clone(),
                    runpath: runpath::added(&graph.image(member.id), &options.directory),
                    removed_runpath: runpath::removed(graph, member.id, member),
                    libraries: member
                        .required
                        .iter()
                        .map(|one| Replaced {
                            needed: one.files.clone(),
                            nodes: one.nodes.iter().cloned().collect(),
                            node: nodes(&one.library.id),
                        })
                        .collect(),
                    unversioned: member
                        .unversioned
                        .iter()
                        .filter_map(|symbol| {
                            let bound = member.functions.get(symbol)?;
                            Some(Unversioned {
                                symbol: symbol.clone(),
                                node: nodes(&bound.replaced.id),
                            })
                        })
                        .collect(),
                },
            });
        }
    }
    plan.images.sort_by(|a, b| a.path.cmp(&b.path));
    (plan, diagnostics)
}

fn libraries(
    group: &Group,
    headers: BTreeMap<&'static str, Option<String>>,
    nodes: &dyn Fn(&str) -> String,
) -> Vec<StubLibrary> {
    let of = |id: &'static str, header: Option<String>| {
        let own = group
            .functions
            .iter()
            .filter(move |(_, bound)| bound.owner.id == id);
        Some(StubLibrary {
            library: Library::builtin(id)?,
            header,
            exports: own
                .map(|(name, bound)| (name.clone(), nodes(&bound.replaced.id)))
                .collect(),
        })
    };
    headers
        .into_iter()
        .filter_map(|(id, header)| of(id, header))
        .collect()
}

/// Hash of a group's stub library: libraries with one name have the same functions.
fn hash(group: &Group, headers: &BTreeMap<&'static str, Option<String>>) -> String {
    let mut text = format!("{}\n{headers:?}\n", group.machine);
    for (name, bound) in &group.functions {
        text += &format!("{name} {} {}\n", bound.owner.id, bound.replaced.id);
    }
    short_hash(text.as_bytes())
}

fn join(directory: &str, name: &str) -> String {
    match directory {
        "" => name.to_owned(),
        directory => format!("{directory}/{name}"),
    }
}
