//! Builds that compile no device code: that of another build serves, or none is wanted.
#![cfg(all(unix, feature = "device-link"))]

#[path = "tools/package.rs"]
#[allow(dead_code, reason = "other tests need the rest of it")]
mod package;
#[path = "tools/toolkit.rs"]
#[allow(dead_code, reason = "other tests need the rest of it")]
mod toolkit;
#[path = "../../crates/engine/tests/tools/mod.rs"]
#[allow(dead_code, reason = "other tests need the rest of it")]
mod tools;

use std::fs;

use package::Package;
use toolkit::{MANIFEST, directives, expect, log, package};

/// OUT_DIRs of one target directory, and one of another.
#[test]
fn packages_compile_once_per_target_directory() {
    let manifest = format!("{MANIFEST}include-dirs = [\"$OUT_DIR/include\"]\n");
    let mut package = package("store", &manifest);
    let dir = package.dir.clone();
    let old = fs::File::options()
        .write(true)
        .open(dir.join("cuda/waves.cu"));
    old.unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
    for (out_dir, count) in [
        ("target/debug/build/p-1/out", 1),
        ("target/debug/build/p-2/out", 0),
        ("target/twin/build/p/3/out", 0),
        ("target/x86_64-unknown-linux-gnu/debug/build/p-4/out", 0),
        ("other/debug/build/p-1/out", 1),
        ("elsewhere", 1),
    ] {
        let out_dir = dir.join(out_dir);
        fs::create_dir_all(out_dir.join("include")).unwrap();
        package.set("OUT_DIR", &out_dir);
        assert_eq!(compiled(&package), count, "{out_dir:?}");
        let object = out_dir.join("gpustub/device-link/objects/waves/cuda-waves.cu.o");
        assert!(fs::metadata(object).unwrap().len() > 0);
    }
    // Other options: two entries.
    for (opt_level, count) in [("3", 1), ("0", 0)] {
        package.set("OUT_DIR", dir.join("target/debug/build/p-5/out"));
        package.set("OPT_LEVEL", opt_level);
        assert_eq!(compiled(&package), count, "{opt_level}");
    }
}

/// For lints and editors: without a compiler, and with the conditions of all tables.
#[test]
fn device_code_can_be_switched_off() {
    let module = "[device-link.my-waves]\ntype = \"module\"\nseparable = false\n\
                  sources = [\"cuda/*.cu\"]\narchs = [\"sm_80\"]\n";
    let mut package = package("switched-off", &format!("{MANIFEST}{module}"));
    package.set("CARGO_MANIFEST_LINKS", "waves");
    package.set("GPUSTUB_DEVICE_CODE", "off");
    let directives = directives(&package);
    expect(
        &directives.join("\n"),
        &[
            "cargo::rustc-check-cfg=cfg(gpustub_device_link, values(\"waves\"))",
            "cargo::rustc-cfg=gpustub_device_link=\"waves\"",
            "cargo::rustc-cfg=gpustub_device_link=\"my-waves\"",
            "cargo::rerun-if-env-changed=GPUSTUB_DEVICE_CODE",
        ],
    );
    for start in ["cargo::rustc-link", "cargo::metadata", "cargo::warning"] {
        assert!(
            directives.iter().all(|line| !line.starts_with(start)),
            "{directives:#?}"
        );
    }
    let start = "cargo::rustc-env=GPUSTUB_MODULE_MY_WAVES_WAVES=";
    let path = directives.iter().find_map(|line| line.strip_prefix(start));
    assert_eq!(fs::read(path.unwrap()).unwrap(), b"");
    assert_eq!(log(&package), "");
    package.set("GPUSTUB_DEVICE_CODE", "no");
    expect(
        &package.error(),
        &["unknown value of the environment variable GPUSTUB_DEVICE_CODE: \"no\""],
    );
}

/// Number of nvcc calls of a build.
fn compiled(package: &Package) -> usize {
    let before = log(package).lines().count();
    directives(package);
    log(package).lines().count() - before
}
