//! User-defined libraries: `add --from`, and programs without them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{acme, cc, component, ends, package, repository, write};

/// A package with an empty `GpuStub.toml`.
pub fn project() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_owned();
    package(&path, "user", "");
    write(&path, "GpuStub.toml", "schema = 1\n");
    (directory, path)
}

pub fn library(directory: &Path, soname: &str, source: &str) {
    write(directory, "library.c", source);
    let soname_flag = format!("-Wl,-soname,{soname}");
    cc(
        directory,
        &[
            "-shared",
            "-fPIC",
            "-fno-builtin",
            &soname_flag,
            "-o",
            soname,
            "library.c",
        ],
    );
}

pub fn read(directory: &Path, name: &str) -> String {
    fs::read_to_string(directory.join(name)).unwrap()
}

/// Output of a C or C++ program that is linked with the stubs of a library, with the library at this path or
/// without it.
pub fn output(directory: &Path, compiler: &str, source: &str, library: &str, path: &str) -> String {
    write(directory, "program.source", source);
    let language = if compiler == "cc" { "c" } else { "c++" };
    let out = ["export", "stubs", library, "--out-dir", "stubs"];
    ends(0, directory, &out);
    let link = format!("-l{library}");
    let arguments = [
        "-x",
        language,
        "program.source",
        "-x",
        "none",
        "-o",
        "program",
        "-Lstubs/link",
    ];
    let compilation = Command::new(compiler)
        .current_dir(directory)
        .args(arguments)
        .args([&link, "-ldl", "-Wl,--gc-sections"])
        .output()
        .unwrap();
    let err = String::from_utf8_lossy(&compilation.stderr);
    assert!(compilation.status.success(), "{err}");
    let variable = format!("GPUSTUB_{}_PATH", library.to_ascii_uppercase());
    let output = Command::new(directory.join("program"))
        .env(variable, path)
        .output()
        .unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{:?}\n{out}", output.status);
    out
}

#[test]
fn library_is_described_by_its_file() {
    let (_guard, directory) = project();
    acme(&directory);
    let (_, err) = ends(0, &directory, &["add", "acme", "--from", "libacme.so.3"]);
    for part in [
        "Adding acme (libacme.so.3): 3 functions",
        "warning[unknown-result]: the build refuses functions of `acme` without `returns=` (3): acmeCount, acmeOpen, \
         acmeWeak",
    ] {
        assert!(err.contains(part), "{part}: {err}");
    }
    assert_eq!(
        read(&directory, "GpuStub.toml"),
        "schema = 1\n\n[stub.acme]\nload-names = { linux = [\"libacme.so.3\"] }\n\
         symbols = \"symbols/acme.symbols\"\n"
    );
    let list = read(&directory, "symbols/acme.symbols");
    assert!(
        list.ends_with("\nacmeCount\nacmeOpen\nacmeWeak weak\n"),
        "{list}"
    );

    // Until a result is known, nothing is built.
    for command in ["sync", "export stubs acme --out-dir stubs"] {
        let (_, err) = ends(1, &directory, &command.split(' ').collect::<Vec<_>>());
        assert!(err.contains("symbols/acme.symbols:4:1"), "{err}");
    }
    assert!(!directory.join("stubs").exists());

    // A refreshed list keeps the classes, the comments and the table of a person.
    let edited = list.replace("acmeOpen\n", "# Opens a device.\nacmeOpen returns=status\n");
    write(
        &directory,
        "symbols/acme.symbols",
        &edited.replace("acmeCount\n", ""),
    );
    let table = read(&directory, "GpuStub.toml").replace("so.3", "so.2");
    write(&directory, "GpuStub.toml", &table);
    let (_, err) = ends(0, &directory, &["add", "acme", "--from", "libacme.so.3"]);
    assert!(err.contains("Changing acme"), "{err}");
    assert_eq!(read(&directory, "symbols/acme.symbols"), edited);
    assert_eq!(read(&directory, "GpuStub.toml"), table);

    // The link name is written if it is not the name of the table. `sync` would report that both have the same functions.
    let add = ["add", "other", "--from", "libacme.so.3", "--no-sync"];
    ends(0, &directory, &add);
    assert!(read(&directory, "GpuStub.toml").contains("\n[stub.other]\nlink-names = [\"acme\"]\n"));
}

