//! Small libraries built with the C compiler, and binutils' output for a library.
#![allow(dead_code, reason = "every test file uses its own part")]

use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_core::symbols::{SymbolKind, SymbolList};

/// One of each kind of symbol that a library can export, and some that it does not.
pub const KINDS: &str = r#"
int plain(void) { return 1; }
__attribute__((weak)) int weak_function(void) { return 2; }
__attribute__((weak)) int weak_data = 3;
__attribute__((visibility("protected"))) int guarded(void) { return 4; }
__attribute__((visibility("hidden"))) int hidden(void) { return 5; }
static int local(void) { return 6; }
int data[7] = { 1 };
int shared_block;
__thread int per_thread = 8;
int old_only(void) { return local(); }
int first(void) { return 9; }
int second(void) { return hidden(); }
#ifdef VERSIONED
__asm__(".symver first, twice@V1");
__asm__(".symver second, twice@@V2");
__asm__(".symver old_only, retired@V1");
#endif
#ifdef IFUNC
static int (*pick(void))(void) { return plain; }
int picked(void) __attribute__((ifunc("pick")));
#endif
__asm__(".globl untyped\n.text\nuntyped:\n");
"#;

/// Version script of [`KINDS`]; `untyped` and the data stay in the base version of the library.
pub const SCRIPT: &str = "V1 { global: plain; weak_*; }; V2 { global: data; per_thread; } V1;\n";

/// Builds a shared library from C and returns its path. Panics with the compiler's messages.
pub fn build(directory: &Path, compiler: &[&str], source: &str, flags: &[&str]) -> PathBuf {
    let c = directory.join("library.c");
    let script = directory.join("library.map");
    let library = directory.join("library.so");
    std::fs::write(&c, source).unwrap();
    std::fs::write(&script, SCRIPT).unwrap();
    let mut command = Command::new(compiler[0]);
    command
        .args(&compiler[1..])
        .args(["-shared", "-fPIC", "-fcommon", "-O1", "-nostdlib"]);
    if flags.contains(&"-DVERSIONED") {
        command.arg(format!("-Wl,--version-script={}", script.display()));
    }
    run(command.args(flags).arg("-o").arg(&library).arg(&c));
    library
}

/// Builds a library that needs `libcudart.so.12`, whose functions have a version, and `libcuda.so.1`, whose
/// functions have none.
pub fn build_importer(directory: &Path, flags: &[&str]) -> PathBuf {
    let write = |name: &str, text: &str| std::fs::write(directory.join(name), text).unwrap();
    write("cudart.c", "int cudaMalloc(void) { return 1; }");
    write("cudart.map", "libcudart.so.12 { global: *; };");
    write("cuda.c", "int cuInit(void) { return 2; }");
    write(
        "importer.c",
        "extern int cudaMalloc(void), cuInit(void); int zeros[100];\n\
         int f(void) { return cudaMalloc() + cuInit() + zeros[3]; }",
    );
    let link = |output: &str, words: &[&str]| {
        let mut cc = Command::new("cc");
        cc.current_dir(directory)
            .args(["-shared", "-fPIC", "-O1", "-nostdlib", "-o", output]);
        run(cc.args(words));
    };
    link(
        "cudart.so",
        &[
            "cudart.c",
            "-Wl,-soname,libcudart.so.12,--version-script=cudart.map",
        ],
    );
    link("cuda.so", &["cuda.c", "-Wl,-soname,libcuda.so.1"]);
    let words = [&["importer.c", "./cudart.so", "./cuda.so"], flags].concat();
    link("importer.so", &words);
    directory.join("importer.so")
}

/// Runs a command and returns its output; panics with its messages if it fails.
pub fn run(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// Formats a symbol as one line, for comparison with another tool's output.
fn line(
    name: &str,
    kind: SymbolKind,
    weak: bool,
    node: Option<&str>,
    old: bool,
    size: u64,
) -> String {
    let version = match (node, old) {
        (None, _) => String::new(),
        (Some(node), true) => format!("@{node}"),
        (Some(node), false) => format!("@@{node}"),
    };
    let weak = if weak { " weak" } else { "" };
    let size = if kind.is_data() {
        format!(" {size}")
    } else {
        String::new()
    };
    format!("{name}{version} {kind:?}{weak}{size}")
}

/// The list, a line for each symbol, sorted.
pub fn lines(list: &SymbolList) -> Vec<String> {
    let mut lines: Vec<String> = (list.symbols.iter())
        .map(|s| {
            line(
                &s.name,
                s.kind,
                s.weak,
                s.version.as_deref(),
                s.compat,
                s.size,
            )
        })
        .collect();
    lines.sort();
    lines
}

/// Formats the output of `readelf --dyn-syms` as the same lines.
pub fn readelf_lines(library: &Path) -> Vec<String> {
    let text = run(Command::new("readelf")
        .args(["--dyn-syms", "-W"])
        .arg(library));
    let mut lines = Vec::new();
    for row in text.lines() {
        let fields: Vec<&str> = row.split_whitespace().collect();
        let [
            number,
            _,
            size,
            kind,
            binding,
            visibility,
            section,
            name,
            ..,
        ] = fields[..]
        else {
            continue;
        };
        if !number
            .trim_end_matches(':')
            .bytes()
            .all(|b| b.is_ascii_digit())
            || section == "UND"
            || !matches!(binding, "GLOBAL" | "WEAK" | "UNIQUE")
            || !matches!(visibility, "DEFAULT" | "PROTECTED")
            // `stdout@GLIBC_2.2.5 (3)`: a required version, so data of another library.
            || row.ends_with(')')
        {
            continue;
        }
        let kind = match kind {
            "FUNC" => SymbolKind::Function,
            "IFUNC" => SymbolKind::Ifunc,
            "OBJECT" | "COMMON" => SymbolKind::Object,
            "TLS" => SymbolKind::Tls,
            "NOTYPE" => SymbolKind::NoType,
            "SECTION" | "FILE" => continue,
            kind => panic!("unexpected type in: {row} ({kind})"),
        };
        let (name, node, old) = match name.split_once('@') {
            None => (name, None, false),
            Some((name, node)) => {
                let default = node.strip_prefix('@');
                (name, Some(default.unwrap_or(node)), default.is_none())
            }
        };
        // The symbol of a version node, for which readelf prints no version.
        if section == "ABS" && node.is_none() && kind == SymbolKind::Object {
            continue;
        }
        let size = match size.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).unwrap(),
            None => size.parse().unwrap(),
        };
        lines.push(line(name, kind, binding == "WEAK", node, old, size));
    }
    lines.sort();
    lines
}

/// Names with their nodes, from `nm`.
pub fn nm_names(library: &Path) -> Vec<String> {
    let text = run(Command::new("nm")
        .args(["-D", "--defined-only", "--with-symbol-versions"])
        .arg(library));
    let mut names: Vec<String> = (text.lines())
        .filter_map(|row| {
            let mut fields = row.split_whitespace().rev();
            let (name, letter) = (fields.next()?, fields.next()?);
            // The symbol of a version node is absolute; nm prints no version for it.
            (letter != "A" || name.contains('@')).then(|| name.to_owned())
        })
        .collect();
    names.sort();
    names
}
