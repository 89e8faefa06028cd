//! Compares the symbols and link facts that this crate reads with those of binutils.

#[path = "support/library.rs"]
mod library;

use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_core::symbols::SymbolList;
use gpustub_image::{SymbolRequirements, read_link_facts_file, read_symbols, read_symbols_file};
use library::{KINDS, build, lines, nm_names, readelf_lines, run};

fn read(path: &Path) -> SymbolList {
    read_symbols_file(path, SymbolRequirements::default()).unwrap_or_else(|e| panic!("{e}"))
}

/// Path of a library that every C compiler's system has.
fn system(name: &str) -> PathBuf {
    let output = run(Command::new("cc").arg(format!("-print-file-name={name}")));
    let path = PathBuf::from(output.trim_end());
    assert!(
        path.is_absolute(),
        "the C compiler does not know where {name} is"
    );
    path
}

#[test]
fn system_libraries_as_in_readelf_and_nm() {
    for name in ["libc.so.6", "libm.so.6", "libgcc_s.so.1", "libstdc++.so.6"] {
        let path = system(name);
        let list = read(&path);
        assert!(list.symbols.len() > 100, "{name}: {}", list.symbols.len());
        assert_eq!(list.soname.as_deref(), Some(name));
        assert_eq!(lines(&list), readelf_lines(&path), "{name}");

        let mut names: Vec<String> = (list.symbols.iter())
            .map(|s| match (&s.version, s.compat) {
                (None, _) => s.name.clone(),
                (Some(node), true) => format!("{}@{node}", s.name),
                (Some(node), false) => format!("{}@@{node}", s.name),
            })
            .collect();
        names.sort();
        assert_eq!(names, nm_names(&path), "{name}");
    }
}

#[test]
fn needed_libraries_and_versions_as_in_readelf() {
    for name in ["libc.so.6", "libm.so.6", "libgcc_s.so.1", "libstdc++.so.6"] {
        let path = system(name);
        let facts = read_link_facts_file(&path).unwrap();
        let text = run(Command::new("readelf").args(["-d", "-V", "-W"]).arg(&path));
        let bracketed = |tag: &str| -> Vec<String> {
            (text.lines())
                .filter(|row| row.contains(tag))
                .map(|row| row[row.find('[').unwrap() + 1..row.rfind(']').unwrap()].to_owned())
                .collect()
        };
        assert_eq!(facts.needed, bracketed("(NEEDED)"), "{name}");
        assert_eq!(facts.soname.as_slice(), bracketed("(SONAME)"), "{name}");
        let mut needs: Vec<(String, Vec<String>)> = Vec::new();
        for row in text.lines() {
            let field = |label: &str| {
                let (_, rest) = row.split_once(label)?;
                Some(rest.split_whitespace().next()?.to_owned())
            };
            // Two kinds of rows, of requirements only: `Version: 1  File: libc.so.6  Cnt: 2`, and
            // `Name: GLIBC_2.3  Flags: none  Version: 7`.
            match (field("File: "), field("Name: "), field("Version: ")) {
                (Some(file), ..) => needs.push((file, Vec::new())),
                (None, Some(node), Some(_)) => needs.last_mut().unwrap().1.push(node),
                _ => {}
            }
        }
        let verneed: Vec<_> = facts
            .verneed
            .into_iter()
            .map(|need| (need.file, need.nodes))
            .collect();
        assert_eq!(verneed, needs, "{name}");
    }
}

#[test]
fn every_kind_in_every_shape_as_in_readelf() {
    for flags in [
        &["-Wl,-soname,libkinds.so.1"][..],
        &["-DVERSIONED", "-DIFUNC", "-Wl,-soname,libkinds.so.1"],
        &["-DVERSIONED", "-Wl,--hash-style=sysv"],
        &["-DVERSIONED", "-Wl,--hash-style=gnu"],
        &["-Wl,--hash-style=both"],
    ] {
        let directory = tempfile::tempdir().unwrap();
        let path = build(directory.path(), &["cc"], KINDS, flags);
        let list = read(&path);
        assert_eq!(lines(&list), readelf_lines(&path), "{flags:?}");
        let soname = flags
            .iter()
            .find_map(|flag| flag.strip_prefix("-Wl,-soname,"));
        assert_eq!(list.soname.as_deref(), soname, "{flags:?}");
    }
}

