//! Compiles the C examples of the README and of the header.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

/// Declarations that the README leaves to the program.
const PREAMBLE: &str = "#include <gpurpc.h>\n#include <gpurpc_client.h>\n#include <stdio.h>\n\
    void *host_memory(uint64_t size, void *data);\n\
    void host_free(void *memory, void *data);\n";

const TYPES: [&str; 10] = [
    "gpurpc_server_t",
    "gpurpc_blocking_t",
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
        "{PREAMBLE}{}int main(void) {{\n{}(void)add_one_on_host;\n(void)report_error;\nreturn 0;\n}}\n",
        functions.concat(),
        statements.concat(),
    );
    for name in TYPES {
        assert!(source.contains(&format!("{name} ")), "no example of {name}");
    }
    compile("capi-readme.c", &source);
}

#[test]
fn cpp_examples_compile() {
    let readme = include_str!("../README.md");
    let blocks = readme.split("```cpp\n").skip(1);
    let blocks: Vec<_> = blocks
        .map(|block| block.split_once("```").unwrap().0)
        .collect();
    let header = include_str!("../include/gpurpc.hpp");
    let (_, example) = header.split_once("//     using Scale").unwrap();
    let (example, _) = example.split_once("\n//\n// Arguments").unwrap();
    // Statements of the device and of the host, and declarations of both.
    let lines = example.lines().map(|line| line.trim_start_matches('/'));
    let (statements, declarations): (Vec<_>, Vec<_>) =
        lines.partition(|line| line.contains("gpurpc::"));
    let header = format!(
        "#include <gpurpc.hpp>\nusing Scale{}\n\
         void use(gpurpc_client_t *client, gpurpc_server_t *server);\n\
         void use(gpurpc_client_t *client, gpurpc_server_t *server) {{\n{}\n(void)n;\n}}\n",
        declarations.join("\n"),
        statements.join("\n")
    );
    for (name, source) in [
        ("capi-readme.cpp", blocks.concat()),
        ("capi-header.cpp", header),
    ] {
        for function in ["gpurpc::call<", "gpurpc::register_typed<"] {
            assert!(
                source.contains(function),
                "{name}: no example of {function}"
            );
        }
        compile(name, &source);
    }
}

/// Examples of the header use what a program would declare.
const HEADER_PREAMBLE: &str = "#include <gpurpc.h>\n#include <poll.h>
#include <stdbool.h>\n#include <stdio.h>\n\
    #include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\n\
    void *managed_malloc(uint64_t size);\nvoid managed_free(void *memory);\n";

/// The comment of each callback type ends with a function of that type.
#[test]
fn examples_of_callbacks_have_their_types() {
    let header = concat!(
        include_str!("../include/gpurpc.h"),
        include_str!("../include/gpurpc_blocking.h"),
        include_str!("../include/gpurpc_libc.h")
    );
    let (mut prototypes, mut functions, mut uses) = (String::new(), String::new(), String::new());
    let mut before = "";
    let mut count = 0;
    for (at, _) in header.match_indices("\ntypedef ") {
        let (comments, typedef) = (&header[before.len()..at], &header[at + 1..]);
        before = &header[..at];
        let line = typedef.lines().next().unwrap();
        let Some((_, name)) = line.split_once("(*") else {
            continue;
        };
        let name = name.split(')').next().unwrap();
        let comment = comments.rsplit("/*").next().unwrap();
        let lines = comment.trim_end_matches(" */").lines();
        let example: Vec<_> = lines
            .filter_map(|line| line.strip_prefix(" *     "))
            .collect();
        let prototype = example.first().and_then(|line| line.split_once(" {"));
        let (prototype, _) = prototype.unwrap_or_else(|| panic!("no example of {name}"));
        let (start, _) = prototype.split_once('(').unwrap();
        let function = start.rsplit([' ', '*']).next().unwrap();
        let _ = writeln!(prototypes, "{prototype};");
        let _ = writeln!(functions, "{}", example.join("\n"));
        let _ = writeln!(
            uses,
            "extern {name} use_{count};\n{name} use_{count} = {function};"
        );
        count += 1;
    }
    assert!(count >= 13, "{count} types were read");
    let source = [HEADER_PREAMBLE, &prototypes, &functions, &uses].concat();
    compile("capi-callbacks.c", &source);
}

fn compile(name: &str, source: &str) {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, source).unwrap();
    let (compiler, standard) = match path.extension() {
        Some(extension) if extension == "cpp" => ("c++", "-std=c++17"),
        _ => ("cc", "-std=c11"),
    };
    let mut compile = Command::new(compiler);
    compile.args([standard, "-Wall", "-Wextra", "-Wpedantic", "-Werror"]);
    // The examples ignore arguments of callbacks, and members that are 0.
    compile.args(["-Wno-unused-parameter", "-Wno-missing-field-initializers"]);
    compile.args(["-fsyntax-only", "-I"]);
    compile.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("include"));
    let output = compile.arg(&path).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
}
