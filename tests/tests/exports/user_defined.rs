//! User-defined libraries of Windows: `add --from` a DLL or its import library, and a program with their stubs.

use std::fs;
use std::path::Path;
use std::process::Command;

use gpustub_tests::Result;
use gpustub_tests::cargo::gpustub;
use gpustub_tests::command::succeed;
use gpustub_tests::scratch::scratch;
use gpustub_tests::wine::{TRIPLE, compiler, run, wine};

const HEADER: &str = "enum acmeStatus { ACME_SUCCESS, ACME_NOT_INITIALIZED = 7 };\n\
    enum acmeStatus acmeOpen(int device);\nconst char *acmeVersion(void);\n";

const SOURCE: &str = "#include \"acme.h\"\nint acmeTable[4] = {1};\n\
    enum acmeStatus acmeOpen(int device) { return device; }\n\
    const char *acmeVersion(void) { return \"3.1\"; }\n";

const DEFINITIONS: &str = "LIBRARY acme64_3.dll\nEXPORTS\nacmeOpen\nacmeVersion\nacmeTable DATA\n\
    \"?open@acme@@YAHXZ\" = acmeOpen\n";

const PROGRAM: &str = "#include <stdio.h>\n#include \"acme.h\"\n\
    int main(void) { printf(\"%d %s\\n\", acmeOpen(3), acmeVersion()); }\n";

/// `acme64_3.dll`, its import library, its header, a program, and an empty `GpuStub.toml`.
fn project(dir: &Path) -> Result<()> {
    for (file, text) in [
        ("acme.h", HEADER),
        ("acme.c", SOURCE),
        ("acme.def", DEFINITIONS),
        ("program.c", PROGRAM),
        ("GpuStub.toml", "schema = 1\n"),
    ] {
        fs::write(dir.join(file), text)?;
    }
    let mut gcc = Command::new(compiler("c"));
    gcc.current_dir(dir)
        .args(["-shared", "-o", "acme64_3.dll", "acme.c"]);
    succeed(gcc.args(["acme.def", "-Wl,--out-implib,libacme.dll.a"]))?;
    let mut dlltool = Command::new("llvm-dlltool-19");
    dlltool.current_dir(dir).args(["-m", "i386:x86-64"]);
    succeed(dlltool.args(["-d", "acme.def", "-l", "acme.lib"]))?;
    Ok(())
}

/// Runs `add acme --from`; returns what it prints.
fn add(dir: &Path, file: &str) -> Result<String> {
    let mut command = gpustub(&["add", "acme", "--headers", "acme.h", "--from", file])?;
    Ok(succeed(command.current_dir(dir))?.stderr)
}

/// The list that `add` writes.
const LIST: &str = "acmeOpen returns=status\nacmeVersion returns=string\n";

#[test]
#[ignore = "needs mingw-w64, clang, llvm 19 and wine: ./tests/run"]
fn a_library_of_windows_is_described_by_its_file() -> Result<()> {
    for file in ["acme64_3.dll", "acme.lib", "libacme.dll.a"] {
        let dir = scratch()?;
        project(dir.path())?;
        let printed = add(dir.path(), file)?;
        for part in [
            "Adding acme (acme64_3.dll): 2 functions",
            &format!("note[decorated-symbol]: 1 decorated names of `{file}`, such as those of C++"),
            &format!("warning[data-symbol]: data of `{file}` gets no stub: acmeTable"),
        ] {
            assert!(printed.contains(part), "{part}: {printed}");
        }
        assert_eq!(
            fs::read_to_string(dir.path().join("GpuStub.toml"))?,
            "schema = 1\n\n[stub.acme]\nload-names = { windows = [\"acme64_3.dll\"] }\n\
             symbols = \"symbols/acme.symbols\"\nfallback = { status = 7 } # ACME_NOT_INITIALIZED\n",
            "{file}"
        );
        let list = fs::read_to_string(dir.path().join("symbols/acme.symbols"))?;
        assert_eq!(
            list,
            format!("@gpustub-symbols 1\n@soname acme64_3.dll\n@machine x86_64\n{LIST}"),
            "{file}"
        );
    }
    Ok(())
}

/// A table for two systems, and a program for Windows with and without the DLL.
#[test]
#[ignore = "needs mingw-w64, clang, llvm 19 and wine: ./tests/run"]
fn a_library_of_two_systems() -> Result<()> {
    let dir = scratch()?;
    project(dir.path())?;
    let mut gcc = Command::new("cc");
    gcc.current_dir(dir.path())
        .args(["-shared", "-fPIC", "-DacmeVersion=acmeName"]);
    succeed(gcc.args(["-Wl,-soname,libacme.so.3", "-o", "libacme.so.3", "acme.c"]))?;
    add(dir.path(), "libacme.so.3")?;
    let printed = add(dir.path(), "acme64_3.dll")?;
    let note = "symbols/acme.symbols is for both systems: it keeps the functions of libacme.so.3";
    assert!(printed.contains(note), "{printed}");
    let table = fs::read_to_string(dir.path().join("GpuStub.toml"))?;
    let names = "load-names = { linux = [\"libacme.so.3\"], windows = [\"acme64_3.dll\"] }\n";
    assert!(table.contains(names), "{table}");
    let list = fs::read_to_string(dir.path().join("symbols/acme.symbols"))?;
    assert!(list.contains("@soname libacme.so.3\n"), "{list}");
    assert!(
        list.ends_with("\nacmeName\nacmeOpen returns=status\nacmeVersion returns=string\n"),
        "{list}"
    );
    assert!(add(dir.path(), "acme64_3.dll")?.contains("Fresh acme"));
    let list = list.replace("acmeName\n", "acmeName returns=string\n");
    fs::write(dir.path().join("symbols/acme.symbols"), list)?;

    let mut export = gpustub(&[
        "export",
        "stubs",
        "acme",
        "--out-dir",
        "stubs",
        "--target",
        TRIPLE,
    ])?;
    succeed(export.current_dir(dir.path()))?;
    let mut gcc = Command::new(compiler("c"));
    gcc.current_dir(dir.path())
        .args(["-o", "program.exe", "program.c"]);
    succeed(gcc.args(["-Lstubs/link", "-lacme", "-Wl,--gc-sections"]))?;
    let program = dir.path().join("program.exe");
    let library = dir.path().join("acme64_3.dll");
    for (is_there, expected) in [
        (true, "3 3.1\n"),
        (false, "7 acme is not available; GPUSTUB_LOG=1 shows why\n"),
    ] {
        if !is_there {
            fs::remove_file(&library)?;
        }
        let ran = run(&mut wine(&program)?)?.success()?;
        assert_eq!(ran.stdout, expected);
    }
    Ok(())
}
