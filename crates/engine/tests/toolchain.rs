//! Tests of the compiler and archiver, with small sources and with stand-ins that record their
//! arguments.
#![cfg(unix)]

mod tools;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use gpustub_core::target::Target;
use gpustub_engine::toolchain::{Index, Toolchain};
use gpustub_engine::write_sources;
use tools::{host, tool_output};

/// An empty directory for one test.
fn directory(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("toolchain")
        .join(name);
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).unwrap();
    dir
}

fn sources(dir: &Path) {
    let sources = [
        (
            "runtime.c".to_owned(),
            "#include <stdio.h>\nint inner(void);\nint inner(void) { return __LINE__; }\n\
             #ifdef GPUSTUB_EXPORT\n__attribute__((visibility(\"default\"))) int outer(void);\n\
             int outer(void) { return inner(); }\n#endif\n"
                .to_owned(),
        ),
        (
            "stubs.S".to_owned(),
            " .text\n .globl stub\nstub: .byte 0\n .section .note.GNU-stack,\"\",%progbits\n"
                .to_owned(),
        ),
        (
            "libraries.c".to_owned(),
            "int library(void);\nint library(void) { return 0; }\n".to_owned(),
        ),
        (
            "adapters.c".to_owned(),
            "int adapter(void);\nint adapter(void) { return 0; }\n".to_owned(),
        ),
        (
            "client.c".to_owned(),
            "int outer(void);\nint asks(void);\nint asks(void) { return outer(); }\n".to_owned(),
        ),
    ]
    .into_iter()
    .collect();
    write_sources(dir, &sources).unwrap();
}

fn find(dir: &Path, compiler: Option<&Path>, archiver: Option<&Path>) -> Toolchain {
    let triple = host();
    let target = Target::from_triple(&triple).unwrap();
    Toolchain::find(&target, &triple, dir, compiler, archiver).unwrap()
}

