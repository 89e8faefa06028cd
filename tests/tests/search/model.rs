//! Expected file of each library by the documented order alone: written from the contract and the manifests,
//! independently of the run time.

use std::collections::{BTreeMap, BTreeSet};

use gpustub_core::library::{LoadName, Role};

use crate::choose::{Search, parent, root_of, wanted};
use crate::world::{Choice, Content, World};

/// Expected result for one library.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Expected {
    pub path: Option<String>,
    pub found: Option<String>,
    pub major: u32,
    /// Existing but rejected files: the report must name each.
    pub explained: BTreeSet<String>,
}

/// Library that this program searches for.
pub struct Wanted {
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
    pub found: String,
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
        let settled = self.settled.into_iter();
        settled.map(|(id, (expected, _))| (id, expected)).collect()
    }

    /// Settles a library; returns its version, 0 if there is none.
    pub fn settle(&mut self, id: &str) -> u32 {
        if let Some((_, version)) = self.settled.get(id) {
            return *version;
        }
        let wanted = wanted(self.world, id);
        let mut search = Search {
            limit: 0,
            forced: false,
            taken: None,
            rejected: BTreeSet::new(),
            loaded: Vec::new(),
        };
        search.run(self, &wanted);
        let explained = search.explained(self, &wanted);
        let mut expected = Expected {
            explained,
            ..Expected::default()
        };
        let mut version = 0;
        if let Some(taken) = search.taken {
            let root = taken
                .root
                .or_else(|| root_of(&wanted.layout, &taken.mapped.name));
            if wanted.matches(&taken.mapped) {
                version = taken.mapped.version;
            }
            let fixes = wanted.family && wanted.role == Role::Toolkit && taken.major != 0;
            if fixes && self.toolkit.is_none() {
                self.toolkit = Some((taken.major, root));
            }
            expected.path = Some(taken.mapped.name);
            expected.found = Some(taken.found);
            expected.major = taken.major;
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
        let listed = self.variable("LD_LIBRARY_PATH").unwrap_or_default();
        let listed = listed.split(':').filter(|entry| !entry.is_empty());
        // The programs run in the root directory.
        let absolute = |entry: &str| match entry.strip_prefix('/') {
            Some(_) => entry.to_owned(),
            None => format!("/{entry}"),
        };
        listed
            .map(absolute)
            .chain(self.system.iter().cloned())
            .collect()
    }

    pub fn variable(&self, name: &str) -> Option<&'w str> {
        let value = self.world.variables.get(name)?;
        (!value.is_empty()).then_some(value)
    }

    // ---- search directories, in the documented order -------------------------------------------------------

    pub fn search_dirs(&self, wanted: &Wanted) -> Vec<SearchDir> {
        let mut dirs = Vec::new();
        let known = &wanted.layout;
        let add = &mut |root: &str, below: &[String], found: &str| {
            add_below(&mut dirs, root, below, found)
        };
        let here = [String::new()];
        let is_toolkit = wanted.role == Role::Toolkit;
        if let (true, true, Some((_, Some(root)))) = (is_toolkit, wanted.family, &self.toolkit) {
            add(root, &here, "same toolkit");
            add(root, &known.wheels, "same toolkit");
            add(root, &known.root_dirs, "same toolkit");
        }
        let directory = parent(&self.world.program);
        for dir in &wanted.choice.search_dirs {
            add(&dir.replace("$ORIGIN", directory), &here, "search-dirs");
        }
        if is_toolkit {
            let program = &self.world.program;
            let mut prefix = parent(parent(program));
            for name in ["/site-packages/", "/dist-packages/"] {
                if let Some(at) = program.rfind(name) {
                    let site = &program[..at + name.len() - 1];
                    add(site, &known.wheels, "site-packages around the program");
                    prefix = parent(parent(parent(site)));
                }
            }
            let is_conda = !self
                .world
                .entries(&format!("{prefix}/conda-meta"))
                .is_empty();
            let is_virtual = self.world.file(&format!("{prefix}/pyvenv.cfg")).is_some();
            let around = (is_conda || is_virtual).then_some(prefix);
            for (environment, found) in [
                (around, "environment of the program"),
                (self.variable("VIRTUAL_ENV"), "VIRTUAL_ENV"),
            ] {
                let Some(environment) = environment else {
                    continue;
                };
                for python in self.newest_first(&format!("{environment}/lib"), "python3") {
                    let site = format!("{python}/site-packages");
                    add(&site, &known.wheels, found);
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
        for dir in &known.first {
            add(dir, &here, "driver directory");
        }
        dirs.push(SearchDir {
            directory: None,
            root: None,
            found: "dynamic loader".to_owned(),
        });
        let add = &mut |root: &str, below: &[String], found: &str| {
            add_below(&mut dirs, root, below, found)
        };
        if is_toolkit {
            for name in &known.variables {
                if let Some(root) = self.variable(name) {
                    add(root, &known.root_dirs, name);
                }
            }
            for root in &known.roots {
                match root.split_once('*') {
                    None => add(root, &known.root_dirs, "well-known directory"),
                    Some((prefix, _)) => {
                        let name = &prefix[parent(prefix).len() + 1..];
                        for root in self.newest_first(parent(prefix), name) {
                            add(&root, &known.root_dirs, "well-known directory");
                        }
                    }
                }
            }
        }
        let found = match wanted.role {
            Role::Driver => "driver directory",
            _ => "well-known directory",
        };
        for dir in &known.last {
            add(dir, &here, found);
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
        let version = |entry: &str| -> Vec<u32> {
            let digits = entry.split(|c: char| !c.is_ascii_digit());
            digits.filter_map(|part| part.parse().ok()).collect()
        };
        entries.sort_by_key(|entry| std::cmp::Reverse(version(entry)));
        let paths = entries.iter().map(|entry| format!("{directory}/{entry}"));
        paths.collect()
    }
}

/// Adds directories below a root, which must be absolute.
fn add_below(dirs: &mut Vec<SearchDir>, root: &str, below: &[String], found: &str) {
    if root.starts_with('/') {
        dirs.extend(below.iter().map(|below| SearchDir {
            directory: Some(match &below[..] {
                "" => root.to_owned(),
                below => format!("{root}/{below}"),
            }),
            root: Some(root.to_owned()),
            found: found.to_owned(),
        }));
    }
}
