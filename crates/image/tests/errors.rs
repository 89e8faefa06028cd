//! Each kind of file that is not the requested library has an error of its own.

#[path = "support/library.rs"]
mod library;

use std::path::Path;
use std::process::Command;

use gpustub_image::{
    Error, Problem, SymbolRequirements, read_link_facts, read_symbols, read_symbols_file,
};
use library::{KINDS, build, run};

fn small() -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let path = build(directory.path(), &["cc"], KINDS, &["-DVERSIONED"]);
    std::fs::read(path).unwrap()
}

fn problem(bytes: &[u8]) -> Problem {
    read_symbols(bytes, SymbolRequirements::default())
        .unwrap_err()
        .problem()
        .clone()
}

#[test]
fn every_truncation_is_an_error() {
    let bytes = small();
    read_symbols(&bytes, SymbolRequirements::default()).unwrap();
    assert_eq!(problem(&[]), Problem::Empty);
    for length in 1..bytes.len() {
        let problem = problem(&bytes[..length]);
        match length {
            1..4 => assert_eq!(problem, Problem::Unknown, "{length}"),
            _ => assert!(
                matches!(problem, Problem::Truncated(_)),
                "{length}: {problem:?}"
            ),
        }
        assert!(
            length < 4 || read_link_facts(&bytes[..length]).is_err(),
            "{length}"
        );
    }
}

#[test]
fn foreign_machine() {
    let mut bytes = small();
    bytes[18..20].copy_from_slice(&243_u16.to_le_bytes()); // e_machine: EM_RISCV
    let options = SymbolRequirements {
        expect_machine: Some("x86_64"),
        ..SymbolRequirements::default()
    };
    let error = read_symbols(&bytes, options).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the file is built for riscv64, not for x86_64"
    );
    let list = read_symbols(&bytes, SymbolRequirements::default()).unwrap();
    assert_eq!(list.machine.as_deref(), Some("riscv64"));
    bytes[18..20].copy_from_slice(&999_u16.to_le_bytes());
    let list = read_symbols(&bytes, SymbolRequirements::default()).unwrap();
    assert_eq!(list.machine.as_deref(), Some("elf-machine-999"));
}

#[test]
fn names_that_the_library_lacks() {
    let bytes = small();
    let require = ["plain", "twize", "retired"].map(String::from);
    let options = SymbolRequirements {
        require: &require,
        ..SymbolRequirements::default()
    };
    let error = read_symbols(&bytes, options).unwrap_err();
    assert_eq!(
        error.problem(),
        &Problem::Missing(vec![("twize".into(), Some("twice".into()))])
    );
    assert_eq!(error.to_string(), "the file does not export `twize`");
    assert!(
        error.help().starts_with("did you mean `twice`?"),
        "{}",
        error.help()
    );

    let many: Vec<String> = (0..20)
        .map(|i| format!("absentFunctionNumber{i}"))
        .collect();
    let options = SymbolRequirements {
        require: &many,
        ..SymbolRequirements::default()
    };
    let error = read_symbols(&bytes, options).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("`absentFunctionNumber7` and 12 more"),
        "{error}"
    );

    let options = SymbolRequirements {
        require: &require[..1],
        ..SymbolRequirements::default()
    };
    read_symbols(&bytes, options).unwrap();
}

#[test]
fn files_that_export_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let source = path("program.c");
    std::fs::write(
        &source,
        "int answer; void _start(void) { for (;;) answer++; }",
    )
    .unwrap();
    run(Command::new("cc")
        .args(["-c", "-o"])
        .arg(path("object.o"))
        .arg(&source));
    let links = ["-nostdlib", "-static", "-no-pie", "-o"];
    run(Command::new("cc")
        .args(links)
        .arg(path("static"))
        .arg(path("object.o")));
    run(Command::new("ar")
        .arg("rcs")
        .arg(path("archive.a"))
        .arg(path("object.o")));

    let read_error =
        |name: &str| read_symbols_file(&path(name), SymbolRequirements::default()).unwrap_err();
    assert_eq!(
        read_error("object.o").problem(),
        &Problem::NoDynamicSymbols("an object file")
    );
    assert_eq!(
        read_error("static").problem(),
        &Problem::NoDynamicSymbols("a static program")
    );
    assert_eq!(read_error("archive.a").problem(), &Problem::Archive);
    assert!(matches!(
        read_error("absent.so").problem(),
        Problem::Unreadable(_)
    ));
    assert!(
        matches!(read_error("").problem(), Problem::Unreadable(_)),
        "a directory"
    );
    // Opening it would wait for a writer.
    run(Command::new("mkfifo").arg(path("pipe")));
    assert!(matches!(
        read_error("pipe").problem(),
        Problem::Unreadable(_)
    ));

    let facts = read_link_facts(&std::fs::read(path("static")).unwrap()).unwrap();
    assert_eq!((facts.needed, facts.soname), (Vec::new(), None));
}

#[test]
fn messages_name_the_file_and_the_next_step() {
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("libq.so");
    std::fs::write(&script, "/* GNU ld script */\nINPUT ( libq.so.3 -lm )\n").unwrap();
    let error: Error = read_symbols_file(&script, SymbolRequirements::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("`{}` is a linker script, not a library", script.display())
    );
    assert_eq!(
        error.help(),
        "give the file that the script names: `libq.so.3`"
    );
    let diagnostic = error.diagnostic();
    assert_eq!(diagnostic.code.id, "malformed-library");
    assert_eq!(diagnostic.help.as_deref(), Some(error.help().as_str()));

    let absent = read_symbols_file(Path::new("/no/such/file.so"), SymbolRequirements::default());
    assert_eq!(absent.unwrap_err().diagnostic().code.id, "io-error");
}
