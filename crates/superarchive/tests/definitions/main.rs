//! Definitions of members, compared with the indices that archivers write. Needs clang, LLVM's tools
//! and GNU binutils.

#[path = "../../../image/tests/support/damage.rs"]
mod damage;
mod hostile;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_superarchive::{Binding, Source, definitions};
use tempfile::TempDir;

/// Runs a tool and returns its output. A missing tool is a failure.
fn run(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/definitions")
        .join(name)
}

/// Names in the index that an archiver writes for one member.
fn index(ar: &str, nm: &str, object: &Path) -> Vec<String> {
    let archive = object.with_extension("a");
    let _ = fs::remove_file(&archive);
    run(Command::new(ar).arg("rcs").arg(&archive).arg(object));
    armap_names(nm, &archive)
}

/// Names in the index of an archive.
fn armap_names(nm: &str, archive: &Path) -> Vec<String> {
    run(Command::new(nm).arg("--print-armap").arg(archive))
        .lines()
        .skip_while(|line| !line.starts_with("Archive "))
        .skip(1)
        .take_while(|line| !line.is_empty())
        .map(|line| line.rsplit_once(" in ").unwrap().0.to_owned())
        .collect()
}

/// Names that an object defines, and the weak ones among them.
fn defined_names(object: &Path) -> (Vec<String>, Vec<String>) {
    // At any even address, as in an archive.
    let mut bytes = vec![0; 2];
    bytes.extend(fs::read(object).unwrap());
    let (mut names, mut weak_names) = (Vec::new(), Vec::new());
    for definition in definitions(&bytes[2..]).unwrap() {
        let name = String::from_utf8(definition.name.to_vec()).unwrap();
        if definition.binding != Binding::Strong {
            weak_names.push(name.clone());
        }
        names.push(name);
    }
    (names, weak_names)
}

/// Asserts that LLVM's index has the names that an object defines; returns them.
#[track_caller]
fn same_as_llvm(object: &Path, description: &str) -> Vec<String> {
    let mut names = defined_names(object).0;
    let mut indexed_names = index("llvm-ar", "llvm-nm", object);
    // Indices for macOS are sorted.
    names.sort();
    indexed_names.sort();
    assert!(!names.is_empty(), "{description}");
    assert_eq!(names, indexed_names, "{description}");
    names
}

const TARGETS: &[(&str, &[&str])] = &[
    (
        "x86_64-linux-gnu",
        &["-DALIAS", "-DIFUNC", "-DCONSTRUCTOR", "-DASSEMBLY"],
    ),
    ("i386-linux-gnu", &["-DALIAS", "-DASSEMBLY", "-fcommon"]),
    ("powerpc64-linux-gnu", &["-DALIAS", "-fcommon"]),
    ("amdgcn-amd-amdhsa", &["-DALIAS"]),
    ("nvptx64-nvidia-cuda", &[]),
    (
        "x86_64-apple-macos11",
        &["-DCONSTRUCTOR", "-DASSEMBLY", "-fcommon"],
    ),
    ("arm64-apple-ios15", &["-DASSEMBLY"]),
    ("armv7-apple-ios9", &["-fcommon"]),
    (
        "x86_64-pc-windows-msvc",
        &["-DALIAS", "-DASSEMBLY", "-fcommon"],
    ),
    (
        "i686-pc-windows-msvc",
        &["-DALIAS", "-DASSEMBLY", "-DSTDCALL", "-fcommon"],
    ),
    ("x86_64-w64-mingw32", &["-DALIAS", "-DCONSTRUCTOR"]),
    ("i686-w64-mingw32", &["-DSTDCALL"]),
    ("wasm32-unknown-unknown", &["-DALIAS", "-DCONSTRUCTOR"]),
];

const GPUS: &[&str] = &["amdgcn-amd-amdhsa", "nvptx64-nvidia-cuda"];

fn compile(dir: &TempDir, target: &str, flags: &[&str], language: &str, name: &str) -> PathBuf {
    let output = dir.path().join(name);
    let mut clang = Command::new("clang");
    clang.args([
        "-c",
        "-ffreestanding",
        "-w",
        "-nogpulib",
        "-Qunused-arguments",
        "-target",
        target,
        "-x",
        language,
    ]);
    clang.args(flags).arg("-o").arg(&output);
    run(clang.arg(source(if language == "c" { "all.c" } else { "all.cc" })));
    output
}

