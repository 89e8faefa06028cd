//! `repair --library`: libraries that gpustub does not know. Programs run with and without them.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::repair::{COUNT, cudart, image};
use super::repair_wheels::{NAME, contents, needed, wheel};
use super::{cc, ends, write};

const ACME: &str = "link/libacme.so.3";

/// `link/libacme.so.3`, whose functions return 7, with data and an inline function of C++.
fn acme(directory: &Path) {
    let code = "int acmeOpen(int *p) { *p = 7; return 7; }\nint acmeClose(void) { return 7; }\n\
                int acmeTable[4] = { 7 };\n\
                __attribute__((weak)) int _ZN4acme4copyEv(void) { return 7; }\n\
                int malloc_usable_size(void *p) { return 7; }\n";
    library(directory, ACME, code, &[]);
}

pub fn library(directory: &Path, path: &str, code: &str, more: &[&str]) {
    fs::create_dir_all(directory.join(path).parent().unwrap()).unwrap();
    let source = format!("{path}.c");
    write(directory, &source, code);
    let soname = format!("-Wl,-soname,{}", path.rsplit('/').next().unwrap());
    let options = [
        "-shared",
        "-fPIC",
        "-fno-builtin",
        &soname,
        "-o",
        path,
        &source,
    ];
    cc(directory, &[&options[..], more].concat());
}

const MAIN: &str = "#include <stdio.h>\nint cudaGetDeviceCount(int *), acmeOpen(int *);\n\
    int main(void) { int n = 3, m = 3; int s = acmeOpen(&m), t = cudaGetDeviceCount(&n);\n\
    printf(\"acme %d, cuda %d\\n\", s, t); }\n";

/// Output of a program that finds libraries in these directories; `None`: it does not start.
fn output(directory: &Path, program: &str, libraries: &str) -> Option<String> {
    let mut command = Command::new(directory.join(program));
    let command = command.env("LD_LIBRARY_PATH", libraries);
    let output = command.current_dir(directory).output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    output.status.success().then_some(out)
}

/// A program with both libraries, without a runpath.
fn program(directory: &Path) {
    cudart(directory, "12");
    acme(directory);
    image(directory, "app", MAIN, &[ACME]);
}

#[test]
fn a_program_runs_with_and_without_the_library() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    program(directory);
    assert_eq!(output(directory, "app", ""), None);
    let file = format!("acme={ACME}");
    let repair = ["repair", "app", "--library", &file, "--out-dir", "out"];

    // An unknown result would be success to most callers.
    let (_, err) = ends(1, directory, &repair);
    for part in [
        "`app` imports functions of `acme` whose result without the library is unknown (1): acmeOpen",
        "`--headers`",
    ] {
        assert!(err.contains(part), "{part}: {err}");
    }
    // Headers are files.
    let (_, err) = ends(
        101,
        directory,
        &[&repair[..], &["--headers", "none.h"]].concat(),
    );
    assert!(err.contains("none.h"), "{err}");

    let repair = [&repair[..], &["--returns", "status"]].concat();
    let (_, err) = ends(0, directory, &[&repair[..], &["--dry-run"]].concat());
    assert!(
        err.contains(": 1 function acme, 1 function cudart (headers 12)")
            && err.contains("app: without libacme.so.3, libcudart.so.12"),
        "{err}"
    );
    ends(0, directory, &repair);
    let expected = Some("acme -1, cuda 35\n".to_owned());
    assert_eq!(output(directory, "out/app", ""), expected);
    let expected = Some("acme 7, cuda 7\n".to_owned());
    assert_eq!(output(directory, "out/app", "link"), expected);
    // A repaired file needs no repair.
    let again = [
        "repair",
        "out/app",
        "--library",
        &file,
        "--out-dir",
        "again",
    ];
    let (_, err) = ends(0, directory, &again);
    for part in [
        "repaired before, with libgpustub_app_",
        "note: no file needs `acme` (libacme.so.3)",
    ] {
        assert!(err.contains(part), "{part}: {err}");
    }
}

