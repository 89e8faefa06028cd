//! Expected file of each library by the documented order alone: written from the contract and the manifests,
//! independently of the run time.

use std::collections::{BTreeMap, BTreeSet};

use gpustub_core::library::{LoadName, Role};

use crate::choose::{Search, parent, request, root_of};
use crate::world::{Choice, Content, LINK, Start, World};

/// Expected result for one library.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Expected {
    pub path: Option<String>,
    pub found_by: Option<String>,
    pub major: u32,
    /// Existing but rejected files: the report must name each.
    pub explained: BTreeSet<String>,
}

/// Library that this program searches for.
pub struct Request {
    pub id: String,
    pub role: Role,
    pub family: bool,
    pub driver: bool,
    pub names: Vec<LoadName>,
    pub newest: u32,
    pub choice: Choice,
    pub layout: SearchLayout,
}

#[derive(Default)]
pub struct SearchLayout {
    pub wheels: Vec<String>,
    pub variables: Vec<String>,
    pub roots: Vec<String>,
    pub root_dirs: Vec<String>,
    pub first: Vec<String>,
    pub last: Vec<String>,
}

/// Directory in the search order; `None`: the loader's own search.
pub struct SearchDir {
    pub directory: Option<String>,
    pub root: Option<String>,
    pub found_by: String,
}

/// Mapped library: the name that the loader gave it, its path, soname and version.
#[derive(Clone)]
pub struct Mapped {
    pub name: String,
    pub file: String,
    pub soname: String,
    pub version: u32,
    pub lacks: bool,
}

/// Process on the machine.
pub struct Process<'w> {
    pub world: &'w World,
    /// Default directories of the loader.
    pub system: &'w [String],
    pub mapped: Vec<Mapped>,
    /// Major and root selected by the first toolkit library.
    pub toolkit: Option<(u32, Option<String>)>,
    pub settled: BTreeMap<String, (Expected, u32)>,
}

impl<'w> Process<'w> {
    pub fn new(world: &'w World, system: &'w [String]) -> Self {
        let mut process = Self {
            world,
            system,
            mapped: Vec::new(),
            toolkit: None,
            settled: BTreeMap::new(),
        };
        for path in &world.preloads {
            let _ = process.open_file(path);
        }
        process
    }

    /// Expected results of all libraries that were requested, or queried for their version.
    pub fn run(mut self) -> BTreeMap<String, Expected> {
        for id in &self.world.order {
            self.settle(id);
        }
        (self.settled.into_iter())
            .map(|(id, (expected, _))| (id, expected))
            .collect()
    }

    /// Settles a library; returns its version, 0 if there is none.
    pub fn settle(&mut self, id: &str) -> u32 {
        if let Some((_, version)) = self.settled.get(id) {
            return *version;
        }
        let request = request(self.world, id);
        let mut search = Search {
            limit: 0,
            forced: false,
            accepted: None,
            rejected: BTreeSet::new(),
            loaded: Vec::new(),
        };
        search.run(self, &request);
        let explained = search.explained(self, &request);
        let mut expected = Expected {
            explained,
            ..Expected::default()
        };
        let mut version = 0;
        if let Some(accepted) = search.accepted {
            let root = accepted
                .root
                .or_else(|| root_of(&request.layout, &accepted.mapped.name));
            if request.matches(&accepted.mapped) {
                version = accepted.mapped.version;
            }
            let fixes = request.family && request.role == Role::Toolkit && accepted.major != 0;
            if fixes && self.toolkit.is_none() {
                self.toolkit = Some((accepted.major, root));
            }
            expected.path = Some(accepted.mapped.name);
            expected.found_by = Some(accepted.found_by);
            expected.major = accepted.major;
        }
        self.settled.insert(id.to_owned(), (expected, version));
        version
    }

    // ---- the loader -------------------------------------------------------------------------------

    /// `dlopen` with a path. Also returns whether the library is new to the process.
    pub fn open_file(&mut self, path: &str) -> Option<(Mapped, bool)> {
        let (file, content) = self.world.file(path)?;
        if let Some(mapped) = self.mapped.iter().find(|mapped| mapped.file == file) {
            return Some((mapped.clone(), false));
        }
        let Content::Library {
            soname,
            version,
            lacks,
        } = content
        else {
            return None;
        };
        let mapped = Mapped {
            name: path.to_owned(),
            file,
            soname: soname.clone(),
            version: *version,
            lacks: *lacks,
        };
        self.mapped.push(mapped.clone());
        Some((mapped, true))
    }

    /// `dlopen` with a name: a loaded library with this soname, else the first file of that name
    /// for this machine that is not truncated; a file broken in another way ends the search.
    pub fn open_name(&mut self, name: &str) -> Option<(Mapped, bool)> {
        if let Some(mapped) = self.mapped.iter().find(|mapped| mapped.soname == name) {
            return Some((mapped.clone(), false));
        }
        for directory in self.loader_directories() {
            let path = format!("{directory}/{name}");
            match self.world.file(&path) {
                // The run time does not let the loader map a truncated file.
                None | Some((_, Content::WrongMachine | Content::Short | Content::Truncated)) => {}
                Some(_) => return self.open_file(&path),
            }
        }
        None
    }

