//! A CUDA toolkit that only records its command lines.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::package::Package;

pub const MANIFEST: &str =
    "schema = 1\n[device-link.waves]\nsources = [\"cuda/*.cu\"]\narchs = [\"sm_80\"]\n";

/// Records its command line; makes an object as nvcc does, with a list of its inputs.
const NVCC: &str = r#"#!/bin/sh
echo "nvcc $*" >>'LOG'
while [ $# -gt 0 ]; do
    case $1 in
        -o) output=$2; shift ;;
        -MF) list=$2; shift ;;
        *.cu) source=$1 ;;
    esac
    shift
done
printf '%s: %s\n' "$output" "$source" >"$list"
echo '.data; .globl __fatbinwrap_1; __fatbinwrap_1: .byte 0' | cc -x assembler -c -o "$output" -
"#;

pub fn executable(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A package with one source, and a toolkit in its directory.
pub fn package(name: &str, manifest: &str) -> Package {
    let mut package = Package::new(name, manifest);
    for (name, value) in [
        ("CARGO_PKG_VERSION", "0.1.0"),
        ("OPT_LEVEL", "0"),
        ("DEBUG", "false"),
        ("NUM_JOBS", "1"),
    ] {
        package.set(name, value);
    }
    let dir = package.dir.clone();
    fs::create_dir_all(dir.join("cuda")).unwrap();
    fs::write(dir.join("cuda/waves.cu"), "").unwrap();
    let text = NVCC.replace("LOG", dir.join("log").to_str().unwrap());
    executable(&dir.join("toolkit/bin/nvcc"), &text);
    fs::create_dir_all(dir.join("toolkit/include/crt")).unwrap();
    package.set("CUDA_HOME", dir.join("toolkit"));
    package
}

pub fn log(package: &Package) -> String {
    fs::read_to_string(package.dir.join("log")).unwrap_or_default()
}

#[track_caller]
pub fn expect(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is missing from\n{text}");
    }
}

pub fn directives(package: &Package) -> Vec<String> {
    package
        .output()
        .directives
        .iter()
        .map(ToString::to_string)
        .collect()
}
