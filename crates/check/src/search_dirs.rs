//! Resolves run path entries of an image to directories of its package.

use std::collections::{BTreeMap, BTreeSet};

use crate::package::{Member, Package, PackageImage};

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
pub struct InstalledLayout<'a> {
    files: BTreeMap<&'a str, &'a Member>,
    directories: BTreeSet<&'a str>,
    /// Directories with files of the package: not only directories, nor the `__init__.py` of a
    /// directory that packages share.
    owned: BTreeSet<&'a str>,
}

impl<'a> InstalledLayout<'a> {
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
    match path.split_once('/') {
        Some((top, rest)) if top.ends_with(".data") => ["platlib/", "purelib/"]
            .iter()
            .find_map(|scheme| rest.strip_prefix(scheme))
            .unwrap_or(path),
        _ => path,
    }
}

/// Path of a file in a directory, which may be the root.
pub fn join(directory: &str, name: &str) -> String {
    match directory {
        "" => name.to_owned(),
        directory => format!("{directory}/{name}"),
    }
}

/// Resolves an entry of an image's run path.
pub fn resolve_entry(image: &PackageImage<'_>, entry: &str) -> SearchDir {
    let Some(rest) = ["$ORIGIN", "${ORIGIN}"]
        .iter()
        .find_map(|token| entry.strip_prefix(token))
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
    let mut directory: Vec<&str> = installed(&image.member.path).split('/').collect();
    directory.pop();
    for component in rest.split('/') {
        match component {
            "" | "." => {}
            ".." if directory.pop().is_none() => return SearchDir::Outside,
            ".." => {}
            name => directory.push(name),
        }
    }
    SearchDir::Inside(directory.join("/"))
}

/// Libraries of a package that its images load, directly or because another image loaded them first.
pub struct LoadedLibraries<'a> {
    layout: InstalledLayout<'a>,
    /// Directories of the package in the run path of each image.
    directories: BTreeMap<&'a str, Vec<String>>,
    /// Pairs of an image and a name that it needs.
    needs: BTreeSet<(&'a str, &'a str)>,
    /// Images that load each library.
    loaders: BTreeMap<&'a str, BTreeMap<&'a str, PackageImage<'a>>>,
}

/// Maximum number of images, directly or indirectly loading a library, that are examined.
const MAX_LOADERS: usize = 64;
/// Maximum number of directories of a run path that are searched.
const MAX_DIRECTORIES: usize = 64;
/// Maximum number of rounds that follow libraries found through their loaders' DT_RPATH.
const MAX_ROUNDS: usize = 8;

impl<'a> LoadedLibraries<'a> {
    /// Libraries that the images of a package load.
    pub fn from_package(package: &'a Package) -> Self {
        let mut libraries = Self {
            layout: InstalledLayout::from_package(package),
            directories: BTreeMap::new(),
            needs: BTreeSet::new(),
            loaders: BTreeMap::new(),
        };
        for image in package.images() {
            let path = image.member.path.as_str();
            let directories = directories_in_runpath(&libraries.layout, &image);
            libraries.directories.insert(path, directories);
            libraries
                .needs
                .extend(image.needed().iter().map(|name| (path, name.as_str())));
        }
        for _ in 0..MAX_ROUNDS {
            if !libraries.add_loaders(package) {
                break;
            }
        }
        libraries
    }

    /// Adds the loaders of the libraries that are found with the loaders known so far. Returns whether there
    /// are new ones.
    fn add_loaders(&mut self, package: &'a Package) -> bool {
        let mut has_new = false;
        for image in package.images() {
            for name in image.needed() {
                if let Some(member) = self.find(&image, name) {
                    let loaders = self.loaders.entry(&member.path).or_default();
                    has_new |= loaders.insert(&image.member.path, image).is_none();
                }
            }
        }
        has_new
    }

    /// Layout of the package.
    pub fn layout(&self) -> &InstalledLayout<'a> {
        &self.layout
    }

    /// A needed library that the package contains and the loader finds: by the image's run path; by
    /// the DT_RPATH of an image that loads it, unless the image has a DT_RUNPATH; or because an image
    /// that loads it also needs the library (the loader proceeds breadth first, and reuses a library
    /// that is loaded by that name).
    pub fn find(&self, image: &PackageImage<'a>, name: &str) -> Option<&'a Member> {
        if let Some(member) = self.in_path_of(image, name) {
            return Some(member);
        }
        let link = &image.facts.link;
        let inherits = link.rpath || link.runpath.is_none();
        let mut visited = BTreeSet::from([image.member.path.as_str()]);
        let mut queue = vec![image.member.path.as_str()];
        while let Some(path) = queue.pop() {
            for (path, loader) in self.loaders.get(path).into_iter().flatten() {
                if visited.len() > MAX_LOADERS || !visited.insert(path) {
                    continue;
                }
                let needs_library = self.needs.contains(&(path, name));
                if (needs_library || (inherits && loader.facts.link.rpath))
                    && let Some(member) = self.in_path_of(loader, name)
                {
                    return Some(member);
                }
                queue.push(path);
            }
        }
        None
    }

    fn in_path_of(&self, image: &PackageImage<'_>, name: &str) -> Option<&'a Member> {
        self.directories
            .get(image.member.path.as_str())?
            .iter()
            .find_map(|directory| {
                self.layout
                    .files
                    .get(join(directory, name).as_str())
                    .copied()
            })
    }
}

/// Directories of the package in the run path of an image.
fn directories_in_runpath(layout: &InstalledLayout<'_>, image: &PackageImage<'_>) -> Vec<String> {
    let mut directories: Vec<String> = Vec::new();
    for entry in image.runpath() {
        if let SearchDir::Inside(directory) = resolve_entry(image, entry)
            && layout.has_directory(&directory)
            && directories.len() < MAX_DIRECTORIES
            && !directories.contains(&directory)
        {
            directories.push(directory);
        }
    }
    directories
}
