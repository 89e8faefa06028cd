//! `tests/programs/super-archive.py`, written from FORMAT.md alone, agrees with the Rust reader.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use gpustub_archive::SuperArchive;
use gpustub_archive::hash::hash_bytes;
use gpustub_superarchive::{
    Binding, Definition, Input, Layer, LayerId, Plan, Request, View, ViewId,
};
use gpustub_tests::command::{Ran, run};
use gpustub_tests::scratch::scratch;
use gpustub_tests::{Result, repository};

use crate::cases::Cases;
use crate::sample::{Default, Sample};

fn second(file: &Path) -> Result<Ran> {
    let program = repository().join("tests/programs/super-archive.py");
    run(Command::new("python3").arg(program).arg(file))
}

/// Expected output of the second reader, except for the line that names the container.
fn first(bytes: &[u8]) -> Result<String, gpustub_archive::Error> {
    let archive = SuperArchive::parse(bytes)?;
    archive.verify()?;
    let mut text = String::new();
    let mut line = |line: std::fmt::Arguments<'_>| {
        writeln!(text, "{line}").expect("a string accepts every text");
    };
    let default = archive.default_view()?;
    let default = default.map(|view| view.name());
    let mut number = 0;
    for (view, index) in archive.views().zip(1..) {
        if Some(view?.name()) == default {
            number = index;
        }
    }
    line(format_args!("default {number}"));
    for contents in archive.contents() {
        let contents = contents?;
        let base = contents.original()?.index();
        let (hidden, variant) = (!contents.in_default_view(), contents.is_variant());
        line(format_args!(
            "contents {} {} {:016x} {} {}",
            contents.index(),
            contents.size(),
            hash_bytes(contents.data()?),
            u8::from(hidden) + 2 * u8::from(variant),
            if variant { base + 1 } else { 0 }
        ));
    }
    for view in archive.views() {
        let view = view?;
        line(format_args!("view {}", hex(view.name())));
        for layer in view.layers() {
            line(format_args!("layer {}", hex(layer?.name)));
        }
        for member in view.members() {
            let member = member?;
            let (contents, name) = (member.contents().index(), hex(member.name()));
            line(format_args!("has {contents} {name} {}", member.layer()));
        }
        let mut symbols = view.symbols().collect::<Result<Vec<_>, _>>()?;
        symbols.sort_by_key(|symbol| symbol.name);
        for symbol in symbols {
            let found = view
                .find_symbol(symbol.name)?
                .map(|member| member.position());
            assert_eq!(found, Some(symbol.member.position()));
            line(format_args!(
                "symbol {} {}",
                hex(symbol.name),
                symbol.member.position()
            ));
        }
    }
    Ok(text)
}

fn hex(bytes: &[u8]) -> String {
    match bytes {
        [] => "-".to_owned(),
        _ => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}

fn same(bytes: &[u8], file: &Path, container: &str) -> Result<()> {
    std::fs::write(file, bytes)?;
    let ran = second(file)?.success()?;
    let first = first(bytes).map_err(|e| ran.error(&e.to_string()))?;
    let expected = format!("container {container}\n{first}");
    if ran.stdout == expected {
        Ok(())
    } else {
        Err(ran.error(&format!("the first reader has\n{expected}")))
    }
}

/// Many views, one empty, of many members: names long, empty and of arbitrary bytes; contents
/// equal, empty, and of odd lengths.
fn crowd(views: usize, default: Option<usize>) -> Result<Vec<u8>> {
    let contents: Vec<String> = (0..300).map(|n| "x".repeat(n % 97)).collect();
    let member = |at: usize| {
        let name = match at % 5 {
            0 => format!("m{at}.o").into_bytes(),
            1 => format!("a name that is longer than fifteen bytes {at}").into_bytes(),
            2 => [b"slash/\n\xFF", &at.to_le_bytes()[..]].concat(),
            3 => Vec::new(),
            _ => "ä.o".into(),
        };
        let symbols = (0..at % 7).map(|number| Definition {
            name: Cow::Owned(format!("_Z{number}f{}", at % 100).into_bytes()),
            binding: Binding::Comdat,
        });
        Input {
            name: Cow::Owned(name),
            data: contents[at].as_bytes(),
            symbols: symbols.collect(),
        }
    };
    let request = Request {
        layers: (0..10)
            .map(|layer| {
                let members = (0..30).map(|at| member(layer * 30 + at));
                Layer::new(format!("layer {layer}"), members.collect())
            })
            .collect(),
        views: (0..views)
            .map(|view| View {
                name: if view == 7 {
                    String::new()
                } else {
                    format!("gfx{view}")
                },
                layers: (0..view % 11).map(|at| LayerId((view + at) % 10)).collect(),
            })
            .collect(),
        default: default.map(ViewId),
    };
    let plan = Plan::new(&request).map_err(|e| format!("{e:?}"))?;
    let mut bytes = Vec::new();
    plan.write(&mut bytes)?;
    Ok(bytes)
}

#[test]
fn second_reader_agrees() -> Result<()> {
    let dir = scratch()?;
    let file = dir.path().join("lib.a");
    for (name, default) in Default::ALL {
        let container = if name == "elf" { "elf" } else { "index" };
        same(&Sample::new(default)?.bytes, &file, container)?;
    }
    for (views, default) in [
        (0, None),
        (1, None),
        (1, Some(0)),
        (40, None),
        (40, Some(23)),
    ] {
        same(&crowd(views, default)?, &file, "index")?;
    }
    Ok(())
}

#[test]
#[ignore = "needs clang and lld of several releases, a cross compiler, mold: ./tests/run"]
fn second_reader_agrees_for_all_machines() -> Result<()> {
    let dir = scratch()?;
    for machine in Cases::read()?.machines {
        let sample = Sample::build(Default::Objects, &machine.compiler, &machine.hidden)?;
        same(&sample.bytes, &dir.path().join("lib.a"), "elf")?;
    }
    let bitcode = Sample::new(Default::Bitcode)?;
    same(&bitcode.bytes, &dir.path().join("lib.a"), "bitcode")?;
    Ok(())
}

/// The strict reader rejects every file that `verify` rejects, and not because of unchecked parts.
#[test]
fn second_reader_rejects_the_same_files() -> Result<()> {
    let dir = scratch()?;
    let file = dir.path().join("lib.a");
    let bytes = crowd(12, Some(5))?;
    let verified = |bytes: &[u8]| SuperArchive::parse(bytes).and_then(|archive| archive.verify());
    for at in (0..bytes.len()).step_by(bytes.len() / 12) {
        let mut changed = bytes.clone();
        changed[at] ^= 0x10;
        if verified(&changed).is_err() {
            std::fs::write(&file, &changed)?;
            let ran = second(&file)?;
            if ran.status.success() {
                return Err(ran.error(&format!("the change of byte {at} is not detected")));
            }
        }
    }
    Ok(())
}
