//! Files, directories and archives, read as packages. Only here are files touched; of large ones
//! only the pages that hold headers and tables.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use gpustub_object::{Problem, read_image};
use memmap2::Mmap;

use crate::package::{Content, Kind, Member, Package};
use crate::wheel::is_dist_info;

/// Reads what `path` names; messages call it `name`.
pub fn read(path: &Path, name: &str) -> io::Result<Package> {
    let metadata = fs::metadata(path)?;
    let mut package = Package {
        name: name.to_owned(),
        kind: Kind::File,
        size: metadata.len(),
        members: Vec::new(),
    };
    if metadata.is_dir() {
        package.kind = Kind::Directory;
        package.size = 0;
        directory(path, "", &mut package)?;
        package.members.sort_by(|a, b| a.path.cmp(&b.path));
    } else {
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        package.members.push(member(path, file.into_owned())?);
    }
    Ok(package)
}

/// The longest text that rules read.
const TEXT: u64 = 1 << 20;

/// Whether rules read a file of this path as text.
fn is_text(path: &str) -> bool {
    is_dist_info(path, "WHEEL") || is_dist_info(path, "METADATA")
}

fn directory(path: &Path, inside: &str, package: &mut Package) -> io::Result<()> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let name = entry.file_name();
        let inside = match inside {
            "" => name.to_string_lossy().into_owned(),
            folder => format!("{folder}/{}", name.to_string_lossy()),
        };
        let kind = entry.file_type()?;
        // Links are not followed: what they lead to is looked at where it is.
        if kind.is_dir() {
            directory(&entry.path(), &inside, package)?;
        } else if kind.is_file() {
            package.members.push(member(&entry.path(), inside)?);
        }
    }
    Ok(())
}

fn member(path: &Path, inside: String) -> io::Result<Member> {
    let file = File::open(path)?;
    let size = file.metadata()?.len();
    let content = if size == 0 {
        Content::Other
    } else {
        // SAFETY: the map is private and read-only. Should another process shorten the file while
        // it is read, this one gets SIGBUS, as every linker does that maps its inputs; other changes
        // give other bytes, and nothing trusts the bytes.
        let map = unsafe { Mmap::map(&file) }?;
        match is_text(&inside) && size <= TEXT {
            true => match str::from_utf8(&map) {
                Ok(text) => Content::Text(text.to_owned()),
                Err(_) => Content::Other,
            },
            false => content(&map),
        }
    };
    Ok(Member {
        path: inside,
        size,
        content,
    })
}

/// What is in these bytes.
fn content(bytes: &[u8]) -> Content {
    if !bytes.starts_with(b"\x7fELF") {
        return Content::Other;
    }
    match read_image(bytes, &|_| true) {
        Ok(facts) => Content::Image(Box::new(facts)),
        Err(error) => match error.problem() {
            Problem::NoDynamicSymbols(_) => Content::Other,
            problem => Content::Damaged(problem.clone()),
        },
    }
}
