//! What members define, held against the indices that archivers write. Needs clang, LLVM's tools and
//! GNU binutils.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_object::definitions;
use tempfile::TempDir;

/// Runs a tool, and gives what it prints. A tool that is absent is a failure.
fn run(command: &mut Command) -> String {
    let output = command.output();
    let output = output.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

fn source(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/definitions");
    folder.join(name)
}

/// The names in the index that an archiver makes for one member.
fn index(ar: &str, nm: &str, object: &Path) -> Vec<String> {
    let archive = object.with_extension("a");
    let _ = fs::remove_file(&archive);
    run(Command::new(ar).arg("rcs").arg(&archive).arg(object));
    let printed = run(Command::new(nm).arg("--print-armap").arg(&archive));
    let map = printed
        .lines()
        .skip_while(|line| !line.starts_with("Archive "));
    let names = map.skip(1).take_while(|line| !line.is_empty());
    names
        .map(|line| line.rsplit_once(" in ").unwrap().0.to_owned())
        .collect()
}

/// The names that are found, and those of them that may give way.
fn found(object: &Path) -> (Vec<String>, Vec<String>) {
    // At any even address, as in an archive.
    let mut bytes = vec![0; 2];
    bytes.extend(fs::read(object).unwrap());
    let all = definitions(&bytes[2..]).unwrap();
    let name = |one: &gpustub_object::superarchive::Definition| {
        String::from_utf8(one.name.to_vec()).unwrap()
    };
    let weak = all.iter().filter(|one| one.weak).map(name).collect();
    (all.iter().map(name).collect(), weak)
}

#[track_caller]
fn same_as_llvm(object: &Path, what: &str) -> Vec<String> {
    let (mut found, mut expected) = (found(object).0, index("llvm-ar", "llvm-nm", object));
    // Indices for macOS are sorted.
    found.sort();
    expected.sort();
    assert!(!found.is_empty(), "{what}");
    assert_eq!(found, expected, "{what}");
    found
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
            let what = format!("{target} {language} {flags:?}");
            for (name, more) in [
                ("object.o", &[][..]),
                ("module.bc", &["-emit-llvm"]),
                ("thin.bc", &["-flto=thin"]),
            ] {
                // LLVM 14 makes neither objects nor summaries of these sources for GPUs: it crashes.
                if name != "module.bc" && GPUS.contains(target) {
                    continue;
                }
                let object = compile(&dir, target, &[&flags[..], more].concat(), language, name);
                let names = same_as_llvm(&object, &format!("{what} {name}"));
                if flags.contains(&"-DASSEMBLY") {
                    assert!(names.iter().any(|n| n.ends_with("from_assembly")), "{what}");
                }
            }
        }
    }
}