#[test]
fn objects_and_bitcode_of_all_targets() {
    let dir = tempfile::tempdir().unwrap();
    for (target, flags) in TARGETS {
        for (language, optimize) in [("c", "-O0"), ("c", "-O2"), ("c++", "-O1")] {
            // Fewer hooks of the run-time library.
            let plain = ["-fno-exceptions", "-std=c++17", "-fno-threadsafe-statics"];
            let flags = match language {
                "c" => [&flags[..], &[optimize]].concat(),
                _ => [&plain[..], &[optimize]].concat(),
            };
            let description = format!("{target} {language} {flags:?}");
            for (name, more) in [
                ("object.o", &[][..]),
                ("module.bc", &["-emit-llvm"]),
                ("thin.bc", &["-flto=thin"]),
            ] {
                // LLVM 14 writes neither objects nor summaries of these sources for GPUs: it crashes.
                if name != "module.bc" && GPUS.contains(target) {
                    continue;
                }
                let object = compile(&dir, target, &[&flags[..], more].concat(), language, name);
                let names = same_as_llvm(&object, &format!("{description} {name}"));
                if flags.contains(&"-DASSEMBLY") {
                    assert!(
                        names.iter().any(|name| name.ends_with("from_assembly")),
                        "{description}"
                    );
                }
            }
        }
    }
}

/// GNU's archiver reads ELF, and bitcode only through a plugin.
#[test]
fn gnu_indices_have_the_same_names() {
    let dir = tempfile::tempdir().unwrap();
    let flags = [
        "-DALIAS",
        "-DIFUNC",
        "-DCONSTRUCTOR",
        "-DASSEMBLY",
        "-fcommon",
    ];
    for (language, flags) in [("c", &flags[..]), ("c++", &["-std=c++17", "-O1"])] {
        let object = compile(&dir, "x86_64-linux-gnu", flags, language, "object.o");
        assert_eq!(
            defined_names(&object).0,
            index("ar", "nm", &object),
            "{language}"
        );
    }
}

/// Compares weakness with expectations, since no index contains it.
#[test]
fn weak_definitions() {
    let dir = tempfile::tempdir().unwrap();
    let plain = "tentative weak_function weak_variable";
    // COFF's weak names are aliases of a defined symbol.
    let windows = ".refptr.wanted_weakly tentative wanted_weakly weak_function weak_variable";
    let linux = "tentative weak_function weak_name weak_variable";
    let apple = "_tentative _weak_function _weak_variable";
    for (target, flags, object_names, bitcode_names) in [
        (
            "x86_64-linux-gnu",
            &["-fcommon", "-DALIAS"][..],
            linux,
            linux,
        ),
        ("x86_64-apple-macos11", &["-fcommon"], apple, apple),
        ("x86_64-pc-windows-msvc", &["-fcommon"], windows, plain),
    ] {
        let object = compile(&dir, target, flags, "c", "object.o");
        let flags = [flags, &["-emit-llvm"]].concat();
        let bitcode = compile(&dir, target, &flags, "c", "module.bc");
        for (file, expected) in [(object, object_names), (bitcode, bitcode_names)] {
            let mut weak_names = defined_names(&file).1;
            weak_names.sort();
            assert_eq!(
                weak_names.join(" "),
                expected,
                "{target} {}",
                file.display()
            );
        }
    }
}

/// A strong symbol in a group of which linkers keep one; and more sections than a symbol's section
/// number can represent.
#[test]
fn groups_of_elf() {
    let dir = tempfile::tempdir().unwrap();
    for (target, sections) in [("x86_64-linux-gnu", 0), ("powerpc-linux-gnu", 66_000)] {
        let mut code = String::new();
        for number in 0..sections {
            code += &format!(".section .s{number}\n");
        }
        for (name, kind) in [("kept", ""), ("once", ",comdat")] {
            code += &format!(".section .{name},\"aG\",@progbits,{name}_group{kind}\n");
            code += &format!(".globl {name}\n{name}: .long 0\n");
        }
        code += ".data\n.globl plain\nplain: .long 0\n";
        let assembly = dir.path().join("groups.s");
        fs::write(&assembly, code).unwrap();
        let object = dir.path().join("groups.o");
        let mut clang = Command::new("clang");
        clang.args(["-c", "-target", target, "-o"]).arg(&object);
        run(clang.arg(&assembly));
        same_as_llvm(&object, target);
        assert_eq!(defined_names(&object).1, ["once"], "{target}");
    }
}