/// A shell script that appends its arguments to `log`, then runs `then`.
fn shim(dir: &Path, name: &str, then: &str) -> PathBuf {
    let path = dir.join(name);
    let log = dir.join(format!("{name}.log"));
    let text = format!(
        "#!/bin/sh\necho \"$PWD: $*\" >>'{}'\n{then}\n",
        log.display()
    );
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// Recorded calls that contain a word.
fn calls(dir: &Path, name: &str, word: &str) -> Vec<String> {
    let log = fs::read_to_string(dir.join(format!("{name}.log"))).unwrap();
    log.lines()
        .filter(|l| l.split(' ').any(|w| w == word))
        .map(str::to_owned)
        .collect()
}

#[test]
fn an_archive_holds_its_members_under_fixed_names() {
    let dir = directory("archive");
    sources(&dir);
    let library = dir.join("libx.a");
    find(&dir, None, None)
        .static_library(&dir, &library, Index::Write)
        .unwrap();
    assert_eq!(
        tool_output("ar", &["t"], &library),
        "gpustub_stubs.o\ngpustub_runtime.o\ngpustub_libraries.o\ngpustub_adapters.o\n"
    );
    let names = tool_output("nm", &["--defined-only"], &library);
    assert!(
        names.contains(" T inner") && names.contains(" T stub"),
        "{names}"
    );
    // Repeated over the old archive: no member is appended, no file is left next to it.
    find(&dir, None, None)
        .static_library(&dir, &library, Index::Write)
        .unwrap();
    assert_eq!(
        tool_output("ar", &["t"], &library),
        "gpustub_stubs.o\ngpustub_runtime.o\ngpustub_libraries.o\ngpustub_adapters.o\n"
    );
    assert!(!dir.join("libx.a.new").exists());
}

#[test]
fn output_is_identical_in_two_directories_with_debug_information() {
    for flags in ["", "-g"] {
        let archives = ["one", "another/deeper"].map(|name| {
            let dir = directory(&format!("same{flags}/{name}"));
            sources(&dir);
            // CFLAGS belong to the whole process: the flag is passed as part of the compiler instead.
            let cc = shim(&dir, "cc", &format!("exec cc {flags} \"$@\""));
            let library = dir.join("libx.a");
            find(&dir, Some(&cc), None)
                .static_library(&dir, &library, Index::Write)
                .unwrap();
            fs::read(library).unwrap()
        });
        assert!(!archives[0].is_empty());
        assert!(archives[0] == archives[1], "archives differ with `{flags}`");
    }
}

#[test]
fn a_shared_library_has_the_soname_of_its_file_and_exports_marked_symbols() {
    let dir = directory("shared");
    sources(&dir);
    let library = dir.join("libgpustub_x.so");
    find(&dir, None, None)
        .shared_library(&dir, &library)
        .unwrap();
    let dynamic = tool_output("readelf", &["-dW"], &library);
    assert!(dynamic.contains("[libgpustub_x.so]"), "{dynamic}");
    let exported = tool_output("nm", &["-D", "--defined-only"], &library);
    assert!(
        exported.contains(" T outer") && !exported.contains("inner"),
        "{exported}"
    );
}

#[test]
fn the_compiler_runs_inside_the_directory_with_relative_names() {
    let dir = directory("argv");
    sources(&dir);
    let cc = shim(&dir, "cc", "exec cc \"$@\"");
    let ar = shim(&dir, "ar", "exec ar \"$@\"");
    find(&dir, Some(&cc), Some(&ar))
        .static_library(&dir, &dir.join("libx.a"), Index::Write)
        .unwrap();

    let compiles = calls(&dir, "cc", "-c");
    assert_eq!(compiles.len(), 4, "{compiles:?}");
    for source in ["stubs.S", "runtime.c", "libraries.c", "adapters.c"] {
        let call = compiles
            .iter()
            .find(|call| call.ends_with(&format!(" {source}")))
            .unwrap_or_else(|| panic!("{source}: {compiles:?}"));
        assert!(call.starts_with(&format!("{}: ", dir.display())), "{call}");
        for flag in ["-O0", "-g0", "-fPIC", "-fvisibility=hidden", "-fno-lto"] {
            assert!(call.split(' ').any(|w| w == flag), "{flag} in {call}");
        }
    }
    // A run to detect the compiler's family, and no other queries.
    let log = fs::read_to_string(dir.join("cc.log")).unwrap();
    let queries = log.lines().filter(|l| !l.contains(" -c ")).count();
    assert!(queries <= 3, "{log}");
    assert_eq!(calls(&dir, "ar", "cqsD").len(), 1);
}

/// As `zig cc` adds them by itself.
#[test]
fn sanitizers_of_the_compiler_leave_no_references() {
    let dir = directory("sanitizer");
    sources(&dir);
    let shift = "int shift(int);\nint shift(int by) { return 1 << by; }\n";
    fs::write(dir.join("runtime.c"), shift).unwrap();
    let cc = shim(&dir, "cc", "exec cc -fsanitize=undefined \"$@\"");
    let library = dir.join("libx.a");
    find(&dir, Some(&cc), None)
        .static_library(&dir, &library, Index::Write)
        .unwrap();
    let symbols = tool_output("nm", &[], &library);
    assert!(!symbols.contains("__ubsan"), "{symbols}");
}

#[test]
fn older_tools_get_fewer_options() {
    let dir = directory("old");
    sources(&dir);
    let refuse =
        r#"for a; do case $a in -fcf-*|-mbranch-*|-ffile-prefix-map*) exit 1;; esac; done"#;
    let cc = shim(&dir, "cc", &format!("{refuse}\nexec cc \"$@\""));
    let ar = shim(&dir, "ar", "case $1 in *D*) exit 1;; esac\nexec ar \"$@\"");
    let library = dir.join("libx.a");
    find(&dir, Some(&cc), Some(&ar))
        .static_library(&dir, &library, Index::Write)
        .unwrap();
    assert_eq!(calls(&dir, "cc", "-c").len(), 8);
    assert_eq!(
        tool_output("ar", &["t"], &library),
        "gpustub_stubs.o\ngpustub_runtime.o\ngpustub_libraries.o\ngpustub_adapters.o\n"
    );
}

#[test]
fn a_missing_compiler_is_reported_with_help() {
    let dir = directory("missing");
    sources(&dir);
    let tools = find(&dir, Some(Path::new("/nonexistent/cc")), None);
    let error = tools
        .static_library(&dir, &dir.join("libx.a"), Index::Write)
        .unwrap_err()
        .to_string();
    for part in [
        "no C compiler for ",
        "`/nonexistent/cc`",
        "CC_",
        "apt install gcc",
        "apk add",
    ] {
        assert!(error.contains(part), "{part} in {error}");
    }

    for (triple, package) in [
        ("aarch64-unknown-linux-gnu", "gcc-aarch64-linux-gnu"),
        ("powerpc64le-unknown-linux-gnu", "gcc-powerpc64le-linux-gnu"),
        ("i686-unknown-linux-gnu", "gcc-i686-linux-gnu"),
        ("armv7-unknown-linux-gnueabihf", "gcc-arm-linux-gnueabihf"),
    ] {
        let target = Target::from_triple(triple).unwrap();
        let missing = Path::new("/nonexistent/cc");
        let host = "riscv64gc-unknown-linux-gnu";
        let tools = Toolchain::find(&target, host, &dir, Some(missing), None);
        let error = tools
            .unwrap()
            .static_library(&dir, &dir.join("libx.a"), Index::Write)
            .unwrap_err()
            .to_string();
        let variable = format!("CC_{}", triple.replace('-', "_"));
        for part in [&format!("apt install {package}"), &variable, "TARGET_CC"] {
            assert!(error.contains(part), "{part} in {error}");
        }
    }

    let tools = find(&dir, None, Some(Path::new("/nonexistent/ar")));
    let error = tools
        .static_library(&dir, &dir.join("libx.a"), Index::Write)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("no archiver") && error.contains("set AR"),
        "{error}"
    );
}

