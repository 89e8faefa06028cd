//! Files that are named together, and the libraries that the loader finds for them.

use std::collections::{BTreeSet, VecDeque};
use std::fs::{self, File};
use std::path::{Component, Path, PathBuf};

use gpustub_image::ImageKind;

use super::{LIMITS, Reader};
use crate::gpu_file::{is_system, is_vendor_file};
use crate::package::{Content, Kind, Member, Package};

/// Maximum number of libraries that are added: more than any process has.
const MAX_LIBRARIES: usize = 1000;

/// Images of files that are named together, and the libraries that they find through DT_RUNPATH and
/// DT_RPATH, directly and indirectly. Libraries of vendors and of the system are not read. `None` if no
/// file is an image.
pub fn process(named: Vec<(&Path, Package)>) -> Option<Package> {
    let mut process = Package::new("", Kind::Process);
    // Files by their canonical paths: a library may be named and found.
    let mut seen = BTreeSet::new();
    let mut open = VecDeque::new();
    for (path, package) in named {
        let name = package.name.clone();
        for member in package.members {
            if let Some(found) = Found::new(path.to_owned(), &member, &[])
                && seen.insert(found.file.clone())
            {
                open.push_back(found);
                let path = name.clone();
                process.members.push(Member {
                    path,
                    library: None,
                    ..member
                });
            }
        }
    }
    if open.is_empty() {
        return None;
    }
    let mut left = MAX_LIBRARIES;
    while let Some(image) = open.pop_front() {
        for name in &image.needed {
            let Some(path) = image.find(name) else {
                continue;
            };
            if left == 0 || !seen.insert(fs::canonicalize(&path).unwrap_or_else(|_| path.clone())) {
                continue;
            }
            left -= 1;
            let Some(member) = library(&path) else {
                continue;
            };
            open.extend(Found::new(path, &member, &image.rpath));
            process.members.push(member);
        }
    }
    process.members.sort_by(|a, b| a.path.cmp(&b.path));
    Some(process)
}

/// Reads a library; `None` if the file cannot be read, or is no image.
fn library(path: &Path) -> Option<Member> {
    let shown = normal(path).display().to_string().replace('\\', "/");
    let mut reader = Reader::new(LIMITS);
    reader.named(File::open(path).ok()?, path, &shown).ok()?;
    let mut packages = reader.packages();
    let member = packages.pop()?.members.pop()?;
    Some(Member {
        path: shown,
        library: None,
        ..member
    })
}

/// An image whose libraries are searched.
struct Found {
    /// Canonical path.
    file: PathBuf,
    needed: Vec<String>,
    /// Directories that the image's libraries are searched in.
    directories: Vec<PathBuf>,
    /// Directories of the DT_RPATH of the image and of the images that load it, which its libraries inherit.
    rpath: Vec<PathBuf>,
}

impl Found {
    /// The search of an image at this path, which an image with the DT_RPATH `inherited` loads.
    fn new(path: PathBuf, member: &Member, inherited: &[PathBuf]) -> Option<Self> {
        let Content::Image(facts) = &member.content else {
            return None;
        };
        let link = &facts.link;
        let file = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
        // The kernel resolves symbolic links of a program's path, the loader none of a library's.
        let is_link = fs::symlink_metadata(&path).is_ok_and(|data| data.is_symlink());
        let origin = match facts.kind {
            ImageKind::Library => &path,
            _ if is_link => &file,
            _ => &path,
        };
        let origin = origin.parent().unwrap_or(Path::new(""));
        let entries = link.runpath.iter().flat_map(|path| path.split(':'));
        let own: Vec<PathBuf> = entries
            .filter_map(|entry| directory(entry, origin))
            .collect();
        let (mut directories, mut rpath) = (own.clone(), inherited.to_vec());
        if link.rpath {
            rpath = [&own, inherited].concat();
        }
        // DT_RUNPATH replaces the DT_RPATH of the images that load this one.
        if link.rpath || link.runpath.is_none() {
            directories = rpath.clone();
        }
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
        let mut files = self
            .directories
            .iter()
            .map(|directory| directory.join(name));
        files.find(|file| file.is_file())
    }
}

/// The directory of a search path entry; `None` if only the loader can expand it, or if it is relative to the
/// current directory of the process.
fn directory(entry: &str, origin: &Path) -> Option<PathBuf> {
    let rest = ["$ORIGIN", "${ORIGIN}"]
        .iter()
        .find_map(|token| entry.strip_prefix(token));
    let directory = match rest {
        Some("") => origin.to_owned(),
        Some(rest) => origin.join(rest.strip_prefix('/')?),
        None if entry.starts_with('/') => PathBuf::from(entry),
        None => return None,
    };
    (!directory.to_string_lossy().contains('$')).then_some(directory)
}

/// A path without `.` and without `..` after a name, for display.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        let ends_in_name = matches!(normal.components().next_back(), Some(Component::Normal(_)));
        match part {
            Component::CurDir => {}
            Component::ParentDir if ends_in_name => {
                normal.pop();
            }
            part => normal.push(part),
        }
    }
    normal
}
