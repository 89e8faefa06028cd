//! Reads the symbol index of an archive of RDC objects.
//!
//! nvcc gives each object a global `__fatbinwrap<id>`, and each device link a global
//! `__cudaRegisterLinkedBinary<id>` for every object in it (the toolkit's `crt/link.stub`).

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Ids of the objects, and of those that a device link in the archive is over.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ObjectIds {
    /// One id per object, sorted.
    pub(crate) objects: Vec<String>,
    /// Not empty: nvlink would skip the whole archive.
    pub(crate) linked: Vec<String>,
}

/// Reason why a file has no readable index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IndexError {
    NoArchive,
    /// Contains the names of its objects only.
    Thin,
    /// Has no members.
    Empty,
    NoIndex,
}

/// Limit above any real library: an index this large would have millions of symbols.
const MAX_SIZE: u64 = 64 << 20;

/// Ids in the index of an archive.
pub(crate) fn object_ids(archive: &Path) -> io::Result<Result<ObjectIds, IndexError>> {
    Ok(names(archive)?.map(|names| ids(&names)))
}

/// Reads the names of the index as written by GNU and LLVM archivers (ar(5), "System V ABI, archive symbol
/// table"; `/SYM64/` has offsets of eight bytes).
pub(super) fn names(archive: &Path) -> io::Result<Result<Vec<String>, IndexError>> {
    let mut file = File::open(archive)?;
    let mut magic = Vec::new();
    (&mut file).take(8).read_to_end(&mut magic)?;
    match &magic[..] {
        b"!<arch>\n" => {}
        b"!<thin>\n" => return Ok(Err(IndexError::Thin)),
        _ => return Ok(Err(IndexError::NoArchive)),
    }
    let mut header = Vec::new();
    (&mut file).take(60).read_to_end(&mut header)?;
    if header.is_empty() {
        return Ok(Err(IndexError::Empty));
    }
    if header.len() < 60 {
        return Ok(Err(IndexError::NoIndex));
    }
    let word_size = match field(&header[..16]) {
        "/" => 4,
        "/SYM64/" => 8,
        _ => return Ok(Err(IndexError::NoIndex)),
    };
    let size = field(&header[48..58]).parse().ok();
    let Some(size) = size.filter(|size| *size <= MAX_SIZE) else {
        return Ok(Err(IndexError::NoIndex));
    };
    let mut index = Vec::new();
    file.take(size).read_to_end(&mut index)?;
    Ok(parse_index(&index, word_size).ok_or(IndexError::NoIndex))
}

/// Text of a field in a member's header.
fn field(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or("").trim_end()
}

/// Reads the names that follow the count and as many offsets.
fn parse_index(index: &[u8], word_size: usize) -> Option<Vec<String>> {
    let count = index
        .get(..word_size)?
        .iter()
        .fold(0, |count: u64, byte| count << 8 | u64::from(*byte));
    let offsets_size = usize::try_from(count).ok()?.checked_mul(word_size)?;
    let names = index.get(word_size.checked_add(offsets_size)?..)?;
    let names = names.split(|byte| *byte == 0);
    Some(
        names
            .filter_map(|name| std::str::from_utf8(name).ok())
            .map(str::to_owned)
            .collect(),
    )
}

fn ids(names: &[String]) -> ObjectIds {
    let mut ids = ObjectIds::default();
    for name in names {
        if let Some(id) = name.strip_prefix("__fatbinwrap") {
            ids.objects.push(id.to_owned());
        } else if let Some(id) = name.strip_prefix("__cudaRegisterLinkedBinary") {
            ids.linked.push(id.to_owned());
        }
    }
    ids.objects.sort();
    ids.linked.sort();
    ids
}

