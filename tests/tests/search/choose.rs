//! Search for one library: the part of the model that accepts a candidate.

use std::collections::BTreeSet;

use gpustub_core::library::{Library, LoadName, Role};

use crate::model::{Mapped, Process, Request, SearchDir, SearchLayout};
use crate::world::{Choice, World};

pub struct Accepted {
    pub mapped: Mapped,
    pub root: Option<String>,
    pub found_by: String,
    pub major: u32,
}

pub struct Search {
    /// Newest major that the driver supports; 0: no limit.
    pub limit: u32,
    pub forced: bool,
    pub accepted: Option<Accepted>,
    pub rejected: BTreeSet<String>,
    /// Libraries that were loaded before the search.
    pub loaded: Vec<String>,
}

impl Search {
    pub fn run(&mut self, process: &mut Process<'_>, request: &Request) {
        let variable = format!("GPUSTUB_{}_PATH", request.id.to_ascii_uppercase());
        if let Some(value) = process.variable(&variable) {
            self.forced = true;
            self.overridden(process, request, value, &variable);
            return;
        }
        // Libraries of a newer, unknown major too, unless they are known to be others.
        let mut loaded: Vec<Mapped> = Vec::new();
        for name in &request.names {
            let named = process.mapped.iter().filter(|m| m.soname == name.name);
            loaded.extend(named.cloned());
        }
        for mapped in &process.mapped {
            let is_known = request.names.iter().any(|n| n.name == mapped.soname);
            if request.family && !is_known && request.major_of(mapped) > request.newest {
                loaded.push(mapped.clone());
            }
        }
        self.loaded = loaded.iter().map(|mapped| mapped.name.clone()).collect();
        for mapped in loaded {
            let path = mapped.name.clone();
            self.consider(
                process,
                request,
                Some((mapped, false)),
                &path,
                None,
                "already loaded",
            );
            if self.accepted.is_some() {
                return;
            }
        }
        if request.driver {
            self.limit = process.settle("cuda") / 1000;
        }
        let fixed = match &process.toolkit {
            Some((major, _)) if request.family && request.role == Role::Toolkit => Some(*major),
            _ => None,
        };
        let mut names: Vec<&LoadName> = request.names.iter().collect();
        names.sort_by_key(|name| match name.major {
            None => 2,
            Some(major) => u8::from(self.limit != 0 && major > self.limit),
        });
        for name in names {
            if fixed.is_some_and(|fixed| name.major.is_some_and(|major| major != fixed)) {
                continue;
            }
            for dir in process.search_dirs(request) {
                self.try_name(process, request, &name.name, &dir);
                if self.accepted.is_some() {
                    return;
                }
            }
        }
    }

    pub fn overridden(
        &mut self,
        process: &mut Process<'_>,
        request: &Request,
        value: &str,
        variable: &str,
    ) {
        if value == "off" || !value.starts_with('/') {
            return;
        }
        if process.world.file(value).is_some() {
            let opened = self.open(process, value);
            self.consider(process, request, opened, value, None, variable);
            return;
        }
        for name in &request.names {
            let dir = SearchDir {
                directory: Some(value.to_owned()),
                root: None,
                found_by: variable.to_owned(),
            };
            if self.accepted.is_none() {
                self.try_name(process, request, &name.name, &dir);
            }
        }
    }

    /// Loads a file, unless it is a link-time stub.
    pub fn open(&self, process: &mut Process<'_>, path: &str) -> Option<(Mapped, bool)> {
        (!is_link_stub(process, path)).then(|| process.open_file(path))?
    }

