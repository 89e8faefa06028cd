//! Reads the symbol index of an archive of RDC objects.
//!
//! nvcc gives each object a global `__fatbinwrap<id>`, and each device link a global
//! `__cudaRegisterLinkedBinary<id>` for every object in it (the toolkit's `crt/link.stub`).

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Ids of the objects, and of those that a device link in the archive is over.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Modules {
    /// One id per object, sorted.
    pub(crate) objects: Vec<String>,
    /// Not empty: nvlink would skip the whole archive.
    pub(crate) linked: Vec<String>,
}

/// Reason why a file has no readable index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unfit {
    NoArchive,
    /// Contains the names of its objects only.
    Thin,
    NoIndex,
}

/// Limit above any real library: an index this large would have millions of symbols.
const MAX_SIZE: u64 = 64 << 20;

/// Reads the index as written by GNU and LLVM archivers (ar(5), "System V ABI, archive symbol
/// table"; `/SYM64/` has offsets of eight bytes).
pub(crate) fn modules(archive: &Path) -> io::Result<Result<Modules, Unfit>> {
    let mut file = File::open(archive)?;
    let mut magic = Vec::new();
    (&mut file).take(8).read_to_end(&mut magic)?;
    match &magic[..] {
        b"!<arch>\n" => {}
        b"!<thin>\n" => return Ok(Err(Unfit::Thin)),
        _ => return Ok(Err(Unfit::NoArchive)),
    }
    let mut head = [0; 60];
    if file.read_exact(&mut head).is_err() {
        return Ok(Err(Unfit::NoIndex));
    }
    let field = |from, to| {
        std::str::from_utf8(&head[from..to])
            .unwrap_or("")
            .trim_end()
    };
    let wide = match field(0, 16) {
        "/" => 4,
        "/SYM64/" => 8,
        _ => return Ok(Err(Unfit::NoIndex)),
    };
    let Some(size) = field(48, 58).parse().ok().filter(|size| *size <= MAX_SIZE) else {
        return Ok(Err(Unfit::NoIndex));
    };
    let mut index = Vec::new();
    file.take(size).read_to_end(&mut index)?;
    Ok(names(&index, wide).map(index_symbols).ok_or(Unfit::NoIndex))
}

/// Names that follow the count and as many offsets.
fn names(index: &[u8], wide: usize) -> Option<impl Iterator<Item = &str>> {
    let count = index
        .get(..wide)?
        .iter()
        .fold(0, |n: u64, byte| n << 8 | u64::from(*byte));
    let offsets = usize::try_from(count).ok()?.checked_mul(wide)?;
    let text = index.get(wide.checked_add(offsets)?..)?;
    let names = text.split(|byte| *byte == 0);
    Some(names.filter_map(|name| std::str::from_utf8(name).ok()))
}

fn index_symbols<'a>(names: impl Iterator<Item = &'a str>) -> Modules {
    let mut modules = Modules::default();
    for name in names {
        if let Some(id) = name.strip_prefix("__fatbinwrap") {
            modules.objects.push(id.to_owned());
        } else if let Some(id) = name.strip_prefix("__cudaRegisterLinkedBinary") {
            modules.linked.push(id.to_owned());
        }
    }
    modules.objects.sort();
    modules.linked.sort();
    modules
}

/// Ids of the objects that a device link registers, from the source that nvlink writes for it
/// (`--register-link-binaries`), sorted.
pub(crate) fn registered(source: &str) -> Vec<String> {
    let id = |line: &str| {
        let rest = line.trim().strip_prefix("DEFINE_REGISTER_FUNC(")?;
        Some(rest.strip_suffix(')')?.to_owned())
    };
    let mut found: Vec<_> = source.lines().filter_map(id).collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn archive(dir: &Path, assembly: &str) -> std::path::PathBuf {
        let path = |name: &str| dir.join(name);
        std::fs::write(path("a.s"), assembly).unwrap();
        let run = |program: &str, args: &[&str]| {
            let mut command = Command::new(program);
            assert!(
                command
                    .args(args)
                    .current_dir(dir)
                    .status()
                    .unwrap()
                    .success()
            );
        };
        run("cc", &["-c", "a.s", "-o", "a.o"]);
        run("ar", &["crs", "a.a", "a.o"]);
        path("a.a")
    }

    #[test]
    fn ids_are_read_from_the_index() {
        let dir = tempfile::tempdir().unwrap();
        let text = ".data\n.globl __fatbinwrap_2_b, __fatbinwrap_1_a, other\n__fatbinwrap_2_b:\n\
                    __fatbinwrap_1_a:\nother: .byte 0\n.globl __cudaRegisterLinkedBinary_1_a\n\
                    __cudaRegisterLinkedBinary_1_a: .byte 0\n";
        let modules = modules(&archive(dir.path(), text)).unwrap().unwrap();
        assert_eq!(modules.objects, ["_1_a", "_2_b"]);
        assert_eq!(modules.linked, ["_1_a"]);
    }

    #[test]
    fn a_file_without_an_index_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.a");
        for (bytes, why) in [
            (&b""[..], Unfit::NoArchive),
            (b"\x7fELF", Unfit::NoArchive),
            (b"!<thin>\n", Unfit::Thin),
        ] {
            std::fs::write(&path, bytes).unwrap();
            assert_eq!(modules(&path).unwrap(), Err(why), "{bytes:?}");
        }
        for bytes in [
            &b"!<arch>\n"[..],
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
            assert_eq!(modules(&path).unwrap(), Err(Unfit::NoIndex), "{bytes:?}");
        }
    }

    #[test]
    fn registrations_are_read_from_nvlinks_source() {
        let text = "#define NUM_PRELINKED_OBJECTS 2\nDEFINE_REGISTER_FUNC(_2_b)\nDEFINE_REGISTER_FUNC(_1_a)\n";
        assert_eq!(registered(text), ["_1_a", "_2_b"]);
    }
}
