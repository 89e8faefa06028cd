//! Compiles the C examples of the README against the header.

use std::path::Path;
use std::process::Command;

/// Declarations that the README leaves to the program.
const PREAMBLE: &str = "#include <gpustub_archive.h>\n#include <stdio.h>\n\
    void link_in(const void *data, size_t size);\n\
    void example(const void *bytes, size_t length);\n\
    void example(const void *bytes, size_t length) {\n";

#[test]
fn examples_compile() {
    let readme = include_str!("../README.md");
    let blocks = readme.split("```c\n").skip(1);
    let blocks: Vec<_> = blocks
        .map(|block| block.split_once("```").unwrap().0)
        .collect();
    assert!(blocks.len() >= 2);
    // All in one function: later examples use variables of earlier ones.
    let source = format!("{PREAMBLE}{}}}\n", blocks.concat());
    for name in [
        "archive",
        "archive_view",
        "archive_member",
        "archive_symbols",
    ] {
        let declaration = format!("struct gpustub_{name} ");
        assert!(source.contains(&declaration), "no example of {declaration}");
    }
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("archive-readme.c");
    std::fs::write(&path, &source).unwrap();
    let mut compile = Command::new("cc");
    compile.args(["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]);
    compile.args(["-fsyntax-only", "-I"]);
    compile.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("include"));
    let output = compile.arg(&path).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
}
