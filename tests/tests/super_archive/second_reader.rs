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

/// Runs the second reader.
fn read_with_python(file: &Path) -> Result<Ran> {
    let program = repository().join("tests/programs/super-archive.py");
    run(Command::new("python3").arg(program).arg(file))
}

/// Expected output of the second reader, except for the line that names the container.
fn read_with_rust(bytes: &[u8]) -> Result<String, gpustub_archive::Error> {
    let archive = SuperArchive::parse(bytes)?;
    archive.verify()?;
    let mut text = String::new();
    let mut line = |line: std::fmt::Arguments<'_>| {
        writeln!(text, "{line}").expect("a string accepts every text");
    };
    let default = archive.default_view()?.map(|view| view.name());
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
            let position = symbol.member.position();
            let member = view.find_symbol(symbol.name)?;
            assert_eq!(member.map(|member| member.position()), Some(position));
            line(format_args!("symbol {} {position}", hex(symbol.name)));
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

fn check_readers_agree(bytes: &[u8], file: &Path, container: &str) -> Result<()> {
    std::fs::write(file, bytes)?;
    let ran = read_with_python(file)?.success()?;
    let text = read_with_rust(bytes).map_err(|e| ran.error(&e.to_string()))?;
    let expected = format!("container {container}\n{text}");
    if ran.stdout == expected {
        Ok(())
    } else {
        Err(ran.error(&format!("the first reader has\n{expected}")))
    }
}

fn member(number: usize, data: &[u8]) -> Input<'_> {
    let name = match number % 5 {
        0 => format!("m{number}.o").into_bytes(),
        1 => format!("a name that is longer than fifteen bytes {number}").into_bytes(),
        2 => [b"slash/\n\xFF", &number.to_le_bytes()[..]].concat(),
        3 => Vec::new(),
        _ => "ä.o".into(),
    };
    let symbols = (0..number % 7).map(|symbol| Definition {
        name: Cow::Owned(format!("_Z{symbol}f{}", number % 100).into_bytes()),
        binding: Binding::Comdat,
    });
    Input {
        name: Cow::Owned(name),
        data,
        symbols: symbols.collect(),
    }
}

/// Many views, one empty, of many members: names long, empty and of arbitrary bytes; contents
/// equal, empty, and of odd lengths.
fn crowd(views: usize, default: Option<usize>) -> Result<Vec<u8>> {
    let contents: Vec<String> = (0..300).map(|length| "x".repeat(length % 97)).collect();
    let request = Request {
        layers: (0..10)
            .map(|layer| {
                let members = (layer * 30..layer * 30 + 30)
                    .map(|number| member(number, contents[number].as_bytes()));
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
                layers: (0..view % 11)
                    .map(|layer| LayerId((view + layer) % 10))
                    .collect(),
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
        check_readers_agree(&Sample::new(default)?.bytes, &file, container)?;
    }
    for (views, default) in [
        (0, None),
        (1, None),
        (1, Some(0)),
        (40, None),
        (40, Some(23)),
    ] {
        check_readers_agree(&crowd(views, default)?, &file, "index")?;
    }
    Ok(())
}

#[test]
#[ignore = "needs clang and lld of several releases, a cross compiler, mold: ./tests/run"]
fn second_reader_agrees_for_all_machines() -> Result<()> {
    let dir = scratch()?;
    for machine in Cases::read()?.machines {
        let sample = Sample::build(Default::Objects, &machine.compiler, &machine.hidden)?;
        check_readers_agree(&sample.bytes, &dir.path().join("lib.a"), "elf")?;
    }
    let bitcode = Sample::new(Default::Bitcode)?;
    check_readers_agree(&bitcode.bytes, &dir.path().join("lib.a"), "bitcode")?;
    Ok(())
}

/// The strict reader rejects every file that `verify` rejects, and not because of unchecked parts.
#[test]
fn second_reader_rejects_the_same_files() -> Result<()> {
    let dir = scratch()?;
    let file = dir.path().join("lib.a");
    let bytes = crowd(12, Some(5))?;
    for offset in (0..bytes.len()).step_by(bytes.len() / 12) {
        let mut changed = bytes.clone();
        changed[offset] ^= 0x10;
        let verified = SuperArchive::parse(&changed).and_then(|archive| archive.verify());
        if verified.is_err() {
            std::fs::write(&file, &changed)?;
            let ran = read_with_python(&file)?;
            if ran.status.success() {
                return Err(ran.error(&format!("the change of byte {offset} is not detected")));
            }
        }
    }
    Ok(())
}
