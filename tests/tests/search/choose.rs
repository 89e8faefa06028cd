//! Search for one library: the part of the model that accepts a candidate.

use std::collections::BTreeSet;

use gpustub_core::library::{Library, LoadName, Role};

use crate::model::{Mapped, Process, SearchDir, SearchLayout, Wanted};
use crate::world::World;

pub struct Taken {
    pub mapped: Mapped,
    pub root: Option<String>,
    pub found: String,
    pub major: u32,
}

pub struct Search {
    /// Newest major that the driver supports; 0: no limit.
    pub limit: u32,
    pub forced: bool,
    pub taken: Option<Taken>,
    pub rejected: BTreeSet<String>,
    /// Libraries that were loaded before the search.
    pub loaded: Vec<String>,
}

impl Search {
    pub fn run(&mut self, process: &mut Process<'_>, wanted: &Wanted) {
        let variable = format!("GPUSTUB_{}_PATH", wanted.id.to_ascii_uppercase());
        if let Some(value) = process.variable(&variable) {
            self.forced = true;
            self.overridden(process, wanted, value, &variable);
            return;
        }
        // Libraries of a newer, unknown major too, unless they are known to be others.
        let known = |mapped: &Mapped| wanted.names.iter().any(|n| n.name == mapped.soname);
        let mut loaded: Vec<Mapped> = Vec::new();
        for name in &wanted.names {
            let named = process.mapped.iter().filter(|m| m.soname == name.name);
            loaded.extend(named.cloned());
        }
        let newer = |m: &&Mapped| wanted.family && !known(m) && wanted.major_of(m) > wanted.newest;
        loaded.extend(process.mapped.iter().filter(newer).cloned());
        self.loaded = loaded.iter().map(|mapped| mapped.name.clone()).collect();
        for mapped in loaded {
            let path = mapped.name.clone();
            self.consider(
                process,
                wanted,
                Some((mapped, false)),
                &path,
                None,
                "already loaded",
            );
            if self.taken.is_some() {
                return;
            }
        }
        if wanted.driver {
            self.limit = process.settle("cuda") / 1000;
        }
        let fixed = match &process.toolkit {
            Some((major, _)) if wanted.family && wanted.role == Role::Toolkit => Some(*major),
            _ => None,
        };
        let turn = |name: &LoadName| match name.major {
            None => 2,
            Some(major) => u8::from(self.limit != 0 && major > self.limit),
        };
        let mut names: Vec<(u8, &LoadName)> = wanted.names.iter().map(|n| (turn(n), n)).collect();
        names.sort_by_key(|(turn, _)| *turn);
        for (_, name) in names {
            if fixed.is_some_and(|fixed| name.major.is_some_and(|major| major != fixed)) {
                continue;
            }
            for dir in process.search_dirs(wanted) {
                self.try_name(process, wanted, &name.name, &dir);
                if self.taken.is_some() {
                    return;
                }
            }
        }
    }

