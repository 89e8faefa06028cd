//! Resolves run path entries of an image to directories of its package.

use std::collections::{BTreeMap, BTreeSet};

use crate::package::{Image, Member, Package};

/// Target of a run path entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SearchDir {
    /// A path in the package, which may not exist.
    Inside(String),
    /// A path outside of the package.
    Outside,
    /// A path from `/`, or with a token that only the loader expands (`$LIB`).
    Elsewhere,
    /// A path relative to the current directory of the process.
    Current,
}

/// Paths of a package's files after installation.
pub struct Layout<'a> {
    files: BTreeMap<&'a str, &'a Member>,
    directories: BTreeSet<&'a str>,
    /// Directories with files of the package: not only directories, nor the `__init__.py` of a
    /// directory that packages share.
    owned: BTreeSet<&'a str>,
}

impl<'a> Layout<'a> {
    /// The layout of a package.
    pub fn from_package(package: &'a Package) -> Self {
        let mut layout = Self {
            files: BTreeMap::new(),
            directories: BTreeSet::from([""]),
            owned: BTreeSet::new(),
        };
        for member in &package.members {
            let path = installed(&member.path);
            let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
            if name != "__init__.py" {
                layout.owned.insert(directory);
            }
            let mut directory = path;
            while let Some((parent, _)) = directory.rsplit_once('/') {
                if !layout.directories.insert(parent) {
                    break;
                }
                directory = parent;
            }
            layout.files.insert(path, member);
        }
        layout
    }

    /// Whether the package has this directory.
    pub fn has_directory(&self, path: &str) -> bool {
        self.directories.contains(path)
    }

    /// Whether a missing directory would belong to the package: its nearest existing parent has files
    /// of the package. Other wheels put directories beside a wheel's own, and into directories
    /// that wheels share (`nvidia`), which contain no files.
    pub fn is_owned(&self, path: &str, is_wheel: bool) -> bool {
        let mut directory = path;
        while !self.has_directory(directory) {
            directory = directory.rsplit_once('/').map_or("", |(parent, _)| parent);
        }
        if is_wheel && directory.is_empty() {
            return false;
        }
        self.owned.contains(directory)
    }
}

/// Path of a wheel's file after installation, relative to `site-packages`.
pub fn installed(path: &str) -> &str {
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

fn join(directory: &str, name: &str) -> String {
    match directory {
        "" => name.to_owned(),
        directory => format!("{directory}/{name}"),
    }
}

/// Resolves an entry of an image's run path.
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

/// Libraries of a package that its images load, directly or because another image loaded them first.
pub struct Loads<'a> {
    layout: Layout<'a>,
    /// Directories of the package in the run path of each image.
    directories: BTreeMap<&'a str, Vec<String>>,
    /// Pairs of an image and a name that it needs.
    needs: BTreeSet<(&'a str, &'a str)>,
    /// Images that load each library.
    loaders: BTreeMap<&'a str, BTreeMap<&'a str, Image<'a>>>,
}

/// Maximum number of images, directly or indirectly loading a library, that are examined.
const LOADERS: usize = 64;
/// Maximum number of directories of a run path that are searched.
const DIRECTORIES: usize = 64;
/// Maximum number of rounds that follow libraries found through their loaders' DT_RPATH.
const ROUNDS: usize = 8;

impl<'a> Loads<'a> {
    /// Libraries that the images of a package load.
    pub fn from_package(package: &'a Package) -> Self {
        let mut loads = Self {
            layout: Layout::from_package(package),
            directories: BTreeMap::new(),
            needs: BTreeSet::new(),
            loaders: BTreeMap::new(),
        };
        for image in package.images() {
            let path = image.member.path.as_str();
            let mut directories: Vec<String> = Vec::new();
            for entry in image.runpath() {
                let SearchDir::Inside(directory) = resolve_entry(&image, entry) else {
                    continue;
                };
                let known = loads.layout.has_directory(&directory);
                if known && directories.len() < DIRECTORIES && !directories.contains(&directory) {
                    directories.push(directory);
                }
            }
            loads.directories.insert(path, directories);
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

    /// Layout of the package.
    pub fn layout(&self) -> &Layout<'a> {
        &self.layout
    }

    /// A needed library that the package contains and the loader finds: by the image's run path; by
    /// the DT_RPATH of an image that loads it, unless the image has a DT_RUNPATH; or because an image
    /// that loads it also needs the library (the loader proceeds breadth first, and reuses a library
    /// that is loaded by that name).
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
        let mut directories = self.directories.get(image.member.path.as_str())?.iter();
        directories.find_map(|directory| {
            self.layout
                .files
                .get(join(directory, name).as_str())
                .copied()
        })
    }
}