/// Passes name and contents of the members of an archive to `visit`, in their order, until it returns false. Reads
/// `max_size` bytes at most. Another file, and a thin archive, has none.
pub(super) fn visit_members(
    archive: &Path,
    max_size: u64,
    visit: &mut dyn FnMut(&str, &[u8]) -> bool,
) -> io::Result<()> {
    let mut file = File::open(archive)?.take(max_size);
    let mut magic = Vec::new();
    (&mut file).take(8).read_to_end(&mut magic)?;
    if magic != b"!<arch>\n" {
        return Ok(());
    }
    let mut header = [0; 60];
    let mut member = Vec::new();
    while file.read_exact(&mut header).is_ok() {
        let [name, size] = [&header[..16], &header[48..58]].map(field);
        let Ok(size) = size.parse::<u64>() else { break };
        member.clear();
        (&mut file).take(size).read_to_end(&mut member)?;
        if member.len() as u64 != size && file.limit() > 0 {
            let name = name.trim_end_matches('/');
            let message = format!("the archive ends in its member {name}");
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, message));
        }
        if !visit(name.trim_end_matches('/'), &member) {
            break;
        }
        // Members begin at even offsets.
        (&mut file).take(size % 2).read_to_end(&mut member)?;
    }
    Ok(())
}

/// Ids of the objects that a device link registers, from the source that nvlink writes for it
/// (`--register-link-binaries`), sorted.
pub(crate) fn registered(source: &str) -> Vec<String> {
    let mut ids: Vec<_> = source
        .lines()
        .filter_map(|line| {
            let rest = line.trim().strip_prefix("DEFINE_REGISTER_FUNC(")?;
            Some(rest.strip_suffix(')')?.to_owned())
        })
        .collect();
    ids.sort();
    ids
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn archive(dir: &Path, assembly: &str) -> std::path::PathBuf {
        std::fs::write(dir.join("a.s"), assembly).unwrap();
        for command in [
            &["cc", "-c", "a.s", "-o", "a.o"][..],
            &["ar", "crs", "a.a", "a.o"],
        ] {
            let status = Command::new(command[0])
                .args(&command[1..])
                .current_dir(dir)
                .status()
                .unwrap();
            assert!(status.success(), "{command:?}");
        }
        dir.join("a.a")
    }

    #[test]
    fn ids_are_read_from_the_index() {
        let dir = tempfile::tempdir().unwrap();
        let text = ".data\n.globl __fatbinwrap_2_b, __fatbinwrap_1_a, other\n__fatbinwrap_2_b:\n\
                    __fatbinwrap_1_a:\nother: .byte 0\n.globl __cudaRegisterLinkedBinary_1_a\n\
                    __cudaRegisterLinkedBinary_1_a: .byte 0\n";
        let ids = object_ids(&archive(dir.path(), text)).unwrap().unwrap();
        assert_eq!(ids.objects, ["_1_a", "_2_b"]);
        assert_eq!(ids.linked, ["_1_a"]);
    }

    #[test]
    fn a_file_without_an_index_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.a");
        for (bytes, error) in [
            (&b""[..], IndexError::NoArchive),
            (b"\x7fELF", IndexError::NoArchive),
            (b"!<thin>\n", IndexError::Thin),
            (b"!<arch>\n", IndexError::Empty),
        ] {
            std::fs::write(&path, bytes).unwrap();
            assert_eq!(object_ids(&path).unwrap(), Err(error), "{bytes:?}");
        }
        for bytes in [
            &b"!<arch>\nx"[..],
            &[
                b"!<arch>\n".as_slice(),
                b"/               0           0     0     0       999999999999`\n",
            ]
            .concat(),
            &[
                b"!<arch>\n".as_slice(),
                b"/               0           0     0     0       8         `\n\xff\xff\xff\xff",
            ]
            .concat(),
            &[
                b"!<arch>\n".as_slice(),
                b"a.o/            0           0     0     0       8         `\nabcdefgh",
            ]
            .concat(),
        ] {
            std::fs::write(&path, bytes).unwrap();
            let error = IndexError::NoIndex;
            assert_eq!(object_ids(&path).unwrap(), Err(error), "{bytes:?}");
        }
    }

    #[test]
    fn registrations_are_read_from_nvlinks_source() {
        let text = "#define NUM_PRELINKED_OBJECTS 2\nDEFINE_REGISTER_FUNC(_2_b)\nDEFINE_REGISTER_FUNC(_1_a)\n";
        assert_eq!(registered(text), ["_1_a", "_2_b"]);
    }
}
