//! Tools of distributions strip super-archives: hidden members stay readable, and `refresh` restores the rest. A
//! changed index is found.

use std::fs;
use std::path::Path;
use std::process::Command;

use gpustub_archive::{Error, SuperArchive};
use gpustub_superarchive::{LayerId, Plan, Request, Source, View, ViewId, refresh};
use gpustub_tests::Result;
use gpustub_tests::command::{run, succeed};
use gpustub_tests::scratch::scratch;

use crate::sample::find;

const BINUTILS: [&[&str]; 5] = [
    &["strip", "-g"],
    &["strip", "--strip-unneeded"],
    // As `dh_strip` of debhelper.
    &[
        "strip",
        "--strip-debug",
        "--remove-section=.comment",
        "--remove-section=.note",
        "--enable-deterministic-archives",
    ],
    &["objcopy", "--strip-debug"],
    &["strip", "-U", "-g"],
];
const LLVM: [&[&str]; 2] = [
    &["llvm-strip-19", "-g"],
    &["llvm-objcopy-19", "--strip-debug"],
];

fn compile(dir: &Path, name: &str, text: &str) -> Result<Source> {
    fs::write(dir.join("source.c"), text)?;
    let output = dir.join(name);
    let mut cc = Command::new("cc");
    cc.current_dir(dir)
        .args(["-g", "-O1", "-c", "source.c", "-o"]);
    succeed(cc.arg(&output))?;
    Source::open(&output).map_err(|e| e.to_string().into())
}

fn view(name: &str, layers: &[usize]) -> View {
    View {
        name: name.to_owned(),
        layers: layers.iter().copied().map(LayerId).collect(),
    }
}

/// A super-archive of objects with debug information: `all.a`. The default view shares `shared.o` with the
/// other one.
pub fn write(dir: &Path) -> Result<()> {
    let sources = [
        compile(dir, "own-of-the-default.o", "int own(void) { return 1; }")?,
        compile(dir, "own.o", "int own(void) { return 2; }")?,
        compile(
            dir,
            "shared.o",
            "int shared(void) { return 3; } int more(void) { return 4; }",
        )?,
    ];
    let request = Request {
        layers: sources
            .iter()
            .map(|source| source.layer())
            .collect::<Result<_, _>>()
            .map_err(|e| e.to_string())?,
        views: vec![view("default", &[0, 2]), view("other", &[1, 2])],
        default: Some(ViewId(0)),
    };
    let mut bytes = Vec::new();
    Plan::new(&request)
        .map_err(|e| format!("{e:?}"))?
        .write(&mut bytes)?;
    fs::write(dir.join("all.a"), bytes)?;
    Ok(())
}

/// Whether the members of two symbols of the view `other` can be read: its own and the shared one.
fn readable(bytes: &[u8]) -> Result<[bool; 2], Error> {
    let view = SuperArchive::parse(bytes)?.view("other")?.expect("written");
    let own_member = view.find_symbol("own")?.expect("written");
    let shared = view.find_symbol("shared")?.expect("written");
    Ok([own_member.data().is_ok(), shared.data().is_ok()])
}

pub fn verify(bytes: &[u8]) -> Result<(), Error> {
    SuperArchive::parse(bytes).and_then(|archive| archive.verify())
}