#[test]
fn what_cannot_be_described_is_refused() {
    let (_guard, directory) = project();
    acme(&directory);
    write(&directory, "symbols/broken.symbols", "no list\n");
    let broken = "schema = 1\n[stub.broken]\nload-names = { linux = [\"libb.so.1\"] }\n\
                  symbols = \"symbols/broken.symbols\"\n";
    write(&directory, "GpuStub.toml", broken);
    cc(
        &directory,
        &["-shared", "-fPIC", "-o", "acme vendor.so", "acme.c"],
    );
    for (code, arguments, part) in [
        (
            101,
            &["acme", "other", "--from", "libacme.so.3"][..],
            "describes one library",
        ),
        (
            101,
            &["acme", "--from", "acme vendor.so"],
            "`acme vendor.so` has the name `acme vendor.so`: names in symbol lists",
        ),
        (
            101,
            &["Acme", "--from", "libacme.so.3"],
            "cannot be the name of a library",
        ),
        (
            101,
            &["cudart", "--from", "libacme.so.3"],
            "gpustub knows `cudart`",
        ),
        (
            1,
            &["acme", "--from", "acme.c"],
            "error[malformed-library]: `acme.c`",
        ),
        (
            1,
            &["broken", "--from", "libacme.so.3"],
            "error[malformed-symbol-list]",
        ),
        (
            101,
            &["acme", "--from", "libacme.so.3", "--headers", "none.h"],
            "none.h",
        ),
        (2, &["acme", "--headers", "acme.h"], "--from <FILE>"),
        (1, &["acme"], "cargo gpustub add acme --from"),
    ] {
        let arguments: Vec<&str> = ["add"].iter().chain(arguments).copied().collect();
        let (_, err) = ends(code, &directory, &arguments);
        assert!(err.contains(part), "{part}: {err}");
        assert_eq!(read(&directory, "GpuStub.toml"), broken);
    }
}

/// A bundled allocator, data, and a function that is called by its name in `allowed-symbols`.
#[test]
fn names_of_the_c_library_stay_with_the_program() {
    let (_guard, directory) = project();
    library(
        &directory,
        "libacme.so.3",
        "#include <stddef.h>\nint acmeTable[4]; static char heap[4096];\n\
         void *malloc(size_t n) { return heap; } void free(void *p) { }\n\
         void *calloc(size_t n, size_t m) { return heap; } void *realloc(void *p, size_t n) { return p; }\n\
         char *strfry(char *s) { return s; }\n\
         int acmeAdd(int a, int b) { return a + b; }\n",
    );
    let add: Vec<&str> = "add acme --from libacme.so.3 --returns status"
        .split(' ')
        .collect();
    let (_, err) = ends(0, &directory, &add);
    assert!(!err.contains("unknown-result"), "{err}");
    for part in [
        "note[reserved-symbol]: 4 names of the C and C++ run time in `libacme.so.3` get no stub: \
         calloc, free, malloc, realloc",
        "warning[data-symbol]: data of `libacme.so.3` gets no stub: acmeTable\n",
    ] {
        assert!(err.contains(part), "{part}: {err}");
    }
    let list = read(&directory, "symbols/acme.symbols");
    assert!(list.ends_with("\nacmeAdd\nstrfry\n"), "{list}");
    let source = "#include <stdio.h>\n#include <stdlib.h>\nint acmeAdd(int, int);\n\
                  int main(void) { char *p = malloc(9); printf(\"%d %d\\n\", acmeAdd(2, 3), p != 0); free(p); }\n";
    assert_eq!(output(&directory, "cc", source, "acme", "off"), "-1 1\n");
    let path = directory.join("libacme.so.3");
    assert_eq!(
        output(&directory, "cc", source, "acme", path.to_str().unwrap()),
        "5 1\n"
    );

    let allowed = read(&directory, "GpuStub.toml") + "allowed-symbols = [\"realloc\"]\n";
    write(&directory, "GpuStub.toml", &allowed);
    ends(0, &directory, &add);
    let list = read(&directory, "symbols/acme.symbols");
    assert!(list.ends_with("\nacmeAdd\nrealloc\nstrfry\n"), "{list}");
}