    pub fn try_name(
        &mut self,
        process: &mut Process<'_>,
        request: &Request,
        name: &str,
        dir: &SearchDir,
    ) {
        let mut was_loaded = false;
        let (opened, path) = match &dir.directory {
            Some(directory) => {
                let path = format!("{directory}/{name}");
                (self.open(process, &path), path)
            }
            None => {
                let opened = process.open_name(name);
                was_loaded = opened.as_ref().is_some_and(|(_, is_new)| !is_new);
                let path = opened.as_ref().map(|(mapped, _)| mapped.name.clone());
                (opened, path.unwrap_or_default())
            }
        };
        let root = dir.root.clone();
        self.consider(process, request, opened, &path, root, &dir.found_by);
        // A rejected library stays loaded, and the loader returns it for its name: the search then
        // continues in the loader's own directories.
        for directory in process.loader_directories() {
            let path = format!("{directory}/{name}");
            if was_loaded && self.accepted.is_none() && process.world.file(&path).is_some() {
                let opened = self.open(process, &path);
                self.consider(process, request, opened, &path, None, &dir.found_by);
            }
        }
    }

    /// Accepts a loaded library or rejects it.
    pub fn consider(
        &mut self,
        process: &mut Process<'_>,
        request: &Request,
        opened: Option<(Mapped, bool)>,
        path: &str,
        root: Option<String>,
        found_by: &str,
    ) {
        let Some((mapped, _)) = opened else {
            self.rejected.insert(path.to_owned());
            return;
        };
        let major = request.major_of(&mapped);
        let choice = &request.choice;
        let is_of_other_toolkit = match &process.toolkit {
            Some((fixed, _)) if request.family && request.role == Role::Toolkit => {
                !self.forced && major != 0 && *fixed != major
            }
            _ => false,
        };
        let accepts_newest = request
            .names
            .iter()
            .any(|name| name.major == Some(request.newest));
        let accepts = major == 0
            || (major > request.newest && accepts_newest)
            || request.names.iter().any(|name| name.major == Some(major))
            || request.names.iter().all(|name| name.major.is_none());
        let is_too_old = match choice.min_version {
            Some((major, minor)) => {
                request.matches(&mapped) && mapped.version < major * 1000 + minor * 10
            }
            None => false,
        };
        let lacks_function = choice.require && (mapped.lacks || !request.matches(&mapped));
        // NVIDIA's wheels contain their own libOpenCL.
        let is_foreign = request.role == Role::Loader && mapped.file.contains("-packages/nvidia/");
        // An override may name a file without any of the library's functions.
        let is_other_library = !request.matches(&mapped);
        if is_link_stub(process, path)
            || is_foreign
            || is_other_library
            || !accepts
            || is_of_other_toolkit
            || is_too_old
            || lacks_function
        {
            self.rejected.insert(path.to_owned());
            return;
        }
        self.accepted = Some(Accepted {
            mapped,
            root,
            found_by: found_by.to_owned(),
            major,
        });
    }

    /// Files of an accepted name in a searched directory, except the accepted one.
    pub fn explained(&self, process: &Process<'_>, request: &Request) -> BTreeSet<String> {
        let mut directories: BTreeSet<String> = BTreeSet::new();
        let mut paths: BTreeSet<String> = BTreeSet::new();
        let variable = format!("GPUSTUB_{}_PATH", request.id.to_ascii_uppercase());
        if self.forced {
            // A user's override excludes files in other directories.
            directories.extend(process.variable(&variable).map(str::to_owned));
            paths.extend(self.rejected.iter().cloned());
        } else {
            for dir in process.search_dirs(request) {
                match dir.directory {
                    Some(directory) => drop(directories.insert(directory)),
                    None => directories.extend(process.loader_directories()),
                }
            }
            paths.extend(self.loaded.iter().cloned());
        }
        for directory in &directories {
            paths.extend(
                request
                    .names
                    .iter()
                    .map(|n| format!("{directory}/{}", n.name)),
            );
        }
        let accepted = self
            .accepted
            .as_ref()
            .map(|accepted| accepted.mapped.file.clone());
        paths.retain(|path| match process.world.file(path) {
            Some((file, _)) => path.starts_with('/') && Some(file) != accepted,
            None => false,
        });
        paths
    }
}