    pub fn loader_directories(&self) -> Vec<String> {
        let mut directories = Vec::new();
        let variable = self.variable("LD_LIBRARY_PATH").unwrap_or_default();
        for entry in variable.split(':').filter(|entry| !entry.is_empty()) {
            // The programs run in the root directory.
            directories.push(match entry.strip_prefix('/') {
                Some(_) => entry.to_owned(),
                None => format!("/{entry}"),
            });
        }
        directories.extend(self.system.iter().cloned());
        directories
    }

    pub fn variable(&self, name: &str) -> Option<&'w str> {
        let value = self.world.variables.get(name)?;
        (!value.is_empty()).then_some(value)
    }

    // ---- search directories, in the documented order -------------------------------------------------------

    pub fn search_dirs(&self, request: &Request) -> Vec<SearchDir> {
        let mut dirs = Vec::new();
        let layout = &request.layout;
        let add = &mut |root: &str, below: &[String], found_by: &str| {
            add_below(&mut dirs, root, below, found_by)
        };
        let here = [String::new()];
        let is_toolkit = request.role == Role::Toolkit;
        if let (true, true, Some((_, Some(root)))) = (is_toolkit, request.family, &self.toolkit) {
            add(root, &here, "same toolkit");
            add(root, &layout.wheels, "same toolkit");
            add(root, &layout.root_dirs, "same toolkit");
        }
        let directory = parent(&self.world.program);
        for dir in &request.choice.search_dirs {
            add(&dir.replace("$ORIGIN", directory), &here, "search-dirs");
        }
        if is_toolkit {
            let program = &self.world.program;
            let mut prefix = parent(parent(program));
            for name in ["/site-packages/", "/dist-packages/"] {
                if let Some(start) = program.rfind(name) {
                    let site = &program[..start + name.len() - 1];
                    add(site, &layout.wheels, "site-packages around the program");
                    prefix = parent(parent(parent(site)));
                }
            }
            let is_conda = !self
                .world
                .entries(&format!("{prefix}/conda-meta"))
                .is_empty();
            let is_virtual = self.world.file(&format!("{prefix}/pyvenv.cfg")).is_some();
            let around = (is_conda || is_virtual).then_some(prefix);
            let started = parent(parent(LINK));
            let is_started = self.world.start == Start::ByLink
                && self.world.file(&format!("{started}/pyvenv.cfg")).is_some();
            for (environment, found_by) in [
                (around, "environment of the program"),
                (
                    is_started.then_some(started),
                    "environment of the started program",
                ),
                (self.variable("VIRTUAL_ENV"), "VIRTUAL_ENV"),
            ] {
                let Some(environment) = environment else {
                    continue;
                };
                for python in self.newest_first(&format!("{environment}/lib"), "python3") {
                    let site = format!("{python}/site-packages");
                    add(&site, &layout.wheels, found_by);
                }
            }
            let lib = ["lib".to_owned()];
            if is_conda {
                add(prefix, &lib, "environment of the program");
            }
            if let Some(conda) = self.variable("CONDA_PREFIX") {
                add(conda, &lib, "CONDA_PREFIX");
            }
        }
        for dir in &layout.first {
            add(dir, &here, "driver directory");
        }
        dirs.push(SearchDir {
            directory: None,
            root: None,
            found_by: "dynamic loader".to_owned(),
        });
        let add = &mut |root: &str, below: &[String], found_by: &str| {
            add_below(&mut dirs, root, below, found_by)
        };
        if is_toolkit {
            for name in &layout.variables {
                if let Some(root) = self.variable(name) {
                    add(root, &layout.root_dirs, name);
                }
            }
            for root in &layout.roots {
                match root.split_once('*') {
                    None => add(root, &layout.root_dirs, "well-known directory"),
                    Some((prefix, _)) => {
                        let name = &prefix[parent(prefix).len() + 1..];
                        for root in self.newest_first(parent(prefix), name) {
                            add(&root, &layout.root_dirs, "well-known directory");
                        }
                    }
                }
            }
        }
        let found_by = match request.role {
            Role::Driver => "driver directory",
            _ => "well-known directory",
        };
        for dir in &layout.last {
            add(dir, &here, found_by);
        }
        dirs
    }

    /// Entries of a directory with a prefix, the highest version first.
    pub fn newest_first(&self, directory: &str, prefix: &str) -> Vec<String> {
        if !directory.starts_with('/') {
            return Vec::new();
        }
        let entries = self.world.entries(&self.world.canonical(directory));
        let mut entries: Vec<_> = entries.iter().filter(|e| e.starts_with(prefix)).collect();
        entries.sort_by_key(|entry| {
            let numbers: Vec<u32> = entry
                .split(|c: char| !c.is_ascii_digit())
                .filter_map(|digits| digits.parse().ok())
                .collect();
            std::cmp::Reverse(numbers)
        });
        (entries.iter())
            .map(|entry| format!("{directory}/{entry}"))
            .collect()
    }
}

/// Adds directories below a root, which must be absolute.
fn add_below(dirs: &mut Vec<SearchDir>, root: &str, below: &[String], found_by: &str) {
    if root.starts_with('/') {
        dirs.extend(below.iter().map(|below| SearchDir {
            directory: Some(match &below[..] {
                "" => root.to_owned(),
                below => format!("{root}/{below}"),
            }),
            root: Some(root.to_owned()),
            found_by: found_by.to_owned(),
        }));
    }
}