/// zlib has no enumeration of statuses: they are `int`.
#[test]
#[ignore = "needs clang and zlib's header (tests/run)"]
fn strings_of_a_missing_zlib_can_be_read() {
    let (_guard, directory) = project();
    let zlib = [
        "/lib/x86_64-linux-gnu/libz.so.1",
        "/lib/aarch64-linux-gnu/libz.so.1",
        "/usr/lib64/libz.so.1",
    ]
    .into_iter()
    .find(|file| Path::new(file).exists())
    .expect("the system has zlib");
    let add = [
        "add",
        "z",
        "--from",
        zlib,
        "--headers",
        "/usr/include/zlib.h",
        // Declares gzopen64 and others.
        "--clang-arg=-D_LARGEFILE64_SOURCE",
    ];
    ends(0, &directory, &add);
    let list = read(&directory, "symbols/z.symbols");
    for function in [
        "crc32 returns=null",
        "gzclose returns=status",
        "zlibVersion returns=string",
    ] {
        assert!(
            list.lines().any(|line| line.starts_with(function)),
            "{function}\n{list}"
        );
    }
    let source = "#include <stdio.h>\n#include <zlib.h>\nint main(void) {\n\
                  printf(\"%s %d %lu\\n\", zlibVersion(), inflateEnd(NULL), crc32(0, NULL, 0)); }\n";
    assert_eq!(
        output(&directory, "cc", source, "z", "off"),
        "z is not available; GPUSTUB_LOG=1 shows why -1 0\n"
    );
}

/// libcufile exports a whole libstdc++, of which no stub may be in a C++ program.
#[test]
#[ignore = "needs the real packages: GPUSTUB_TEST_COMPONENTS names their directory (tests/run)"]
fn a_library_that_exports_the_cxx_run_time() {
    let (_guard, directory) = project();
    let wheel = component("wheels/cufile-12.9/nvidia/cufile");
    let file = wheel.join("lib/libcufile.so.0");
    let header = wheel.join("include/cufile.h");
    let stand_ins = repository().join("xtask/headers");
    let cuda = component("wheels/cudart-12.9/nvidia/cuda_runtime/include");
    let include =
        [stand_ins, cuda].map(|directory| format!("--clang-arg=-I{}", directory.display()));
    let add = [
        "add",
        "storage",
        "--from",
        file.to_str().unwrap(),
        "--headers",
        header.to_str().unwrap(),
        &include[0],
        &include[1],
        "--returns",
        "null",
    ];
    let (_, err) = ends(0, &directory, &add);
    assert!(err.contains("names of the C and C++ run time in"), "{err}");
    let table = read(&directory, "GpuStub.toml");
    assert!(table.contains("link-names = [\"cufile\"]"), "{table}");
    assert!(
        table.contains(
            "fallback = { status = 5001, returns = \"null\" } # CU_FILE_DRIVER_NOT_INITIALIZED"
        ),
        "{table}"
    );
    // The directory `link` has the name of the real library, and the program that of the table.
    let table = table.replace("link-names = [\"cufile\"]\n", "");
    write(&directory, "GpuStub.toml", &table);
    let source = "#include <cstdio>\n#include <stdexcept>\n#include <string>\n#include <vector>\n\
        extern \"C\" { struct error { int code, cuda; }; error cuFileDriverOpen(); }\n\
        int main() { std::vector<std::string> v(3, std::string(99, 'x'));\n\
        try { throw std::runtime_error(v[0]); } catch (std::exception &e) {\n\
        std::printf(\"%d %d\\n\", cuFileDriverOpen().code, (int)v[2].size()); } }\n";
    assert_eq!(
        output(&directory, "c++", source, "storage", "off"),
        "5001 99\n"
    );
}