/// The table is that of the package in the current directory, or of a project without cargo.
#[test]
fn a_table_describes_the_library() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    program(directory);
    let table = "schema = 1\n[stub.acme]\nload-names = { linux = [\"libacme.so.3\"] }\n\
                 symbols = \"acme.symbols\"\nfallback = { status = 999 }\nrequired-functions = [\"acmeClose\"]\n\
                 zero-out = { acmeClose = [0] }\ntargets = [\"windows\"]\n";
    let list = "@gpustub-symbols 1\nacmeClose\nacmeOpen returns=status\n";
    let repair = ["repair", "app", "--library", "acme", "--out-dir", "out"];
    write(directory, "GpuStub.toml", "schema = 1\n");
    let (_, err) = ends(101, directory, &repair);
    assert!(
        err.contains("has no `[stub.acme]` with a symbol list")
            && err.contains("--library acme=path"),
        "{err}"
    );
    write(directory, "GpuStub.toml", table);
    write(directory, "acme.symbols", list);
    ends(0, directory, &repair);
    let expected = Some("acme 999, cuda 35\n".to_owned());
    assert_eq!(output(directory, "out/app", ""), expected);
    fs::create_dir(directory.join("elsewhere")).unwrap();
    let options = ["--manifest-path", "../GpuStub.toml", "--force"];
    let arguments = [
        "repair",
        "../app",
        "--library",
        "acme",
        "--out-dir",
        "../out",
    ];
    ends(
        0,
        &directory.join("elsewhere"),
        &[&arguments[..], &options].concat(),
    );
}

#[test]
fn libraries_that_cannot_be_used_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    program(directory);
    for (code, libraries, parts) in [
        (
            101,
            &["cudart"][..],
            ["repair knows `cudart`", "leave `--library cudart` out"],
        ),
        (
            101,
            &["mine=link/libcudart.so"],
            ["repair knows `cudart`", "leave `--library mine` out"],
        ),
        (
            101,
            &["Acme=link/libacme.so.3"],
            ["`Acme` cannot be the name", "lower-case letters"],
        ),
        (
            2,
            &["link/libacme.so.3"],
            ["write it with a name", "acme=link/libacme.so.3"],
        ),
        (2, &["acme="], ["acme=path/to", ""]),
        (1, &["acme=app.c"], ["error[malformed-library]", "app.c"]),
        (
            101,
            &["acme=link/libacme.so.3", "acme=link/libacme.so.3"],
            ["is given twice", "name of its own"],
        ),
        (
            101,
            &["acme"],
            ["GpuStub.toml", "--library acme=path/to/the/library"],
        ),
    ] {
        let mut arguments = vec!["repair", "app", "--out-dir", "out"];
        for library in libraries {
            arguments.extend(["--library", library]);
        }
        let (_, err) = ends(code, directory, &arguments);
        for part in parts {
            assert!(err.contains(part), "{part}: {err}");
        }
        assert!(!directory.join("out").exists());
    }
    // The image needs another version.
    library(
        directory,
        "new/libacme.so.4",
        "int acmeOpen(int *p) { return 7; }\n",
        &[],
    );
    let library = ["--library", "acme=new/libacme.so.4", "--returns", "status"];
    let repair = [&["repair", "app", "--out-dir", "out"][..], &library].concat();
    let (_, err) = ends(1, directory, &repair);
    assert!(
        err.contains("needs libacme.so.3, another version of `acme` than that of `--library`")
            && err.contains("add `--library NAME=path/to/libacme.so.3`"),
        "{err}"
    );
    // Each version has a name of its own.
    let both = [&repair[..], &["--library", "acme3=link/libacme.so.3"]].concat();
    ends(0, directory, &both);
    assert!(
        output(directory, "out/app", "link")
            .unwrap()
            .contains("acme 7")
    );
}

/// Data, and functions that the library lacks, are recognised without symbol versions.
#[test]
fn data_and_unknown_functions_are_reported() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    cudart(directory, "12");
    acme(directory);
    for (function, reason) in [
        (
            "extern int acmeTable[4]; int f(void) { return acmeTable[0]; }",
            "imports the data `acmeTable`",
        ),
        (
            "int _ZN4acme4copyEv(void); int f(void) { return _ZN4acme4copyEv(); }",
            "there are no stubs of C++",
        ),
        (
            "int acmeTomorrow(void), acmeOpen(int *); int f(void) { return acmeTomorrow() + acmeOpen(0); }",
            "no stubs: acmeTomorrow",
        ),
    ] {
        image(
            directory,
            "libuser.so",
            &format!("{COUNT}{function}"),
            &["-shared", ACME],
        );
        let library = format!("acme={ACME}");
        let options = [
            "--library",
            &library,
            "--returns",
            "status",
            "--out-dir",
            "out",
        ];
        let repair = [&["repair", "libuser.so"][..], &options].concat();
        let (_, err) = ends(1, directory, &repair);
        assert!(err.contains(reason), "{reason}: {err}");
        // The image keeps the library, and starts where it is installed.
        let (_, err) = ends(0, directory, &[&repair[..], &["--partial"]].concat());
        assert!(
            err.contains(
                "warning[unsupported-image]: `libuser.so` is repaired in part: it imports"
            ) && err.contains("it starts only where libacme.so.3 is installed"),
            "{err}"
        );
        let bytes = fs::read(directory.join("out/libuser.so")).unwrap();
        let files = [("libuser.so".to_owned(), bytes)].into();
        let needed = needed(&files, "libuser.so");
        assert!(needed.contains(&"libacme.so.3".to_owned()), "{needed:?}");
        assert!(
            !needed.contains(&"libcudart.so.12".to_owned()),
            "{needed:?}"
        );
    }
}

