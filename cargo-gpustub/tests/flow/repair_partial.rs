//! `repair --partial`: images that need a library without stubs, before and after.

use std::fs;
use std::process::Command;

use super::repair::{COUNT, cudart, image};
use super::repair_libraries::library;
use super::repair_wheels::needed;
use super::{cc, ends, write};

/// A library of NVIDIA of which there are no stubs: images are loaded with `dlopen` before and after.
#[test]
fn images_with_an_unknown_library_are_repaired_in_part() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    cudart(directory, "12");
    let unknown = "unknown/libcudensitymat.so.0";
    library(
        directory,
        unknown,
        "int cudensitymatOpen(void) { return 8; }\n",
        &[],
    );
    let code = format!(
        "{COUNT}int cudensitymatOpen(void); int f(void) {{ return 1000 * cudensitymatOpen() + count(); }}\n"
    );
    image(directory, "libuser.so", &code, &["-shared", unknown]);
    image(
        directory,
        "libfriend.so",
        COUNT,
        &["-shared", "-Wl,-z,defs"],
    );
    let main = "#include <dlfcn.h>\n#include <stdio.h>\nint main(int argc, char **argv) {\n\
                void *image = dlopen(argv[1], RTLD_NOW);\n\
                if (!image) { puts(dlerror()); return 1; }\n\
                printf(\"%d\\n\", ((int (*)(void))dlsym(image, \"f\"))()); }\n";
    write(directory, "main.c", main);
    cc(directory, &["-o", "main", "main.c", "-ldl"]);
    let load = |image: &str, libraries: &str| {
        let mut command = Command::new(directory.join("main"));
        let command = command
            .arg(directory.join(image))
            .env("LD_LIBRARY_PATH", libraries);
        let output = command.current_dir(directory).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(load("libuser.so", "unknown").contains("libcudart.so.12: cannot open"));

    let repair = ["repair", "libuser.so", "libfriend.so", "--out-dir", "out"];
    let (_, err) = ends(1, directory, &repair);
    for part in [
        "error[unsupported-image]: `libuser.so` needs libcudensitymat.so.0, for which there are no stubs",
        "`--library NAME=path/to/libcudensitymat.so.0` makes stubs of its functions",
        "`--partial` repairs it for its other libraries",
        "1 image with",
    ] {
        assert!(err.contains(part), "{part}: {err}");
    }
    let partial = [&repair[..], &["--partial", "--force"]].concat();
    let (_, err) = ends(0, directory, &partial);
    for part in [
        "warning[unsupported-image]: `libuser.so` is repaired in part: it needs libcudensitymat.so.0",
        "it starts only where libcudensitymat.so.0 is installed",
        "its functions of cudart are bound at their first call, to any major",
        "2 images with",
    ] {
        assert!(err.contains(part), "{part}: {err}");
    }
    assert!(load("out/libuser.so", "").contains("libcudensitymat.so.0: cannot open"));
    // cudaErrorInsufficientDriver.
    assert_eq!(load("out/libuser.so", "unknown"), "11500\n");
    assert_eq!(load("out/libuser.so", "unknown:link"), "8707\n");

    let file = format!("cudensitymat={unknown}");
    let options = ["--library", &file, "--returns", "status", "--force"];
    ends(0, directory, &[&repair[..], &options].concat());
    assert_eq!(load("out/libuser.so", ""), "2500\n");

    // Nothing else to replace.
    let only = "int cudensitymatOpen(void); int f(void) { return cudensitymatOpen(); }\n";
    library(directory, "libonly.so", only, &[unknown]);
    let (_, err) = ends(
        1,
        directory,
        &["repair", "libonly.so", "--partial", "--out-dir", "out"],
    );
    assert!(
        err.contains("error[unsupported-image]: `libonly.so` needs libcudensitymat.so.0"),
        "{err}"
    );

    // Beside an image that is repaired, as a library for SYCL beside those for CUDA.
    let both = ["repair", "libonly.so", "libfriend.so", "--out-dir", "both"];
    let (_, err) = ends(1, directory, &both);
    assert!(
        err.contains("; `--partial` leaves it as it is, with a warning, for the other images"),
        "{err}"
    );
    let (_, err) = ends(
        0,
        directory,
        &[&both[..], &["--partial", "--force"]].concat(),
    );
    let stays =
        "warning[unsupported-image]: `libonly.so` stays as it is: it needs libcudensitymat.so.0";
    assert!(err.contains(stays), "{err}");
    let original = fs::read(directory.join("libonly.so")).unwrap();
    assert_eq!(
        fs::read(directory.join("both/libonly.so")).unwrap(),
        original
    );
    // Once more: the others are repaired already.
    let (_, err) = ends(
        0,
        directory,
        &["repair", "both", "--partial", "--out-dir", "again"],
    );
    assert!(err.contains("`libonly.so` stays as it is"), "{err}");
    assert!(
        err.contains("Copied again/both: repaired before, with libgpustub_"),
        "{err}"
    );
}

/// A vendor's library of the package needs what the package lacks: a partial repair leaves it to the image, from which the
/// vendor's library has it.
#[test]
fn libraries_that_a_vendors_library_needs_stay() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    cudart(directory, "12");
    library(
        directory,
        "link/libcublasLt.so.12",
        "int x(void) { return 7; }\n",
        &[],
    );
    let options = ["-Wl,--no-as-needed", "link/libcublasLt.so.12"];
    let vendor = "tree/libcudensitymat.so.0";
    library(
        directory,
        vendor,
        "int cudensitymatOpen(void) { return 8; }\n",
        &options,
    );
    let code = format!(
        "{COUNT}int cudensitymatOpen(void); int f(void) {{ return cudensitymatOpen(); }}\n"
    );
    let needs = [
        "-shared",
        "-Wl,--no-as-needed",
        vendor,
        "link/libcublasLt.so.12",
    ];
    image(directory, "tree/libuser.so", &code, &needs);
    let repair = ["repair", "tree", "--partial", "--out-dir", "out"];
    let (_, err) = ends(0, directory, &repair);
    let reason = "loads libcudensitymat.so.0 of this package, which needs libcublasLt.so.12";
    assert!(err.contains(reason), "{err}");
    let bytes = fs::read(directory.join("out/tree/libuser.so")).unwrap();
    let needed = needed(&[("libuser.so".to_owned(), bytes)].into(), "libuser.so");
    for (name, is_needed) in [
        ("libcudensitymat.so.0", true),
        ("libcublasLt.so.12", true),
        ("libcudart.so.12", false),
    ] {
        assert_eq!(needed.contains(&name.to_owned()), is_needed, "{needed:?}");
    }
}