impl Request {
    /// Whether the file is this library at all.
    pub fn matches(&self, mapped: &Mapped) -> bool {
        // libOpenCL.so.1 is of the library `opencl`.
        let soname = mapped.soname.to_ascii_lowercase();
        soname.starts_with(&format!("lib{}.so", self.id))
    }

    /// Major of the file; 0: unknown, as for any file that an override may name.
    pub fn major_of(&self, mapped: &Mapped) -> u32 {
        if !self.matches(mapped) {
            return 0;
        }
        let named = self.names.iter().find(|name| name.name == mapped.soname);
        match named.and_then(|name| name.major) {
            Some(major) => major,
            None if self.newest == 0 => mapped.version / 1000,
            None => LoadName::new(&mapped.soname[..]).major.unwrap_or(0),
        }
    }
}

/// Whether the file is in a directory named `stubs`, or a link to a file in one.
pub fn is_link_stub(process: &Process<'_>, path: &str) -> bool {
    let real = process.world.file(path).map(|(file, _)| file);
    [Some(path), real.as_deref()]
        .into_iter()
        .flatten()
        .any(|path| parent(path).ends_with("/stubs"))
}

/// Root directory of a file, by the layouts of the manifest.
pub fn root_of(layout: &SearchLayout, path: &str) -> Option<String> {
    let directory = parent(path);
    (layout.wheels.iter().chain(&layout.root_dirs)).find_map(|below| {
        let root = directory.strip_suffix(below.as_str())?.strip_suffix('/')?;
        (!root.is_empty()).then(|| root.to_owned())
    })
}

pub fn parent(path: &str) -> &str {
    path.rfind('/').map_or("", |slash| &path[..slash])
}

/// The library with this program's choices: the majors in the order of `majors`, else the headers'
/// major first and then the newest first; names without a major last.
pub fn request(world: &World, id: &str) -> Request {
    let choice = world.config.stubs.get(id).cloned().unwrap_or_default();
    let builtin = Library::builtin(id);
    let mut names = match builtin {
        Some(library) => library.load_names.get("linux").cloned().unwrap_or_default(),
        None => ["libacme.so.3", "libacme.so.2", "libacme.so"]
            .map(LoadName::new)
            .into(),
    };
    let newest = names.iter().filter_map(|name| name.major).max();
    names.retain(|name| name.major.is_none() || rank(name, &choice) != usize::MAX);
    names.sort_by_key(|name| (rank(name, &choice), name.major.is_none()));
    Request {
        id: id.to_owned(),
        role: builtin.map_or(Role::Toolkit, |library| library.role),
        family: builtin.is_some_and(|library| !library.family.is_empty()),
        driver: builtin.is_some_and(|library| library.driver.is_some()),
        names,
        newest: newest.unwrap_or(0),
        layout: builtin.map_or_else(SearchLayout::default, |library| SearchLayout {
            wheels: library.wheel_dirs.clone(),
            variables: library.root_env.clone(),
            roots: library.roots.clone(),
            root_dirs: for_this_machine(&library.root_subdirs),
            first: for_this_machine(&library.dirs_before_loader),
            last: for_this_machine(&library.dirs_after_loader),
        }),
        choice,
    }
}

/// Position of a name in the order of a program's choice.
fn rank(name: &LoadName, choice: &Choice) -> usize {
    match (name.major, &choice.majors[..]) {
        (None, _) => usize::MAX,
        (major, []) => usize::from(major != choice.header),
        (Some(major), majors) => majors
            .iter()
            .position(|m| *m == major)
            .unwrap_or(usize::MAX),
    }
}

fn for_this_machine(dirs: &[String]) -> Vec<String> {
    dirs.iter()
        .map(|dir| dir.replace("{arch}", "x86_64"))
        .map(|dir| dir.replace("{cuda-target}", "x86_64-linux"))
        .collect()
}