/// A wheel keeps the library that it brings, and a copy unless `--remove-copies` is given; from a directory of its runpath
/// outside of the package, the stub library finds the library.
#[test]
fn libraries_of_wheels_and_of_runpaths() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    cudart(directory, "12");
    let copy = "acme.libs/libacme-5a077122.so.3.0.1";
    let code = "int acmeOpen(int *p) { return 7; }\n";
    library(directory, ACME, code, &[]);
    library(directory, &format!("content/{copy}"), code, &[]);
    let core =
        "int acmeOpen(int *), getpid(void); int f(void) { return getpid() ? acmeOpen(0) : 0; }\n";
    let runpath = "-Wl,-rpath,$ORIGIN/../acme.libs:$ORIGIN/../other/lib";
    let path = format!("content/{copy}");
    library(directory, "content/acme/_core.so", core, &[&path, runpath]);
    wheel(directory, &[]);
    let library_option = format!("acme={ACME}");
    let options = [
        "--library",
        &library_option,
        "--returns",
        "status",
        "--out-dir",
        "out",
    ];
    let repair = [&["repair", NAME][..], &options].concat();
    let (_, err) = ends(0, directory, &repair);
    assert!(err.contains("it brings its GPU libraries"), "{err}");
    ends(
        0,
        directory,
        &[&repair[..], &["--remove-copies", "--force"]].concat(),
    );
    let files = contents(&directory.join("out").join(NAME));
    assert!(!files.contains_key(copy), "{:?}", files.keys());
    assert_eq!(needed(&files, "acme/_core.so")[0], "libgpustub_acme_1_0.so");

    // Installed: the library is in another package's directory.
    for (path, bytes) in &files {
        let path = directory.join("site").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    let main = "#include <dlfcn.h>\n#include <stdio.h>\nint main(void) {\n\
                void *core = dlopen(\"site/acme/_core.so\", RTLD_NOW);\n\
                if (!core) { puts(dlerror()); return 1; }\n\
                printf(\"%d\\n\", ((int (*)(void))dlsym(core, \"f\"))()); }\n";
    write(directory, "main.c", main);
    cc(directory, &["-o", "main", "main.c", "-ldl"]);
    assert_eq!(output(directory, "main", "").as_deref(), Some("-1\n"));
    fs::create_dir_all(directory.join("site/other/lib")).unwrap();
    fs::copy(
        directory.join(ACME),
        directory.join("site/other/lib/libacme.so.3"),
    )
    .unwrap();
    assert_eq!(output(directory, "main", "").as_deref(), Some("7\n"));
}

/// An image keeps the library that it loads for another image, unless the stub library serves both.
#[test]
fn libraries_for_other_images() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    cudart(directory, "12");
    library(
        directory,
        ACME,
        "int acmeOpen(int *p) { return 7; } int acmeNew(void) { return 7; }\n",
        &[],
    );
    fs::create_dir_all(directory.join("tree")).unwrap();
    // libuser.so finds acmeOpen in the library that libbase.so needs.
    let base = "int acmeOpen(int *), getpid(void); int base(void) { return getpid() ? acmeOpen(0) : 0; }\n";
    library(directory, "tree/libbase.so", base, &[ACME]);
    let user = "int base(void), acmeOpen(int *), getpid(void);\n\
                int f(void) { return getpid() ? base() + acmeOpen(0) : 0; }\n";
    library(
        directory,
        "tree/libuser.so",
        user,
        &["tree/libbase.so", "-Wl,-rpath,$ORIGIN"],
    );
    let file = format!("acme={ACME}");
    let repair = [
        "repair",
        "tree",
        "--library",
        &file,
        "--returns",
        "status",
        "--out-dir",
        "out",
    ];
    let (_, err) = ends(0, directory, &repair);
    assert!(err.contains("2 images with"), "{err}");
}
