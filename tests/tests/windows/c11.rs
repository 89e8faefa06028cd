//! The C of the run time, as cl must compile it: C11 with the intrinsic functions of `compiler.h`. cl runs on Windows only,
//! so that clang compiles without any extension of GNU C.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use gpustub_core::library::Library;
use gpustub_core::sources::render;
use gpustub_tests::command::succeed;
use gpustub_tests::msvc;
use gpustub_tests::scratch::scratch;
use gpustub_tests::stubs::plan_or_fail;
use gpustub_tests::{Result, repository};

/// Flags of clang that reject what is not C11. It calls all words of Microsoft's compiler extensions.
const STRICT: [&str; 9] = [
    "-fgnuc-version=0",
    "-fms-compatibility-version=19.40",
    "-ffreestanding",
    "-std=c11",
    "-pedantic-errors",
    "-Wall",
    "-Wgnu",
    "-Werror",
    "-Wno-language-extension-token",
];

/// Unused parts of headers.
const UNUSED: [&str; 2] = ["-Wno-unused-function", "-Wno-unused-const-variable"];

/// Words of GNU C that clang accepts in C11, too.
const GNU_WORDS: [&str; 9] = [
    "__attribute__",
    "__asm__",
    "__asm",
    "asm",
    "__extension__",
    "typeof",
    "__typeof__",
    "__int128",
    "__thread",
];

/// Prefixes of functions that cl lacks. `offsetof` of clang's header is `__builtin_offsetof`, cl's is another.
const GNU_FUNCTIONS: [&str; 4] = ["__builtin_", "__atomic_", "__sync_", "__c11_"];

/// Longest string of cl ("Compiler limits", learn.microsoft.com), which counts its parts together.
const MAX_STRING: usize = 16_380;

fn strict(directory: &Path, source: &str) -> Command {
    let mut clang = Command::new(msvc::CLANG);
    clang.current_dir(directory);
    clang.arg(format!("--target={}", msvc::TRIPLE));
    clang.args(STRICT).args(UNUSED);
    clang.arg("-isystem").arg(msvc::directory()).arg(source);
    clang
}

/// Compiles a source strictly, and checks what clang does not.
fn check(directory: &Path, source: &str) -> Result<()> {
    let text = succeed(strict(directory, source).args(["-E", "-P"]))?.stdout;
    succeed(strict(directory, source).arg("-fsyntax-only"))?;
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words: BTreeSet<&str> = text.split(|c| !is_word(c)).collect();
    for word in words {
        let is_gnu = GNU_WORDS.contains(&word)
            || GNU_FUNCTIONS.iter().any(|prefix| word.starts_with(prefix));
        if is_gnu && word != "__builtin_offsetof" {
            return Err(format!("{source}: {word}").into());
        }
    }
    let longest = text.lines().map(str::len).max().unwrap_or(0);
    if longest > MAX_STRING {
        return Err(format!("{source}: a line of {longest} bytes").into());
    }
    Ok(())
}

/// Writes the sources of these stub tables, and checks one, unless it has nothing to compile.
fn check_stubs(directory: &Path, tables: &[(&str, String)], source: &str) -> Result<()> {
    let mut manifest = "schema = 1\n".to_owned();
    for (id, version) in tables {
        manifest += &format!("[stub.{id}]\nheader-version = \"{version}\"\n");
    }
    let plan = plan_or_fail(&manifest, &[], &msvc::target())?;
    let sources = render(&plan);
    if source == "adapters.c" && !sources["gpustub_adapters.inc"].contains("#include") {
        return Ok(());
    }
    gpustub_engine::write_sources(directory, &sources)?;
    check(directory, source).map_err(|e| format!("{tables:?}: {e:?}").into())
}

#[test]
#[ignore = "needs clang: ./tests/run"]
fn the_run_time_and_all_adapters_are_c11() -> Result<()> {
    let dir = scratch()?;
    let mut newest = Vec::new();
    for id in Library::builtin_ids() {
        let library = Library::builtin(id).ok_or("a library")?;
        let versions: Vec<String> = library
            .abi
            .headers()
            .iter()
            .map(ToString::to_string)
            .collect();
        for version in &versions {
            check_stubs(dir.path(), &[(id, version.clone())], "adapters.c")?;
        }
        let none = || "none".to_owned();
        // RCCL has NCCL's names.
        if id != "rccl" {
            newest.push((id, versions.last().map_or_else(none, Clone::clone)));
        }
    }
    check_stubs(dir.path(), &newest, "runtime.c")
}

/// The check itself.
#[test]
#[ignore = "needs clang: ./tests/run"]
fn gnu_c_is_rejected() -> Result<()> {
    let dir = scratch()?;
    for text in [
        "int f(void) { return ({ 1; }); }",
        "int f(int n) { char a[] = {}; return n + (int)sizeof a; }",
        "struct s { int n; char a[0]; };",
        "void *f(void *p) { return p + 1; }",
        "int f(int n) { switch (n) { case 1 ... 3: return 1; } return 0; }",
        "int a[4] = {[0 ... 3] = 1};",
        "int f(int a) { return a ?: 1; }",
        "void *f(void) { a: return &&a; }",
        "__attribute__((weak)) int a = 1;",
        "int f(const int *a) { return __builtin_expect(*a, 1); }",
        "int f(int *a) { return __atomic_load_n(a, 0); }",
        "__typeof__(1) a = 1;",
        "enum { A = 0x80000000U };",
    ] {
        std::fs::write(dir.path().join("x.c"), text)?;
        assert!(check(dir.path(), "x.c").is_err(), "{text}");
    }
    let allowed = repository().join("templates/runtime/os/windows/compiler.h");
    let text = format!(
        "#include <stddef.h>\n#include <stdint.h>\n#include \"{}\"\n\
         int f(const int *a);\nint f(const int *a) {{ return __atomic_load_n(a, 0); }}\n",
        allowed.display()
    );
    std::fs::write(dir.path().join("x.c"), text)?;
    check(dir.path(), "x.c")
}