#[test]
fn a_failing_compiler_is_quoted() {
    let dir = directory("failing");
    sources(&dir);
    fs::write(dir.join("runtime.c"), "#error not today\n").unwrap();
    let error = find(&dir, None, None)
        .static_library(&dir, &dir.join("libx.a"), Index::Write)
        .unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains("not today") && error.contains("runtime.c"),
        "{error}"
    );
    assert!(!dir.join("libx.a").exists());
}

#[test]
fn a_compiler_for_another_machine_is_rejected() {
    let dir = directory("machine");
    sources(&dir);
    // Machine 43 is SPARC, which no supported architecture is.
    let header = r"\177ELF\2\1\1\0\0\0\0\0\0\0\0\0\1\0\053\0";
    let cc = shim(
        &dir,
        "cc",
        &format!(
            "while [ $# -gt 0 ]; do [ \"$1\" = -o ] && printf '{header}' >\"$2\"; shift; done"
        ),
    );
    let tools = find(&dir, Some(&cc), None);
    let error = tools
        .static_library(&dir, &dir.join("libx.a"), Index::Write)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("makes something else objects") && error.contains("set CC_"),
        "{error}"
    );
}

const MSVC: &str = "x86_64-pc-windows-msvc";

/// gcc of Linux fails at the headers of Windows and at the assembly, neither of which names the cause.
#[test]
fn compilers_for_other_systems_are_named_for_mingw() {
    let dir = directory("mingw-gcc");
    fs::write(
        dir.join("stubs.s"),
        ".section .text$stub,\"xr\",one_only,x\n",
    )
    .unwrap();
    fs::write(dir.join("runtime.c"), "#include <windows.h>\n").unwrap();
    let target = Target::from_triple("x86_64-pc-windows-gnu").unwrap();
    let machine = tool_output("gcc", &["-dumpmachine"], &dir);
    let foreign = shim(&dir, "foreign", "exec gcc \"$@\"");
    // It has the system's name, and fails for another cause.
    let mingw = "case $* in *-dumpmachine) echo x86_64-w64-mingw32;; *) exit 1;; esac";
    let mingw = shim(&dir, "mingw", mingw);
    for source in ["stubs.s", "runtime.c"] {
        let error = |compiler| {
            let tools = Toolchain::find(&target, &host(), &dir, Some(compiler), None).unwrap();
            let error = tools.object(&dir, &[], source, "x.o").unwrap_err();
            error.to_string()
        };
        let expected = format!(
            "error[compiler-error]: the C compiler `{}` makes objects for {}, but the target is x86_64-pc-windows-gnu\n  \
             help: set CC_x86_64_pc_windows_gnu to a compiler for it",
            foreign.display(),
            machine.trim()
        );
        assert_eq!(error(&foreign), expected);
        assert!(error(&mingw).contains("the C compiler failed"), "{source}");
    }
}

/// The tools for MSVC's ABI, with this script in the place of cl, which runs on Windows only.
fn find_msvc(dir: &Path, host: &str, then: &str) -> Toolchain {
    sources(dir);
    let cl = shim(dir, "cl", then);
    let target = Target::from_triple(MSVC).unwrap();
    let tools = Toolchain::find(&target, host, dir, Some(&cl), None).unwrap();
    // Instead of rustc, whose standard library for the target may be missing: the first 20 bytes are a COFF header.
    let rustc = shim(
        dir,
        "rustc",
        "for word; do case $word in --emit=obj=*) printf 'd\\206' >\"${word#--emit=obj=}\"; \
         head -c 18 /dev/zero >>\"${word#--emit=obj=}\" ;; esac; done",
    );
    tools.with_rustc(rustc.into())
}

fn msvc_error(dir: &Path, host: &str, then: &str) -> String {
    let tools = find_msvc(dir, host, then);
    let error = tools.static_library(dir, &dir.join("x.lib"), Index::Omit);
    error.unwrap_err().to_string()
}

