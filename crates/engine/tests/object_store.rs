//! Objects that the packages of a target directory share.
#![cfg(unix)]

mod tools;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread;

use gpustub_core::target::Target;
use gpustub_engine::toolchain::{Index, Toolchain};
use tempfile::TempDir;

use tools::{host, tool_output};

/// A target directory, and a compiler that records its calls.
struct Workspace {
    root: TempDir,
    cc: PathBuf,
}

impl Workspace {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let tag = "# This file is a cache directory tag created by cargo.\n";
        fs::write(root.path().join("CACHEDIR.TAG"), tag).unwrap();
        let cc = root.path().join("cc");
        let workspace = Self { root, cc };
        workspace.write_compiler("exec cc \"$@\"");
        workspace
    }

    /// Writes a compiler that records its call, and then runs a script.
    fn write_compiler(&self, script: &str) {
        let log = self.root.path().join("log");
        let text = format!("#!/bin/sh\necho \"$*\" >>'{}'\n{script}\n", log.display());
        fs::write(&self.cc, text).unwrap();
        fs::set_permissions(&self.cc, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// OUT_DIR of a package, with sources.
    fn package(&self, name: &str, stub: &str) -> PathBuf {
        let dir = self
            .root
            .path()
            .join(format!("debug/build/{name}/out/gpustub"));
        fs::create_dir_all(&dir).unwrap();
        for (file, text) in [
            (
                "runtime.c",
                "#include \"value.h\"\nint run(void) { return VALUE; }\n",
            ),
            ("libraries.c", "int library(void) { return 0; }\n"),
            ("adapters.c", "int adapter(void) { return 0; }\n"),
            ("value.h", "#define VALUE 1\n"),
        ] {
            fs::write(dir.join(file), text).unwrap();
        }
        let stubs = format!(
            " .text\n .globl {stub}\n{stub}: .byte 0\n .section .note.GNU-stack,\"\",%progbits\n"
        );
        fs::write(dir.join("stubs.S"), stubs).unwrap();
        dir
    }

    /// Builds a package; returns the sources that were compiled, and the library.
    fn build(&self, dir: &Path) -> (Vec<String>, Vec<u8>) {
        let log = self.root.path().join("log");
        let _ = fs::remove_file(&log);
        let library = self.archive(dir);
        let log = fs::read_to_string(log).unwrap();
        let compiled = log.lines().filter_map(|line| line.split_once(" -c "));
        let mut compiled: Vec<_> = compiled.map(|(_, source)| source.to_owned()).collect();
        compiled.sort();
        (compiled, library)
    }

    fn archive(&self, dir: &Path) -> Vec<u8> {
        let triple = host();
        let target = Target::from_triple(&triple).unwrap();
        let tools = Toolchain::find(&target, &triple, dir, Some(&self.cc), None).unwrap();
        let library = dir.join("libx.a");
        tools.static_library(dir, &library, Index::Omit).unwrap();
        fs::read(library).unwrap()
    }

    fn objects(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.root.path().join("gpustub-objects")).unwrap();
        entries
            .map(|entry| entry.unwrap().path().join("object"))
            .collect()
    }
}

const ALL: [&str; 4] = ["adapters.c", "libraries.c", "runtime.c", "stubs.S"];

/// Sources whose objects are not shared.
const OWN: [&str; 2] = ["libraries.c", "stubs.S"];

#[test]
fn packages_compile_equal_sources_once() {
    let workspace = Workspace::new();
    let (first, second) = (workspace.package("a-1", "f"), workspace.package("b-2", "g"));
    let (compiled, _) = workspace.build(&first);
    assert_eq!(compiled, ALL);
    let (compiled, shared) = workspace.build(&second);
    assert_eq!(compiled, OWN);

    // The bytes are those of a build without the store.
    fs::remove_dir_all(workspace.root.path().join("gpustub-objects")).unwrap();
    let (compiled, own) = workspace.build(&second);
    assert_eq!(compiled, ALL);
    assert!(shared == own);
    assert_eq!(
        tool_output("ar", &["t"], &second.join("libx.a"))
            .lines()
            .count(),
        4
    );
}

#[test]
fn another_source_header_define_or_compiler_is_another_object() {
    let workspace = Workspace::new();
    let dir = workspace.package("a-1", "f");
    workspace.build(&dir);
    fs::write(dir.join("value.h"), "#define VALUE 2\n").unwrap();
    assert_eq!(
        workspace.build(&dir).0,
        ["libraries.c", "runtime.c", "stubs.S"]
    );
    fs::write(dir.join("adapters.c"), "int adapter(void) { return 1; }\n").unwrap();
    assert_eq!(
        workspace.build(&dir).0,
        ["adapters.c", "libraries.c", "stubs.S"]
    );
    assert_eq!(workspace.build(&dir).0, OWN);
    let release = "case \" $* \" in *' -v '*) echo another >&2;; esac\nexec cc \"$@\"";
    workspace.write_compiler(release);
    assert_eq!(workspace.build(&dir).0, ALL);
}

