//! The C interface of super-archives, from C and C++ programs.

use std::borrow::Cow;
use std::process::Command;

use gpustub_superarchive::{
    Binding, Definition, Input, Layer, LayerId, Plan, Request, View, ViewId,
};
use gpustub_tests::cargo::cargo;
use gpustub_tests::command::succeed;
use gpustub_tests::components::target_dir;
use gpustub_tests::{Result, repository, scratch};

/// A super-archive of two views, with the tables in the symbol index.
fn archive() -> Result<Vec<u8>> {
    let layer = |name: &str, member: &'static str, data: &'static str, symbols: &[&'static str]| {
        let symbols = symbols.iter().map(|symbol| Definition {
            name: Cow::Borrowed(symbol.as_bytes()),
            binding: Binding::Strong,
        });
        let input = Input {
            name: Cow::Borrowed(member.as_bytes()),
            data: data.as_bytes(),
            symbols: symbols.collect(),
        };
        Layer::new(name, vec![input])
    };
    let view = |name: &str, layers: &[usize]| View {
        name: name.to_owned(),
        layers: layers.iter().copied().map(LayerId).collect(),
    };
    let request = Request {
        layers: vec![
            layer("first", "cos1.o", "one", &["cos"]),
            layer("second", "cos2.o", "two", &["cos"]),
            layer("common", "sin.o", "both", &["sin", "tan"]),
        ],
        views: vec![view("gpu1", &[0, 2]), view("gpu2", &[1, 2])],
        default: Some(ViewId(1)),
    };
    let mut bytes = Vec::new();
    let plan = Plan::new(&request).map_err(|error| format!("{error:?}"))?;
    plan.write(&mut bytes)?;
    Ok(bytes)
}

#[test]
fn c_and_cpp_resolve_all_symbols_of_an_embedded_archive() -> Result<()> {
    let mut build = cargo(&repository());
    build.args(["build", "--quiet", "--package", "gpustub-archive-c"]);
    succeed(build.arg("--target-dir").arg(target_dir()))?;
    let dir = scratch()?;
    let libraries = target_dir().join("debug");
    std::fs::write(dir.path().join("x.a"), archive()?)?;
    // At an odd address, in a read-only section.
    let code = ".section .rodata\n.balign 16\n.byte 0\n.globl embedded, embedded_end\n\
                embedded: .incbin \"x.a\"\nembedded_end: .byte 0\n\
                .section .note.GNU-stack,\"\",@progbits\n";
    std::fs::write(dir.path().join("embedded.S"), code)?;
    succeed(Command::new("cc").current_dir(dir.path()).args([
        "-shared",
        "-o",
        "libembedded.so",
        "embedded.S",
    ]))?;
    let header = repository().join("crates/archive-c/include");
    let source = repository().join("tests/programs/archive.c");
    let staticlib = libraries.join("libgpustub_archive_c.a");
    for (compiler, flags, library) in [
        ("gcc", &["-std=c11"][..], &staticlib),
        (
            "clang",
            &["-std=c11"],
            &libraries.join("libgpustub_archive_c.so"),
        ),
        ("g++", &["-std=c++17", "-x", "c++"], &staticlib),
        ("clang++", &["-std=c++17", "-x", "c++"], &staticlib),
    ] {
        let mut compile = Command::new(compiler);
        compile.current_dir(dir.path()).args(flags);
        compile.args([
            "-Wall",
            "-Wextra",
            "-Wpedantic",
            "-Werror",
            // Position-independent, so that no data of the library is copied.
            "-fPIC",
            "-o",
            "program",
            "-I",
        ]);
        compile
            .arg(&header)
            .arg(&source)
            .args(["-x", "none"])
            .arg(library);
        compile.args(["-L.", "-lembedded", "-lgcc_s", "-lpthread", "-ldl", "-lm"]);
        compile.arg(format!(
            "-Wl,-rpath,{}:{}",
            dir.path().display(),
            libraries.display()
        ));
        succeed(&mut compile)?;
        let ran = succeed(&mut Command::new(dir.path().join("program")))?;
        let mut lines: Vec<_> = ran.stdout.lines().collect();
        lines.sort_unstable();
        let expected = [
            "default gpu2",
            "gpu1 cos one",
            "gpu1 sin both",
            "gpu1 tan both",
            "gpu2 cos two",
            "gpu2 sin both",
            "gpu2 tan both",
            "member cos1.o of first in gpu1",
            "member cos2.o of second in gpu2",
            "member sin.o of common in gpu1",
            "member sin.o of common in gpu2",
        ];
        assert_eq!(lines, expected, "{compiler}");
        assert_eq!(ran.stderr, "", "{compiler}");
    }
    Ok(())
}
