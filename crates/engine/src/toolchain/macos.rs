//! Static libraries for macOS: constant answers, which need no C compiler, and no archiver. GNU ar writes no index of
//! Mach-O objects, without which linkers of macOS reject an archive, even an empty one.

use std::fs;
use std::path::Path;

use super::{OBJECTS, Toolchain};
use crate::error::Error;
use crate::files;

/// Size of a member's header (`struct ar_hdr`, ar(5)).
const HEADER: usize = 60;

/// Members start at multiples of the objects' alignment.
const ALIGNMENT: usize = 8;

/// Prefix of the lines in `stubs.s` that begin a function.
const FUNCTION: &str = " gpustub_function ";

impl Toolchain {
    /// Assembles the stubs in `dir` and writes the archive `library`.
    pub(super) fn constant_library(&self, dir: &Path, library: &Path) -> Result<(), Error> {
        let [object, ..] = OBJECTS;
        self.assemble(dir, "stubs.rs", object)?;
        let source = dir.join("stubs.s");
        let text = fs::read_to_string(&source).map_err(|e| Error::io("read", &source, &e))?;
        let names = text.lines().filter_map(|line| line.strip_prefix(FUNCTION));
        let symbols: Vec<String> = names.map(|name| format!("_{name}")).collect();
        let bytes = archive(object, &read(&dir.join(object))?, &symbols);
        let new = files::sibling(library);
        fs::write(&new, bytes).map_err(|e| Error::io("write", &new, &e))?;
        files::rename(&new, library)
    }

    /// Bytes of an archive without functions.
    pub(super) fn assembled_stand_in(&self, dir: &Path) -> Result<Vec<u8>, Error> {
        let object = "gpustub_stand_in.o";
        self.assemble(dir, "stand_in.rs", object)?;
        let symbols = ["_gpustub1_stand_in".to_owned()];
        Ok(archive(object, &read(&dir.join(object))?, &symbols))
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    fs::read(path).map_err(|e| Error::io("read", path, &e))
}

/// An archive in BSD's form of one object, which defines these symbols: a member `__.SYMDEF` with pairs of the offsets of
/// a name and of the member (`struct ranlib`, mach-o/ranlib.h), then the object.
fn archive(object: &str, bytes: &[u8], symbols: &[String]) -> Vec<u8> {
    let mut names = Vec::new();
    let mut starts = Vec::new();
    for symbol in symbols {
        starts.push(names.len());
        names.extend_from_slice(symbol.as_bytes());
        names.push(0);
    }
    names.resize(names.len().next_multiple_of(ALIGNMENT), 0);
    let pairs_size = 8 * symbols.len();
    let index_size = 4 + pairs_size + 4 + names.len();
    let mut archive = b"!<arch>\n".to_vec();
    add_header(&mut archive, "__.SYMDEF", index_size);
    let member = (archive.len() + index_size).next_multiple_of(ALIGNMENT);
    archive.extend(word(pairs_size));
    for start in starts {
        archive.extend(word(start));
        archive.extend(word(member));
    }
    archive.extend(word(names.len()));
    archive.extend(names);
    archive.resize(member, b'\n');
    add_header(&mut archive, object, bytes.len());
    archive.extend_from_slice(bytes);
    archive.resize(archive.len().next_multiple_of(ALIGNMENT), b'\n');
    archive
}

/// Header of a member: its name, which is a part of its content, times and owners of 0, and a size.
fn add_header(archive: &mut Vec<u8>, name: &str, size: usize) {
    let start = archive.len() + HEADER;
    let end = (start + name.len() + 1).next_multiple_of(ALIGNMENT);
    let name_size = end - start;
    let padded = size.next_multiple_of(ALIGNMENT);
    let header = format!(
        "{:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n",
        format!("#1/{name_size}"),
        0,
        0,
        0,
        "100644",
        name_size + padded,
    );
    archive.extend_from_slice(header.as_bytes());
    archive.extend_from_slice(name.as_bytes());
    archive.resize(end, 0);
}

/// A number of 32 bits: no object has 4 GiB.
fn word(number: usize) -> [u8; 4] {
    u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes()
}