    pub fn overridden(
        &mut self,
        process: &mut Process<'_>,
        wanted: &Wanted,
        value: &str,
        variable: &str,
    ) {
        if value == "off" || !value.starts_with('/') {
            return;
        }
        if process.world.file(value).is_some() {
            let opened = self.open(process, value);
            self.consider(process, wanted, opened, value, None, variable);
            return;
        }
        for name in &wanted.names {
            let dir = SearchDir {
                directory: Some(value.to_owned()),
                root: None,
                found: variable.to_owned(),
            };
            if self.taken.is_none() {
                self.try_name(process, wanted, &name.name, &dir);
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
        wanted: &Wanted,
        name: &str,
        dir: &SearchDir,
    ) {
        let mut was_there = false;
        let (opened, path) = match &dir.directory {
            Some(directory) => {
                let path = format!("{directory}/{name}");
                (self.open(process, &path), path)
            }
            None => {
                let opened = process.open_name(name);
                was_there = opened.as_ref().is_some_and(|(_, is_new)| !is_new);
                let path = opened.as_ref().map(|(mapped, _)| mapped.name.clone());
                (opened, path.unwrap_or_default())
            }
        };
        let root = dir.root.clone();
        self.consider(process, wanted, opened, &path, root, &dir.found);
        // A rejected library stays loaded, and the loader returns it for its name: the search then
        // continues in the loader's own directories.
        for directory in process.loader_directories() {
            let path = format!("{directory}/{name}");
            if was_there && self.taken.is_none() && process.world.file(&path).is_some() {
                let opened = self.open(process, &path);
                self.consider(process, wanted, opened, &path, None, &dir.found);
            }
        }
    }

    /// Accepts a loaded library or rejects it.
    pub fn consider(
        &mut self,
        process: &mut Process<'_>,
        wanted: &Wanted,
        opened: Option<(Mapped, bool)>,
        path: &str,
        root: Option<String>,
        found: &str,
    ) {
        let Some((mapped, _)) = opened else {
            self.rejected.insert(path.to_owned());
            return;
        };
        let major = wanted.major_of(&mapped);
        let choice = &wanted.choice;
        let fixed = match &process.toolkit {
            Some((fixed, _)) if wanted.family && wanted.role == Role::Toolkit => {
                !self.forced && major != 0 && *fixed != major
            }
            _ => false,
        };
        let newest = wanted
            .names
            .iter()
            .any(|name| name.major == Some(wanted.newest));
        let accepts = major == 0
            || (major > wanted.newest && newest)
            || wanted.names.iter().any(|name| name.major == Some(major))
            || wanted.names.iter().all(|name| name.major.is_none());
        let too_old = match choice.min_version {
            Some((major, minor)) => {
                wanted.matches(&mapped) && mapped.version < major * 1000 + minor * 10
            }
            None => false,
        };
        let lacks = choice.require && (mapped.lacks || !wanted.matches(&mapped));
        // NVIDIA's wheels contain their own libOpenCL.
        let foreign = wanted.role == Role::Loader && mapped.file.contains("-packages/nvidia/");
        // An override may name a file without any of the library's functions.
        let other = !wanted.matches(&mapped);
        if is_link_stub(process, path) || foreign || other || !accepts || fixed || too_old || lacks
        {
            self.rejected.insert(path.to_owned());
            return;
        }
        self.taken = Some(Taken {
            mapped,
            root,
            found: found.to_owned(),
            major,
        });
    }

    /// Files of an accepted name in a searched directory, except the accepted one.
    pub fn explained(&self, process: &Process<'_>, wanted: &Wanted) -> BTreeSet<String> {
        let mut directories: BTreeSet<String> = BTreeSet::new();
        let mut paths: BTreeSet<String> = BTreeSet::new();
        let variable = format!("GPUSTUB_{}_PATH", wanted.id.to_ascii_uppercase());
        if self.forced {
            // A user's override excludes files in other directories.
            directories.extend(process.variable(&variable).map(str::to_owned));
            paths.extend(self.rejected.iter().cloned());
        } else {
            for dir in process.search_dirs(wanted) {
                match dir.directory {
                    Some(directory) => drop(directories.insert(directory)),
                    None => directories.extend(process.loader_directories()),
                }
            }
            paths.extend(self.loaded.iter().cloned());
        }
        for directory in &directories {
            paths.extend(
                wanted
                    .names
                    .iter()
                    .map(|n| format!("{directory}/{}", n.name)),
            );
        }
        let taken = self.taken.as_ref().map(|taken| taken.mapped.file.clone());
        paths.retain(|path| match process.world.file(path) {
            Some((file, _)) => path.starts_with('/') && Some(file) != taken,
            None => false,
        });
        paths
    }
}

impl Wanted {
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
    let mut below = layout.wheels.iter().chain(&layout.root_dirs);
    below.find_map(|below| {
        let root = directory.strip_suffix(below.as_str())?.strip_suffix('/')?;
        (!root.is_empty()).then(|| root.to_owned())
    })
}

pub fn parent(path: &str) -> &str {
    path.rfind('/').map_or("", |at| &path[..at])
}

/// The library with this program's choices: the majors in the order of `majors`, else the headers'
/// major first and then the newest first; names without a major last.
pub fn wanted(world: &World, id: &str) -> Wanted {
    let choice = world.config.stubs.get(id).cloned().unwrap_or_default();
    let arch = |dirs: &[String]| -> Vec<String> {
        dirs.iter()
            .map(|dir| dir.replace("{arch}", "x86_64"))
            .map(|dir| dir.replace("{cuda-target}", "x86_64-linux"))
            .collect()
    };
    let own = ["libacme.so.3", "libacme.so.2", "libacme.so"];
    let known = Library::builtin(id);
    let mut names = match known {
        Some(library) => library.load_names.get("linux").cloned().unwrap_or_default(),
        None => own.into_iter().map(LoadName::new).collect(),
    };
    let newest = names.iter().filter_map(|name| name.major).max();
    let rank = |name: &LoadName| match (name.major, &choice.majors[..]) {
        (None, _) => usize::MAX,
        (major, []) => usize::from(major != choice.header),
        (Some(major), majors) => majors
            .iter()
            .position(|m| *m == major)
            .unwrap_or(usize::MAX),
    };
    names.retain(|name| name.major.is_none() || rank(name) != usize::MAX);
    names.sort_by_key(|name| (rank(name), name.major.is_none()));
    Wanted {
        id: id.to_owned(),
        role: known.map_or(Role::Toolkit, |library| library.role),
        family: known.is_some_and(|library| !library.family.is_empty()),
        driver: known.is_some_and(|library| library.driver.is_some()),
        names,
        newest: newest.unwrap_or(0),
        layout: known.map_or_else(SearchLayout::default, |library| SearchLayout {
            wheels: library.wheel_dirs.clone(),
            variables: library.root_env.clone(),
            roots: library.roots.clone(),
            root_dirs: arch(&library.root_subdirs),
            first: arch(&library.dirs_before_loader),
            last: arch(&library.dirs_after_loader),
        }),
        choice,
    }
}