/// As `CFLAGS=@file`, or a wrapper that reads a variable.
#[test]
fn flags_that_the_command_does_not_name_make_another_object() {
    let workspace = Workspace::new();
    let dir = workspace.package("a-1", "f");
    let flags = workspace.root.path().join("flags");
    workspace.write_compiler(&format!("exec cc @'{}' \"$@\"", flags.display()));
    fs::write(&flags, "-fno-stack-protector").unwrap();
    assert_eq!(workspace.build(&dir).0, ALL);
    assert_eq!(workspace.build(&dir).0, OWN);
    fs::write(&flags, "-fstack-protector-all").unwrap();
    assert_eq!(workspace.build(&dir).0, ALL);
}

#[test]
fn objects_with_debug_information_are_shared_but_not_those_with_files() {
    for (flag, expected) in [
        ("-g", &OWN[..]),
        ("--coverage", &ALL),
        ("-gsplit-dwarf", &ALL),
    ] {
        let workspace = Workspace::new();
        workspace.write_compiler(&format!("exec cc {flag} \"$@\""));
        workspace.build(&workspace.package("a-1", "f"));
        let (compiled, _) = workspace.build(&workspace.package("b-2", "g"));
        assert_eq!(compiled, expected, "{flag}");
    }
}

/// As if the system had ended the compiler for want of memory. The second attempt has no optional flags.
#[test]
fn an_object_without_the_optional_flags_is_not_kept() {
    let workspace = Workspace::new();
    let failed = workspace.root.path().join("failed");
    let fail_once = "case \"$*\" in *'-c runtime.c') mkdir";
    workspace.write_compiler(&format!(
        "{fail_once} '{}' 2>&- && exit 1;; esac\nexec cc \"$@\"",
        failed.display()
    ));
    let (first, second) = (workspace.package("a-1", "f"), workspace.package("b-2", "g"));
    workspace.build(&first);
    assert!(failed.exists());
    let (compiled, _) = workspace.build(&second);
    assert_eq!(compiled, ["libraries.c", "runtime.c", "stubs.S"]);
    assert_eq!(workspace.build(&first).0, OWN);
}

#[test]
fn a_damaged_object_is_compiled_again() {
    let workspace = Workspace::new();
    let dir = workspace.package("a-1", "f");
    let (_, library) = workspace.build(&dir);
    for object in workspace.objects() {
        let mut bytes = fs::read(&object).unwrap();
        bytes[100] ^= 1;
        fs::write(object, bytes).unwrap();
    }
    let (compiled, again) = workspace.build(&dir);
    assert_eq!(compiled, ALL);
    assert!(library == again);
    for object in workspace.objects() {
        fs::write(object, "short").unwrap();
    }
    assert_eq!(workspace.build(&dir).0, ALL);
    assert_eq!(workspace.build(&dir).0, OWN);
}

#[test]
fn packages_that_are_built_at_once_wait_for_one_another() {
    let workspace = Workspace::new();
    let dirs: Vec<_> = (0..4)
        .map(|number| workspace.package(&format!("p-{number}"), "f"))
        .collect();
    let libraries: Vec<_> = thread::scope(|scope| {
        let builds: Vec<_> = (dirs.iter())
            .map(|dir| scope.spawn(|| workspace.archive(dir)))
            .collect();
        builds
            .into_iter()
            .map(|build| build.join().unwrap())
            .collect()
    });
    assert!(libraries.iter().all(|library| *library == libraries[0]));
    let log = fs::read_to_string(workspace.root.path().join("log")).unwrap();
    let count = |source: &str| log.lines().filter(|line| line.ends_with(source)).count();
    assert_eq!(count("-c runtime.c"), 1);
    assert_eq!(count("-c adapters.c"), 1);
    assert_eq!(count("-c stubs.S"), 4);
}

/// `Build::out_dir` may name any directory.
#[test]
fn a_directory_that_is_not_cargos_gets_no_store() {
    let workspace = Workspace::new();
    fs::remove_file(workspace.root.path().join("CACHEDIR.TAG")).unwrap();
    let dir = workspace.package("a-1", "f");
    assert_eq!(workspace.build(&dir).0, ALL);
    assert_eq!(workspace.build(&dir).0, ALL);
    assert!(!workspace.root.path().join("gpustub-objects").exists());
}

/// Cargo tags only what it creates, not a volume that CI mounts as the target directory.
#[test]
fn a_directory_that_cargo_locks_has_a_store() {
    let workspace = Workspace::new();
    fs::remove_file(workspace.root.path().join("CACHEDIR.TAG")).unwrap();
    let dir = workspace.package("a-1", "f");
    fs::write(workspace.root.path().join("debug/.cargo-lock"), "").unwrap();
    workspace.build(&dir);
    assert!(workspace.root.path().join("gpustub-objects").exists());
}
