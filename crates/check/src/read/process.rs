//! Files that are named together, and the libraries that the loader finds for them.

use std::collections::{BTreeSet, VecDeque};
use std::fs::{self, File};
use std::path::{Component, Path, PathBuf};

use gpustub_image::ImageKind;

use super::{LIMITS, PackageReader, ReadOptions};
use crate::gpu_file::{is_system, is_vendor_file};
use crate::package::{ContainerKind, Content, Member, Package};

/// Maximum number of libraries that are added: more than any process has.
const MAX_LIBRARIES: usize = 1000;

/// Images of files that are named together, and the libraries that they find through DT_RUNPATH and
/// DT_RPATH, directly and indirectly. Libraries of vendors and of the system are not read. `None` if no
/// file is an image.
pub fn process(named: Vec<(&Path, Package)>) -> Option<Package> {
    let mut process = Package::new("", ContainerKind::Process);
    // Files by their canonical paths: a library may be named and found.
    let mut files = BTreeSet::new();
    let mut queue = VecDeque::new();
    for (path, package) in named {
        for member in package.members {
            if let Some(image) = SearchedImage::new(path.to_owned(), &member, &[])
                && files.insert(image.file.clone())
            {
                queue.push_back(image);
                process.members.push(Member {
                    path: package.name.clone(),
                    library: None,
                    ..member
                });
            }
        }
    }
    if queue.is_empty() {
        return None;
    }
    let mut library_count = 0;
    while let Some(image) = queue.pop_front() {
        for name in &image.needed {
            let Some(path) = image.find(name) else {
                continue;
            };
            if library_count == MAX_LIBRARIES
                || !files.insert(fs::canonicalize(&path).unwrap_or_else(|_| path.clone()))
            {
                continue;
            }
            library_count += 1;
            let Some(member) = library(&path) else {
                continue;
            };
            queue.extend(SearchedImage::new(path, &member, &image.rpath));
            process.members.push(member);
        }
    }
    process.members.sort_by(|a, b| a.path.cmp(&b.path));
    Some(process)
}

/// Reads a library; `None` if the file cannot be read, or is no image.
fn library(path: &Path) -> Option<Member> {
    let display_path = normalized(path).display().to_string().replace('\\', "/");
    let options = ReadOptions::default();
    let mut reader = PackageReader::new(LIMITS, &options);
    reader
        .named_file(File::open(path).ok()?, path, &display_path)
        .ok()?;
    let member = reader.into_packages().pop()?.members.pop()?;
    Some(Member {
        path: display_path,
        library: None,
        ..member
    })
}

/// An image whose libraries are searched.
struct SearchedImage {
    /// Canonical path.
    file: PathBuf,
    needed: Vec<String>,
    /// Directories that the image's libraries are searched in.
    directories: Vec<PathBuf>,
    /// Directories of the DT_RPATH of the image and of the images that load it, which its libraries inherit.
    rpath: Vec<PathBuf>,
}

impl SearchedImage {
    /// The search of an image at this path, which an image with the DT_RPATH `inherited` loads.
    fn new(path: PathBuf, member: &Member, inherited: &[PathBuf]) -> Option<Self> {
        let Content::Image(facts) = &member.content else {
            return None;
        };
        let link = &facts.link;
        let file = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
        // The kernel resolves symbolic links of a program's path, the loader none of a library's.
        let is_link = fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_symlink());
        let loaded_path = match facts.kind {
            ImageKind::Library => &path,
            _ if is_link => &file,
            _ => &path,
        };
        let origin = loaded_path.parent().unwrap_or(Path::new(""));
        let runpath: Vec<PathBuf> = link
            .runpath
            .iter()
            .flat_map(|runpath| runpath.split(':'))
            .filter_map(|entry| directory(entry, origin))
            .collect();
        let rpath = if link.rpath {
            [&runpath, inherited].concat()
        } else {
            inherited.to_vec()
        };
        // DT_RUNPATH replaces the DT_RPATH of the images that load this one.
        let directories = if link.rpath || link.runpath.is_none() {
            rpath.clone()
        } else {
            runpath
        };
        Some(Self {
            file,
            needed: link.needed.clone(),
            directories,
            rpath,
        })
    }

    /// The file that the loader finds for a needed name.
    fn find(&self, name: &str) -> Option<PathBuf> {
        if name.contains('/') || is_system(name) || is_vendor_file(name) {
            return None;
        }
        self.directories
            .iter()
            .map(|directory| directory.join(name))
            .find(|file| file.is_file())
    }
}

/// The directory of a search path entry; `None` if only the loader can expand it, or if it is relative to the
/// current directory of the process.
fn directory(entry: &str, origin: &Path) -> Option<PathBuf> {
    let relative = ["$ORIGIN", "${ORIGIN}"]
        .iter()
        .find_map(|token| entry.strip_prefix(token));
    let directory = match relative {
        Some("") => origin.to_owned(),
        Some(relative) => origin.join(relative.strip_prefix('/')?),
        None if entry.starts_with('/') => PathBuf::from(entry),
        None => return None,
    };
    (!directory.to_string_lossy().contains('$')).then_some(directory)
}

/// A path without `.` and without `..` after a name, for display.
fn normalized(path: &Path) -> PathBuf {
    let mut normalized = PathBuf::new();
    for component in path.components() {
        let ends_in_name = matches!(
            normalized.components().next_back(),
            Some(Component::Normal(_))
        );
        match component {
            Component::CurDir => {}
            Component::ParentDir if ends_in_name => {
                normalized.pop();
            }
            component => normalized.push(component),
        }
    }
    normalized
}
