//! Where the search path of an image leads, seen from inside its package.

use std::collections::{BTreeMap, BTreeSet};

use crate::package::{Image, Member, Package};

/// Where an entry of a search path leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SearchDir {
    /// A folder of the package, or where one would be.
    Inside(String),
    /// Out of the package.
    Outside,
    /// From `/`, or through what only the loader knows (`$LIB`).
    Elsewhere,
    /// From the directory that the process happens to be in.
    Current,
}

/// The files of a package as they lie when it is installed.
pub struct Layout<'a> {
    files: BTreeMap<&'a str, &'a Member>,
    folders: BTreeSet<&'a str>,
    /// Those that hold files of its own: not only folders, nor the `__init__.py` of a folder that
    /// packages share.
    owned: BTreeSet<&'a str>,
}

impl<'a> Layout<'a> {
    /// The layout of a package.
    pub fn from_package(package: &'a Package) -> Self {
        let mut layout = Self {
            files: BTreeMap::new(),
            folders: BTreeSet::from([""]),
            owned: BTreeSet::new(),
        };
        for member in &package.members {
            let path = installed(&member.path);
            let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
            if name != "__init__.py" {
                layout.owned.insert(folder);
            }
            let mut folder = path;
            while let Some((parent, _)) = folder.rsplit_once('/') {
                if !layout.folders.insert(parent) {
                    break;
                }
                folder = parent;
            }
            layout.files.insert(path, member);
        }
        layout
    }

    /// Whether there is such a folder.
    pub fn has_directory(&self, path: &str) -> bool {
        self.folders.contains(path)
    }

    /// Whether a folder, if it were there, would be the package's: the nearest one above it that is
    /// there has files of its own. Other wheels put folders beside a wheel's own, and into folders
    /// that wheels share (`nvidia`); those hold no files.
    pub fn is_owned(&self, path: &str, is_wheel: bool) -> bool {
        let mut folder = path;
        while !self.has_directory(folder) {
            folder = folder.rsplit_once('/').map_or("", |(parent, _)| parent);
        }
        if is_wheel && folder.is_empty() {
            return false;
        }
        self.owned.contains(folder)
    }
}

/// Where a file of a wheel lies after installation, from `site-packages`.
fn installed(path: &str) -> &str {
    let data = path
        .split_once('/')
        .filter(|(top, _)| top.ends_with(".data"));
    let Some((_, rest)) = data else { return path };
    let library = ["platlib/", "purelib/"].into_iter();
    library
        .filter_map(|scheme| rest.strip_prefix(scheme))
        .next()
        .unwrap_or(path)
}

fn join(folder: &str, name: &str) -> String {
    match folder {
        "" => name.to_owned(),
        folder => format!("{folder}/{name}"),
    }
}

/// Where an entry leads.
pub fn resolve_entry(image: &Image<'_>, entry: &str) -> SearchDir {
    let Some(rest) = ["$ORIGIN", "${ORIGIN}"]
        .iter()
        .find_map(|o| entry.strip_prefix(o))
    else {
        return if entry.starts_with(['/', '$']) {
            SearchDir::Elsewhere
        } else {
            SearchDir::Current
        };
    };
    if rest.contains('$') || !(rest.is_empty() || rest.starts_with('/')) {
        return SearchDir::Elsewhere;
    }
    let own = installed(&image.member.path);
    let mut parts: Vec<&str> = own.split('/').collect();
    parts.pop();
    for part in rest.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.pop().is_none() => return SearchDir::Outside,
            ".." => {}
            part => parts.push(part),
        }
    }
    SearchDir::Inside(parts.join("/"))
}

/// Who loads whom inside a package: what a name means once somebody has loaded it.
pub struct Loads<'a> {
    layout: Layout<'a>,
    /// Directories of the package in the search path of each image.
    folders: BTreeMap<&'a str, Vec<String>>,
    /// By image, and what it needs.
    needs: BTreeSet<(&'a str, &'a str)>,
    /// By library: the images that load it.
    loaders: BTreeMap<&'a str, BTreeMap<&'a str, Image<'a>>>,
}

/// So many images that load a library are asked what they have loaded before it.
const LOADERS: usize = 64;
/// So many folders of a search path are looked into.
const FOLDERS: usize = 64;
/// So often loading is followed from libraries to what they load by their loaders' DT_RPATH.
const ROUNDS: usize = 8;

impl<'a> Loads<'a> {
    /// What the images of a package load.
    pub fn from_package(package: &'a Package) -> Self {
        let mut loads = Self {
            layout: Layout::from_package(package),
            folders: BTreeMap::new(),
            needs: BTreeSet::new(),
            loaders: BTreeMap::new(),
        };
        for image in package.images() {
            let path = image.member.path.as_str();
            let mut folders: Vec<String> = Vec::new();
            for entry in image.runpath() {
                let SearchDir::Inside(folder) = resolve_entry(&image, entry) else {
                    continue;
                };
                let known = loads.layout.has_directory(&folder);
                if known && folders.len() < FOLDERS && !folders.contains(&folder) {
                    folders.push(folder);
                }
            }
            loads.folders.insert(path, folders);
            let names = image.needed().iter().map(|name| (path, name.as_str()));
            loads.needs.extend(names);
        }
        for _ in 0..ROUNDS {
            let mut more = false;
            for image in package.images() {
                for name in image.needed() {
                    if let Some(member) = loads.carried(&image, name) {
                        let loaders = loads.loaders.entry(&member.path).or_default();
                        more |= loaders.insert(&image.member.path, image).is_none();
                    }
                }
            }
            if !more {
                break;
            }
        }
        loads
    }

    /// Where the files are.
    pub fn layout(&self) -> &Layout<'a> {
        &self.layout
    }

    /// A library that an image needs, if the package has it and the loader finds it: by the image's
    /// search path; by the DT_RPATH of what loads the image, if that has no DT_RUNPATH; or because
    /// what loads the image needs that library, too (the loader goes breadth first, and takes what
    /// is there by that name).
    pub fn carried(&self, image: &Image<'a>, name: &str) -> Option<&'a Member> {
        if let Some(found) = self.in_path_of(image, name) {
            return Some(found);
        }
        let own = &image.facts.link;
        let inherits = own.rpath || own.runpath.is_none();
        let mut seen = BTreeSet::from([image.member.path.as_str()]);
        let mut queue = vec![image.member.path.as_str()];
        while let Some(path) = queue.pop() {
            for (path, loader) in self.loaders.get(path).into_iter().flatten() {
                if seen.len() > LOADERS || !seen.insert(path) {
                    continue;
                }
                let asks = self.needs.contains(&(path, name));
                let found = if asks || (inherits && loader.facts.link.rpath) {
                    self.in_path_of(loader, name)
                } else {
                    None
                };
                if found.is_some() {
                    return found;
                }
                queue.push(path);
            }
        }
        None
    }

    fn in_path_of(&self, image: &Image<'_>, name: &str) -> Option<&'a Member> {
        let mut folders = self.folders.get(image.member.path.as_str())?.iter();
        folders.find_map(|folder| self.layout.files.get(join(folder, name).as_str()).copied())
    }
}
