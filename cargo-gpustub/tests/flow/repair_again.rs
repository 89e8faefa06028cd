//! `repair` of wheels that were repaired before, and have a stub library.

use std::fs::{self, File};
use std::io::Cursor;
use std::num::NonZeroUsize;
use std::path::Path;
use std::process::Command;

use gpustub_check::read::Zip;
use gpustub_repair::wheel::{Changes, Wheel};

use super::repair::{COUNT, cudart, image};
use super::repair_wheels::{NAME, contents, needed, wheel};
use super::{cc, ends, write};

const ALLOCATE: &str = "int cudaMalloc(void **, unsigned long);\n\
    int call(void) { void *p; return cudaMalloc(&p, 4); }\n";

/// Calls a function of each image, in one process.
const LOAD: &str = "#include <dlfcn.h>\n#include <stdio.h>\n\
    int main(int argc, char **argv) { for (int i = 1; i < argc; i += 2) {\n\
    void *image = dlopen(argv[i], RTLD_NOW);\n\
    int (*f)(void) = image ? (int (*)(void))dlsym(image, argv[i + 1]) : 0;\n\
    if (!f) return fprintf(stderr, \"%s\\n\", dlerror()), 3;\n\
    printf(\"%d\\n\", f()); } }\n";

/// Unpacks a wheel, and packs it again with an image that an earlier repair did not see.
fn pack_with(directory: &Path, repaired: &str, path: &str, code: &str) {
    for (name, bytes) in contents(&directory.join(repaired).join(NAME)) {
        let path = directory.join("content").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    fs::remove_file(directory.join("content/acme-1.0.dist-info/RECORD")).unwrap();
    image(directory, &format!("content/{path}"), code, &["-shared"]);
    fs::remove_file(directory.join(format!("content/{path}.c"))).unwrap();
    wheel(directory, &[]);
}

fn zip(directory: &Path, wheel: &str) -> Zip {
    Zip::new(File::open(directory.join(wheel)).unwrap()).unwrap()
}

/// Builds a wheel, and repairs it into `out1`.
fn repair_a_wheel(directory: &Path) {
    cudart(directory, "12");
    image(directory, "content/acme/_core.so", COUNT, &["-shared"]);
    fs::remove_file(directory.join("content/acme/_core.so.c")).unwrap();
    wheel(directory, &[]);
    ends(0, directory, &["repair", NAME, "--out-dir", "out1"]);
}

#[test]
fn a_further_stub_library_has_another_name() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    repair_a_wheel(directory);
    pack_with(directory, "out1", "acme/_more.so", ALLOCATE);
    ends(0, directory, &["repair", NAME, "--out-dir", "out2"]);
    // The same functions as those of `_more.so`.
    pack_with(directory, "out2", "acme/_last.so", ALLOCATE);
    ends(0, directory, &["repair", NAME, "--out-dir", "out3"]);

    let output = format!("out3/{NAME}");
    let files = contents(&directory.join(&output));
    assert_eq!(zip(directory, &output).files().count(), files.len());
    let stub = |image: &str| needed(&files, image)[0].clone();
    let first = stub("acme/_core.so");
    assert_eq!(first, "libgpustub_acme_1_0.so");
    let second = stub("acme/_more.so");
    assert!(second.starts_with("libgpustub_acme_1_0_"), "{second}");
    assert_eq!(stub("acme/_last.so"), second);
    let libraries = files.keys().filter(|name| name.contains("libgpustub_"));
    let paths = [first, second].map(|name| format!("acme.libs/{name}"));
    assert_eq!(libraries.collect::<Vec<_>>(), paths.each_ref());

    pack_with(directory, "out3", "acme/_unused.so", "");
    write(directory, "load.c", LOAD);
    cc(directory, &["-o", "load", "load.c", "-ldl"]);
    let mut load = Command::new(directory.join("load"));
    load.env("GPUSTUB_CUDART_PATH", "off");
    for (image, function) in [("_core", "count"), ("_more", "call"), ("_last", "call")] {
        let path = directory.join(format!("content/acme/{image}.so"));
        load.arg(path).arg(function);
    }
    let output = load.output().unwrap();
    // Of `cudaErrorInsufficientDriver`, 35.
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "3500\n35\n35\n",
        "{output:?}"
    );
}

#[test]
fn a_repaired_wheel_is_copied() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    repair_a_wheel(directory);
    let repaired = format!("out1/{NAME}");
    for (options, verb, path) in [
        (&["--dry-run"][..], "Copying", &repaired),
        (&[], "Copied", &format!("out2/{NAME}")),
        (
            &["--header-version", "11"],
            "Copied",
            &format!("out2/{NAME}"),
        ),
    ] {
        let words = ["repair", &repaired, "--out-dir", "out2"];
        let (_, err) = ends(0, directory, &[&words[..], options].concat());
        let line = format!(
            "{verb} {path}: repaired before, with libgpustub_acme_1_0.so; other options are for the original\n"
        );
        assert!(err.ends_with(&line), "{err}");
    }
    let [first, second] = ["out1", "out2"].map(|out| directory.join(out).join(NAME));
    assert_eq!(fs::read(first).unwrap(), fs::read(second).unwrap());
    let (_, err) = ends(101, directory, &["repair", &repaired, "--out-dir", "out1"]);
    assert!(err.contains("would replace the original"), "{err}");

    image(directory, "libuser.so", COUNT, &["-shared"]);
    ends(0, directory, &["repair", "libuser.so", "--out-dir", "once"]);
    let again = ["repair", "once/libuser.so", "--out-dir", "twice"];
    let (_, err) = ends(0, directory, &again);
    assert!(
        err.contains("Copied twice/libuser.so: repaired before, with libgpustub_"),
        "{err}"
    );
}

#[test]
fn no_file_is_added_twice() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let path = "acme/present.so";
    wheel(directory, &[(path, "")]);
    let rewrite = |added: &str, removed: &[&str]| {
        let wheel = Wheel::new(zip(directory, NAME)).unwrap();
        let mut changes = Changes::default();
        changes.added.insert(added.to_owned(), b"");
        changes
            .removed
            .extend(removed.iter().map(|path| path.to_string()));
        wheel.rewrite(changes, &mut Cursor::new(Vec::new()), NonZeroUsize::MIN)
    };
    for added in [path, "acme/PRESENT.so"] {
        let error = rewrite(added, &[]).unwrap_err().to_string();
        assert_eq!(error, format!("already has `{added}`"));
        rewrite(added, &[path]).unwrap();
    }
}