/// Copies of the C library's data, which have versions that the executable requires.
#[test]
fn executables_as_in_readelf() {
    let source = "#include <stdio.h>\n#include <unistd.h>\n\
        int entry(void) { return fputs(*environ, stdout); }\n\
        int main(void) { return entry(); }\n";
    for flags in [&["-fpie", "-pie"], &["-fno-pie", "-no-pie"]] {
        let directory = tempfile::tempdir().unwrap();
        let c = directory.path().join("program.c");
        let program = directory.path().join("program");
        std::fs::write(&c, source).unwrap();
        let mut cc = Command::new("cc");
        cc.args(["-rdynamic", "-D_GNU_SOURCE", "-o"]);
        run(cc.arg(&program).arg(&c).args(flags));

        let relocations = run(Command::new("readelf").args(["-r", "-W"]).arg(&program));
        for copy in ["stdout@GLIBC", "environ@GLIBC"] {
            let is_copied = |row: &str| row.contains("_COPY") && row.contains(copy);
            assert!(relocations.lines().any(is_copied), "{copy}: {relocations}");
        }
        let list = read(&program);
        assert_eq!(lines(&list), readelf_lines(&program), "{flags:?}");
        assert!(list.symbols.iter().any(|symbol| symbol.name == "entry"));
    }
}

/// GNU ld writes a hash table from which the number of symbols cannot be read.
#[test]
fn imports_of_libraries_without_exports_are_read() {
    let directory = tempfile::tempdir().unwrap();
    let c = directory.path().join("library.c");
    let source = "int cuInit(unsigned);\n\
        __attribute__((constructor)) static void start(void) { cuInit(0); }\n";
    std::fs::write(&c, source).unwrap();
    for style in ["gnu", "sysv", "both"] {
        let library = directory.path().join(style);
        let mut cc = Command::new("cc");
        cc.args(["-shared", "-fPIC", "-nostdlib", "-fuse-ld=bfd", "-o"]);
        run(cc
            .arg(&library)
            .arg(&c)
            .arg(format!("-Wl,--hash-style={style}")));
        let facts = gpustub_image::read_image_file(&library, &|_, _| true).unwrap();
        let imports = Vec::from_iter(facts.imports.iter().map(|import| &import.name));
        assert_eq!(imports, ["cuInit"], "{style}");
    }
}

#[test]
fn kinds_are_distinguished() {
    let directory = tempfile::tempdir().unwrap();
    let path = build(
        directory.path(),
        &["cc"],
        KINDS,
        &["-DVERSIONED", "-DIFUNC"],
    );
    let lines = lines(&read(&path));
    for line in [
        "plain@@V1 Function",
        "weak_function@@V1 Function weak",
        "weak_data@@V1 Object weak 4",
        "data@@V2 Object 28",
        "per_thread@@V2 Tls 4",
        "twice@V1 Function",
        "twice@@V2 Function",
        "retired@V1 Function",
        "guarded Function",
        "shared_block Object 4",
        "picked Ifunc",
        "untyped NoType",
    ] {
        assert!(lines.iter().any(|l| l == line), "no `{line}` in {lines:#?}");
    }
    for name in ["V1", "V2", "hidden", "local", "pick"] {
        let line = (lines.iter()).find(|line| line.split(['@', ' ']).next() == Some(name));
        assert_eq!(line, None);
    }
}

#[test]
fn section_headers_are_not_needed() {
    for flags in [
        &["-DVERSIONED", "-Wl,--hash-style=sysv"],
        &["-DVERSIONED", "-Wl,--hash-style=gnu"],
    ] {
        let directory = tempfile::tempdir().unwrap();
        let path = build(directory.path(), &["cc"], KINDS, flags);
        let mut bytes = std::fs::read(&path).unwrap();
        let list = read_symbols(&bytes, SymbolRequirements::default()).unwrap();
        // ELF64 header: e_shoff at 40, e_shnum at 60, e_shstrndx at 62 (gABI, "ELF Header").
        bytes[40..48].fill(0);
        bytes[60..64].fill(0);
        assert_eq!(
            read_symbols(&bytes, SymbolRequirements::default()).unwrap(),
            list,
            "{flags:?}"
        );
    }
}

#[test]
#[ignore = "needs clang and lld (packages clang, lld)"]
fn other_machines_as_in_readelf() {
    for (triple, machine) in [
        ("aarch64-linux-gnu", "aarch64"),
        ("arm-linux-gnueabihf", "arm"),
        ("i386-linux-gnu", "x86"),
        ("powerpc-linux-gnu", "powerpc"),
        ("powerpc64le-linux-gnu", "powerpc64le"),
        ("riscv64-linux-gnu", "riscv64"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let target = format!("--target={triple}");
        let compiler = ["clang", &target, "-fuse-ld=lld"];
        let path = build(directory.path(), &compiler, KINDS, &["-DVERSIONED"]);
        let list = read(&path);
        assert_eq!(list.machine.as_deref(), Some(machine));
        assert!(list.symbols.len() > 10, "{triple}: {}", list.symbols.len());
        assert_eq!(lines(&list), readelf_lines(&path), "{triple}");
    }
}
