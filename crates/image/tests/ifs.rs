//! `llvm-ifs` reads the `.ifs` text.

#[path = "support/library.rs"]
mod library;

use std::process::Command;

use gpustub_core::symbols::{Symbol, SymbolKind, SymbolList};
use gpustub_image::{SymbolRequirements, read_symbols_file, to_ifs};
use library::{KINDS, build, run};

#[test]
fn text_of_each_kind() {
    let symbol = |name: &str, kind| Symbol {
        name: name.into(),
        kind,
        ..Symbol::default()
    };
    let list = SymbolList {
        soname: Some("libx.so.1".into()),
        machine: Some("x86_64".into()),
        symbols: vec![
            Symbol {
                size: 8,
                weak: true,
                ..symbol("data", SymbolKind::Object)
            },
            symbol("fast", SymbolKind::Ifunc),
            Symbol {
                version: Some("V1".into()),
                compat: true,
                ..symbol("twice", SymbolKind::NoType)
            },
            Symbol {
                version: Some("V2".into()),
                ..symbol("twice", SymbolKind::Function)
            },
            symbol("type:it's", SymbolKind::NoType),
            Symbol {
                size: 4,
                ..symbol("unit", SymbolKind::Tls)
            },
        ],
        ..SymbolList::default()
    };
    assert_eq!(
        to_ifs(&list),
        "--- !ifs-v1\n\
         IfsVersion:      3.0\n\
         SoName:          libx.so.1\n\
         Target:          { ObjectFormat: ELF, Arch: x86_64, Endianness: little, BitWidth: 64 }\n\
         Symbols:\n\
         \x20 - { Name: data, Type: Object, Size: 8, Weak: true }\n\
         \x20 - { Name: fast, Type: Func }\n\
         \x20 - { Name: twice, Type: Func }\n\
         \x20 - { Name: 'type:it''s', Type: NoType }\n\
         \x20 - { Name: unit, Type: TLS, Size: 4 }\n\
         ...\n"
    );
}

#[test]
#[ignore = "needs llvm-ifs (package llvm)"]
fn llvm_ifs_accepts_the_text() {
    let directory = tempfile::tempdir().unwrap();
    let path = build(
        directory.path(),
        &["cc"],
        KINDS,
        &["-DVERSIONED", "-Wl,-soname,libk.so.1"],
    );
    let list = read_symbols_file(&path, SymbolRequirements::default()).unwrap();
    let text = directory.path().join("library.ifs");
    let stub = directory.path().join("stub.so");
    std::fs::write(&text, to_ifs(&list)).unwrap();

    let tools = ["llvm-ifs".to_owned()]
        .into_iter()
        .chain((14..30).rev().map(|v| format!("llvm-ifs-{v}")));
    let tool = tools
        .into_iter()
        .find(|tool| Command::new(tool).arg("--version").output().is_ok());
    run(Command::new(tool.expect("llvm-ifs is not installed"))
        .arg("--input-format=IFS")
        .arg(format!("--output-elf={}", stub.display()))
        .arg(&text));

    let stub = read_symbols_file(&stub, SymbolRequirements::default()).unwrap();
    assert_eq!((&stub.soname, &stub.machine), (&list.soname, &list.machine));
    let names = |list: &SymbolList| -> Vec<(String, SymbolKind, bool)> {
        let mut names: Vec<_> = (list.symbols.iter())
            .map(|s| (s.name.clone(), s.kind, s.weak))
            .collect();
        names.dedup();
        names
    };
    assert_eq!(names(&stub), names(&list));
}