#[test]
fn cl_gets_its_own_options() {
    let dir = directory("cl");
    let object = "for word; do case $word in -Fo*) printf 'd\\206' >\"${word#-Fo}\"; \
                  head -c 18 /dev/zero >>\"${word#-Fo}\" ;; esac; done";
    let library = dir.join("x.lib");
    let tools = find_msvc(&dir, MSVC, object);
    tools.static_library(&dir, &library, Index::Omit).unwrap();
    for source in ["runtime.c", "libraries.c", "adapters.c"] {
        let calls = calls(&dir, "cl", source);
        let [call] = &calls[..] else {
            panic!("{calls:?}");
        };
        let object = format!(" -Fogpustub_{}.o -c {source}", &source[..source.len() - 2]);
        for words in [" -std:c11 -Gy -Gw -Zl -utf-8 -Brepro -GL-", &object] {
            assert!(call.contains(words), "{words} in {call}");
        }
        assert!(!call.contains("-fPIC") && !call.contains("-g0"), "{call}");
    }
    assert_eq!(
        tool_output("ar", &["t"], &library),
        "gpustub_stubs.o\ngpustub_runtime.o\ngpustub_libraries.o\ngpustub_adapters.o\n"
    );
}

#[test]
fn causes_of_msvc_have_their_help() {
    let header = "echo \"runtime.c(3): fatal error C1083: Cannot open include file: 'stdlib.h': \
                  No such file or directory\"; exit 2";
    let old = "echo 'cl : D9002 : ignoring unknown option -std:c11'; exit 2";
    let elf = r"for word; do case $word in -Fo*) printf '\177ELF\2\1\1' >${word#-Fo};; esac; done";
    for (name, then, parts) in [
        (
            "cl-header",
            header,
            [
                "C1083",
                "the headers of the Windows SDK (stdlib.h) are missing",
            ],
        ),
        ("cl-old", old, ["D9002", "C11 needs 2019, version 16.8"]),
        (
            "cl-elf",
            elf,
            [
                "makes ELF objects",
                "set CC_x86_64_pc_windows_msvc to clang-cl",
            ],
        ),
    ] {
        let error = msvc_error(&directory(name), "x86_64-unknown-linux-gnu", then);
        for part in parts {
            assert!(error.contains(part), "{part} in {error}");
        }
    }
}

#[test]
fn compilers_for_other_systems_are_refused_for_msvc() {
    let dir = directory("cl-gcc");
    let target = Target::from_triple(MSVC).unwrap();
    let gcc = Toolchain::find(&target, &host(), &dir, Some(Path::new("gcc")), None);
    let error = gcc.unwrap_err().to_string();
    for part in [
        "`gcc` is GCC, which makes no objects for x86_64-pc-windows-msvc",
        "set CC_x86_64_pc_windows_msvc to clang-cl",
    ] {
        assert!(error.contains(part), "{part} in {error}");
    }
    for program in ["nosuch", "/nonexistent/gcc"] {
        let tools = Toolchain::find(&target, &host(), &dir, Some(Path::new(program)), None);
        let error = tools.unwrap_err().to_string();
        for part in [
            "error[missing-compiler]: no C compiler for x86_64-pc-windows-msvc: cannot run ",
            &format!("`{program}`: "),
            "set CC_x86_64_pc_windows_msvc to clang-cl",
        ] {
            assert!(error.contains(part), "{part} in {error}");
        }
    }
    let dir = directory("cl-missing");
    sources(&dir);
    let missing = Some(Path::new("/nonexistent/cl.exe"));
    for (host, part) in [
        (MSVC, "install the Build Tools for Visual Studio"),
        (
            "x86_64-unknown-linux-gnu",
            "set CC_x86_64_pc_windows_msvc to clang-cl",
        ),
    ] {
        let tools = Toolchain::find(&target, host, &dir, missing, None).unwrap();
        let error = tools.object(&dir, &[], "runtime.c", "x.o").unwrap_err();
        let error = error.to_string();
        for part in [
            "`/nonexistent/cl.exe`",
            "then the `cl` of Visual Studio",
            part,
        ] {
            assert!(error.contains(part), "{part} in {error}");
        }
    }
}

#[test]
#[ignore = "needs clang (package clang)"]
fn clang_without_the_headers_of_windows_gets_an_option_of_its_own() {
    let dir = directory("clang-header");
    sources(&dir);
    fs::write(dir.join("runtime.c"), "#include <stdlib.h>\n").unwrap();
    let clang = shim(&dir, "clang", "exec clang -nostdlibinc \"$@\"");
    let target = Target::from_triple(MSVC).unwrap();
    let tools = Toolchain::find(&target, &host(), &dir, Some(&clang), None).unwrap();
    let error = tools.object(&dir, &[], "runtime.c", "x.o").unwrap_err();
    let error = error.to_string();
    for part in [
        "the headers of the Windows SDK (stdlib.h) are missing",
        "cargo-xwin (https://github.com/rust-cross/cargo-xwin) fetches them",
        "CFLAGS_x86_64_pc_windows_msvc=\"-isystem <directory>\"",
    ] {
        assert!(error.contains(part), "{part} in {error}");
    }
}
