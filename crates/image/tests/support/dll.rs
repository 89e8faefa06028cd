//! Small DLLs of clang and lld, and the tables of an image as llvm-readobj prints them.
#![allow(dead_code, reason = "every test file uses its own part")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_image::{PeExport, PeImage, PeSymbol};

/// Machine, and its names for clang, for llvm-dlltool and for lld-link.
pub const MACHINES: [[&str; 4]; 3] = [
    ["x86_64", "x86_64", "i386:x86-64", "x64"],
    ["x86", "i686", "i386", "x86"],
    ["aarch64", "aarch64", "arm64", "arm64"],
];

/// Imports by name and number, of data, and of a DLL that is loaded at the first call; the function that does so; exports.
const SOURCE: &str = "
__declspec(dllimport) int cuInit(unsigned);
__declspec(dllimport) int cudaFree(void *);
__declspec(dllimport) extern int there;
int by_number(void), lazy(int);
int table[4] = {1, 2, 3, 4};
int f(void) { return cuInit(0) + cudaFree(0) + lazy(1) + by_number() + there; }
int g(void) { return 1; }
void *__stdcall __delayLoadHelper2(void *a, void *b) { return 0; }
";

/// Modules whose functions the source imports, and those of the DLL itself.
const DEFINITIONS: [(&str, &str); 4] = [
    (
        "driver",
        "LIBRARY nvcuda.dll\nEXPORTS\ncuInit\nthere DATA\n",
    ),
    (
        "runtime",
        "LIBRARY CUDART64_12.dll\nEXPORTS\ncudaFree\nby_number @7 NONAME\n",
    ),
    ("lazy", "LIBRARY lazy.dll\nEXPORTS\nlazy\n"),
    (
        "x",
        "LIBRARY x.dll\nEXPORTS\nf @3\ng @9 NONAME\ng2 = g\ntable DATA\n\
         alloc = NTDLL.RtlAllocateHeap\n\"?h@@YAXXZ\" = g\n",
    ),
];

fn run(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {err}");
    String::from_utf8(output.stdout).unwrap()
}

/// Builds the DLL for one of the `MACHINES`.
pub fn build_dll(directory: &Path, [_, clang, dlltool, lld]: [&str; 4]) -> PathBuf {
    std::fs::write(directory.join("x.c"), SOURCE).unwrap();
    for (name, text) in DEFINITIONS {
        std::fs::write(directory.join(format!("{name}.def")), text).unwrap();
        run(Command::new("llvm-dlltool-19")
            .current_dir(directory)
            .args([
                "-m",
                dlltool,
                "-d",
                &format!("{name}.def"),
                "-l",
                &format!("{name}.lib"),
            ]));
    }
    run(Command::new("clang-19").current_dir(directory).args([
        &format!("--target={clang}-pc-windows-msvc"),
        "-O1",
        "-c",
        "x.c",
        "-o",
        "x.obj",
    ]));
    run(Command::new("lld-link-19")
        .current_dir(directory)
        .arg(format!("/machine:{lld}"))
        .args(["/dll", "/noentry", "/nodefaultlib", "/def:x.def"])
        .args(["/delayload:lazy.dll", "/out:x.dll", "x.obj"])
        .args(["driver.lib", "runtime.lib", "lazy.lib"]));
    directory.join("x.dll")
}

/// A line for each import and export: `import nvcuda.dll cuInit`, `export 3 f`.
pub fn lines(image: &PeImage<'_>) -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    for (kind, imports) in [("import", &image.imports), ("delay", &image.delay_imports)] {
        for import in imports {
            for symbol in &import.symbols {
                lines.insert(match symbol {
                    PeSymbol::Name(name) => format!("{kind} {} {name}", import.dll),
                    PeSymbol::Ordinal(number) => format!("{kind} {} {number}", import.dll),
                });
            }
        }
    }
    for PeExport {
        name,
        ordinal,
        forwarder,
        ..
    } in &image.exports
    {
        let forwarder = forwarder
            .map(|target| format!(" -> {target}"))
            .unwrap_or_default();
        lines.insert(format!(
            "export {ordinal} {}{forwarder}",
            name.unwrap_or_default()
        ));
    }
    lines
}

/// The same lines from llvm-readobj.
pub fn readobj_lines(file: &Path) -> BTreeSet<String> {
    let text = run(Command::new("llvm-readobj-19")
        .args(["--coff-imports", "--coff-exports"])
        .arg(file));
    let mut lines = BTreeSet::new();
    let (mut kind, mut dll, mut ordinal, mut name) = ("", "", "", "");
    for row in text.lines() {
        // The entries of a delayed import have a heading of their own, with blanks before it.
        let (key, value) = row.split_once(':').unwrap_or((row, ""));
        let key = if value.is_empty() { key } else { key.trim() };
        match (key, value.trim()) {
            ("Import {", _) => kind = "import",
            ("DelayImport {", _) => kind = "delay",
            ("Export {", _) => kind = "export",
            ("Name", value) if kind == "export" => name = value,
            ("Name", value) => dll = value,
            ("Symbol", value) => {
                // A name with the hint, or the number alone.
                let (symbol, number) = value.rsplit_once('(').unwrap();
                let symbol = match symbol.trim() {
                    "" => number.trim_end_matches(')'),
                    symbol => symbol,
                };
                lines.insert(format!("{kind} {dll} {symbol}"));
            }
            ("Ordinal", value) => ordinal = value,
            // An unused number.
            ("RVA", "0x0") => {}
            ("RVA", _) => drop(lines.insert(format!("export {ordinal} {name}"))),
            ("ForwardedTo", target) => {
                lines.insert(format!("export {ordinal} {name} -> {target}"));
            }
            _ => {}
        }
    }
    lines
}