fn strip_and_refresh(tools: &[&[&str]]) -> Result<()> {
    let dir = scratch()?;
    let dir = dir.path();
    for tool in tools {
        write(dir)?;
        let path = dir.join("all.a");
        let before = fs::metadata(&path)?.len();
        succeed(
            Command::new(tool[0])
                .current_dir(dir)
                .args(&tool[1..])
                .arg("all.a"),
        )?;
        let mut bytes = fs::read(&path)?;
        assert!((bytes.len() as u64) < before, "{tool:?}");
        assert_eq!(readable(&bytes), Ok([true, false]), "{tool:?}");
        let verified = verify(&bytes);
        assert!(
            matches!(verified, Err(Error::MemberMoved { .. })),
            "{tool:?}: {verified:?}"
        );

        let changed = refresh(&mut bytes).map_err(|e| format!("{tool:?}: {e}"))?;
        assert_eq!(changed, 2, "{tool:?}");
        assert_eq!(readable(&bytes), Ok([true, true]), "{tool:?}");
        assert_eq!(refresh(&mut bytes), Ok(0), "{tool:?}");
        fs::write(&path, &bytes)?;
        for index in [&["ranlib"][..], &["ar", "s"]] {
            succeed(
                Command::new(index[0])
                    .current_dir(dir)
                    .args(&index[1..])
                    .arg("all.a"),
            )?;
            assert_eq!(verify(&fs::read(&path)?), Ok(()), "{tool:?} {index:?}");
        }
        let main = "int shared(void), own(void); int main(void) { return own() + shared() != 4; }";
        fs::write(dir.join("main.c"), main)?;
        succeed(
            Command::new("cc")
                .current_dir(dir)
                .args(["main.c", "all.a", "-o", "main"]),
        )?;
        assert!(run(&mut Command::new(dir.join("main")))?.status.success());
    }
    Ok(())
}

#[test]
fn refresh_restores_stripped_members() -> Result<()> {
    strip_and_refresh(&BINUTILS)
}

#[test]
#[ignore = "needs llvm: ./tests/run"]
fn refresh_restores_members_that_llvm_stripped() -> Result<()> {
    strip_and_refresh(&LLVM)
}

#[test]
fn refresh_refuses_other_members() -> Result<()> {
    let dir = scratch()?;
    let dir = dir.path();
    fs::write(dir.join("new.o"), "new")?;
    for (command, reason) in [
        (
            &["ar", "d", "all.a", "shared.o"],
            "ordinary member 1 is not that of the default view",
        ),
        (&["ar", "r", "all.a", "new.o"], "ordinary member 2 is not"),
        (
            &["objcopy", "--redefine-sym", "more=less", "all.a"],
            "does not define `more` any more",
        ),
    ] {
        write(dir)?;
        succeed(
            Command::new(command[0])
                .current_dir(dir)
                .args(&command[1..]),
        )?;
        let mut bytes = fs::read(dir.join("all.a"))?;
        let error = refresh(&mut bytes).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
    Ok(())
}

/// `verify` compares the index that ordinary tools search with the default view.
#[test]
fn a_changed_index_is_found() -> Result<()> {
    let dir = scratch()?;
    write(dir.path())?;
    let bytes = fs::read(dir.path().join("all.a"))?;
    assert_eq!(verify(&bytes), Ok(()));
    let names = find(&bytes, b"own\0shared\0more\0").ok_or("an index")?;
    // Another name; a symbol twice, of which one is of a later member; another member; fewer symbols.
    assert_eq!(
        verify(&overwritten(&bytes, names, b"0wn")),
        Err(Error::IndexChanged)
    );
    assert_eq!(
        verify(&overwritten(&bytes, names + 4, b"more\0\0")),
        Err(Error::IndexChanged)
    );
    let offsets = names - 3 * 4;
    let first = &bytes[offsets..offsets + 4];
    let second = &bytes[offsets + 4..offsets + 8];
    assert_eq!(
        verify(&overwritten(&bytes, offsets + 4, first)),
        Err(Error::IndexChanged)
    );
    assert!(verify(&overwritten(&bytes, offsets, second)).is_err());
    let fewer = overwritten(&bytes, names - 16, &2_u32.to_be_bytes());
    // Names follow two offsets.
    let rest = [second, b"own\0shared\0\0\0\0\0\0"].concat();
    let fewer = overwritten(&fewer, offsets + 4, &rest);
    assert_eq!(verify(&fewer), Err(Error::IndexIncomplete { missing: 1 }));
    Ok(())
}

fn overwritten(bytes: &[u8], offset: usize, text: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[offset..offset + text.len()].copy_from_slice(text);
    bytes
}
