//! Compiles the C examples of the README against the headers.

use std::path::Path;
use std::process::Command;

/// Declarations that the README leaves to the program.
const PREAMBLE: &str = "#include <gpurpc.h>\n#include <gpurpc_client.h>\n#include <stdio.h>\n\
    void *host_memory(uint64_t size, void *data);\n\
    void host_free(void *memory, void *data);\n";

const TYPES: [&str; 10] = [
    "gpurpc_server_t",
    "gpurpc_port_t",
    "gpurpc_device_t",
    "gpurpc_buffer_t",
    "gpurpc_fault_t",
    "gpurpc_server_options_t",
    "gpurpc_device_options_t",
    "gpurpc_libc_options_t",
    "gpurpc_client_t",
    "gpurpc_call_t",
];

#[test]
fn examples_compile() {
    let readme = include_str!("../README.md");
    let blocks = readme.split("```c\n").skip(1);
    let blocks = blocks.map(|block| block.split_once("```").unwrap().0);
    let (functions, statements): (Vec<_>, Vec<_>) =
        blocks.partition(|block| block.contains("static "));
    assert!(functions.len() >= 3 && statements.len() >= 2);
    // Later statements use variables of earlier ones.
    let source = format!(
        "{PREAMBLE}{}int main(void) {{\n{}(void)add_one_on_host;\nreturn 0;\n}}\n",
        functions.concat(),
        statements.concat(),
    );
    for name in TYPES {
        assert!(source.contains(&format!("{name} ")), "no example of {name}");
    }
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("capi-readme.c");
    std::fs::write(&path, &source).unwrap();
    let mut compile = Command::new("cc");
    compile.args(["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]);
    // The examples ignore arguments of callbacks, and members that are 0.
    compile.args(["-Wno-unused-parameter", "-Wno-missing-field-initializers"]);
    compile.args(["-fsyntax-only", "-I"]);
    compile.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("include"));
    let output = compile.arg(&path).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
}