/// All groups of a hostile file may be its longest one.
#[test]
fn overlapping_groups_of_elf() {
    let dir = tempfile::tempdir().unwrap();
    let flags = ["-std=c++17"];
    let object = compile(&dir, "x86_64-linux-gnu", &flags, "c++", "object.o");
    let mut bytes = fs::read(object).unwrap();
    // ELF64: e_shoff at 40; of a section header sh_type at 4, sh_offset at 24, sh_size at 32.
    let number = |bytes: &[u8], offset: usize| {
        u64::from_le_bytes(bytes[offset..offset + 8].try_into().unwrap()) as usize
    };
    let group = (number(&bytes, 40)..bytes.len())
        .step_by(64)
        // `SHT_GROUP`
        .find(|&header| number(&bytes, header) >> 32 == 17)
        .unwrap();
    let size = (bytes.len() - number(&bytes, group + 24)) / 4 * 4;
    bytes[group + 32..group + 40].copy_from_slice(&(size as u64).to_le_bytes());
    let error = definitions(&bytes).unwrap_err().to_string();
    assert!(
        error.ends_with("section groups have more members than there are sections"),
        "{error}"
    );
}

/// Linked modules, and files with more than one module.
#[test]
fn files_of_several_modules() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let module = |language: &str, name: &str, flags: &[&str]| {
        let flags = [flags, &["-emit-llvm"]].concat();
        compile(&dir, "x86_64-linux-gnu", &flags, language, name)
    };
    let plain = module("c", "plain.bc", &[]);
    let assembly = module("c", "assembly.bc", &["-DASSEMBLY"]);
    let cpp = module("c++", "cpp.bc", &["-std=c++17"]);
    for (tool, flags) in [
        ("llvm-cat", &["-b"][..]),
        ("llvm-cat", &[]),
        ("llvm-link", &[]),
    ] {
        let run_on = |first: &Path| {
            let mut tool = Command::new(tool);
            tool.args(flags).arg("-o").arg(path("both.bc"));
            run(tool.args([first, &cpp]));
        };
        run_on(&plain);
        same_as_llvm(&path("both.bc"), tool);
        // These tools have no target, and write no table for modules with assembly.
        run_on(&assembly);
        let mut expected = index("llvm-ar", "llvm-nm", &path("both.bc"));
        expected.retain(|name| name != "from_assembly");
        assert_eq!(
            defined_names(&path("both.bc")).0,
            expected,
            "{tool} {flags:?}"
        );
    }
    let split = [
        "-flto",
        "-fsplit-lto-unit",
        "-fwhole-program-vtables",
        "-std=c++17",
        "-fvisibility=hidden",
    ];
    let object = compile(&dir, "x86_64-linux-gnu", &split, "c++", "split.bc");
    same_as_llvm(&object, "split");
}

/// Big-endian Mach-O, which LLVM reads but does not write; 66 000 sections; import libraries of DLLs.
#[test]
fn rarer_forms() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    for name in ["ppc", "ppc64"] {
        let yaml = source(&format!("{name}.yaml"));
        run(Command::new("yaml2obj")
            .arg(yaml)
            .arg("-o")
            .arg(path("ppc.o")));
        assert_eq!(
            same_as_llvm(&path("ppc.o"), name),
            ["_common", "_defined", "_weak"]
        );
        assert_eq!(defined_names(&path("ppc.o")).1, ["_weak", "_common"]);
    }

    let mut code = String::new();
    for number in 0..66_000 {
        code += &format!(".section s{number},\"dr\"\n.globl x{number}\nx{number}: .long 0\n");
    }
    fs::write(path("many.s"), code).unwrap();
    let mut clang = Command::new("clang");
    clang
        .args(["-c", "-target", "x86_64-pc-windows-msvc", "-o"])
        .arg(path("many.o"));
    run(clang.arg(path("many.s")));
    assert_eq!(same_as_llvm(&path("many.o"), "many sections").len(), 66_000);

    fs::write(
        path("x.def"),
        "LIBRARY x.dll\nEXPORTS\n call\n value DATA\n fixed CONSTANT\n ?cpp@@YAXXZ\n",
    )
    .unwrap();
    for machine in ["i386:x86-64", "i386"] {
        let mut tool = Command::new("llvm-dlltool");
        tool.args(["-m", machine, "-d"])
            .arg(path("x.def"))
            .arg("-l")
            .arg(path("x.lib"));
        run(&mut tool);
        let library = Source::open(&path("x.lib")).unwrap();
        let layer = library.layer().unwrap();
        let mut names = Vec::new();
        for symbol in layer.members.iter().flat_map(|member| &member.symbols) {
            names.push(String::from_utf8(symbol.name.to_vec()).unwrap());
        }
        let mut indexed_names = armap_names("llvm-nm", &path("x.lib"));
        names.sort();
        indexed_names.sort();
        assert!(names.len() > 9);
        assert_eq!(names, indexed_names, "{machine}");
    }
}
