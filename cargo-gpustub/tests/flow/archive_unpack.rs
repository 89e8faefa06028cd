//! Device code of fat objects, in views of its own.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{cc, ends, write};

const SECTION: &str = "__CLANG_OFFLOAD_BUNDLE__hip-amdgcn-amd-amdhsa--";

/// Creates a static library whose objects have code for these architectures, in the form of clang's older driver.
fn library(directory: &Path, name: &str, archs: &[&str]) {
    write(
        directory,
        "host.c",
        &format!("int {name}(void) {{ return 1; }}"),
    );
    cc(directory, &["-c", "host.c", "-o", &format!("{name}.o")]);
    for arch in archs {
        write(
            directory,
            "device.c",
            &format!("int {name}_device(void) {{ return sizeof \"{arch}\"; }}"),
        );
        cc(directory, &["-c", "device.c", "-o", "device.o"]);
        let section = format!("{SECTION}{arch}");
        tool(
            directory,
            "objcopy",
            &[
                "--add-section",
                &format!("{section}=device.o"),
                &format!("{name}.o"),
            ],
        );
    }
    tool(
        directory,
        "ar",
        &["rcs", &format!("lib{name}.a"), &format!("{name}.o")],
    );
}

fn tool(directory: &Path, tool: &str, arguments: &[&str]) {
    let status = Command::new(tool)
        .current_dir(directory)
        .args(arguments)
        .status();
    assert!(status.unwrap().success(), "{tool} {arguments:?}");
}

#[test]
fn archive_build_unpacks_fat_objects() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    library(directory, "first", &["gfx90a", "gfx1100:xnack+"]);
    library(directory, "second", &["gfx90a"]);
    let build = |arguments: &[&str]| {
        let words = [&["archive", "build", "-o", "all.a"], arguments].concat();
        ends(0, directory, &words).1
    };
    let printed = build(&["--view", "v=libfirst.a"]);
    assert!(
        printed.contains("a view of its own: `--unpack`"),
        "{printed}"
    );
    let printed = build(&["--unpack", "libfirst.a", "libsecond.a"]);
    assert!(!printed.contains("warning"), "{printed}");
    let (listed, _) = ends(0, directory, &["archive", "list", "all.a"]);
    assert_eq!(
        listed,
        "VIEW            MEMBERS  SYMBOLS  LAYERS\n\
         host                  2        2  libfirst, libsecond (default)\n\
         gfx1100:xnack+        1        1  libfirst\n\
         gfx90a                2        2  libfirst, libsecond\n"
    );
    let (definitions, _) = ends(
        0,
        directory,
        &["archive", "find", "all.a", "second_device", "first_device"],
    );
    assert_eq!(
        definitions,
        "gfx1100:xnack+  first_device   first.o   libfirst\n\
         gfx90a          second_device  second.o  libsecond\n\
         gfx90a          first_device   first.o   libfirst\n"
    );
    // The default view is the library of the host.
    write(
        directory,
        "main.c",
        "int first(void), second(void); int main(void) { return first() + second() - 2; }",
    );
    cc(directory, &["main.c", "all.a", "-o", "main"]);
    tool(directory, "./main", &[]);

    let (_, err) = ends(
        101,
        directory,
        &[
            "archive",
            "build",
            "-o",
            "b.a",
            "--unpack",
            "libfirst.a",
            "--default-view",
            "gfx9",
        ],
    );
    assert!(err.contains("did you mean `gfx90a`?"), "{err}");
    build(&["--unpack", "libfirst.a", "--default-view", "gfx90a"]);
    let (listed, _) = ends(0, directory, &["archive", "list", "all.a"]);
    assert!(
        listed.contains("libfirst (default)\n") && listed.ends_with("(default)\n"),
        "{listed}"
    );
}

#[test]
fn archive_build_keeps_what_cannot_be_unpacked() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    library(directory, "plain", &[]);
    let build = |archive: &str| {
        ends(
            0,
            directory,
            &["archive", "build", "-o", "all.a", "--unpack", archive],
        )
        .1
    };
    let printed = build("libplain.a");
    assert!(printed.contains("warning[nothing-unpacked]"), "{printed}");
    let (_, printed) = ends(
        0,
        directory,
        &["archive", "build", "-o", "all.a", "--split", "libplain.a"],
    );
    assert!(
        printed.contains("warning[unsplit-bitcode]: the inputs have no modules of LLVM bitcode"),
        "{printed}"
    );
    // A bundle whose code is cut off.
    let mut bundle = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
    let id = b"hip-amdgcn-amd-amdhsa--gfx90a";
    for word in [1, 4096, 100, id.len() as u64] {
        bundle.extend(word.to_le_bytes());
    }
    bundle.extend(id);
    fs::write(directory.join("cut.bc"), &bundle).unwrap();
    tool(directory, "ar", &["rcs", "libcut.a", "cut.bc"]);
    let (_, err) = ends(
        1,
        directory,
        &["archive", "build", "-o", "all.a", "--unpack", "libcut.a"],
    );
    assert!(
        err.contains("an offload bundle of clang in `cut.bc` is damaged"),
        "{err}"
    );
}
