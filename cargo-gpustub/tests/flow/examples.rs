//! The examples at the end of each `--help`, run by a shell in a prepared directory.

#![allow(clippy::disallowed_methods, reason = "the shell finds `cargo` by PATH")]

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;

use snapbox::cmd::cargo_bin;

use super::pack::pack;
use super::repair_wheels::hash_and_size;
use super::{ACME, acme, cc, ends, write};

/// Commands in the help of a command.
fn commands(help: &str) -> Vec<&str> {
    help.lines()
        .skip_while(|line| !line.starts_with("Usage:"))
        .take_while(|line| *line != "Options:" && *line != "Arguments:")
        .filter_map(|line| line.strip_prefix("  "))
        .filter(|line| !line.starts_with(' '))
        .filter_map(|line| line.split(' ').next())
        .collect()
}

/// Collects all examples, each with the path of its command.
fn collect_examples(path: &[&str], examples: &mut Vec<(Vec<String>, String)>) {
    let (help, _) = ends(0, Path::new("."), &[path, &["--help"]].concat());
    let (_, section) = help.split_once("\nExamples:\n").expect("examples");
    for line in section.lines().map_while(|line| line.strip_prefix("  ")) {
        let path = path.iter().map(|name| (*name).to_owned()).collect();
        examples.push((path, line.to_owned()));
    }
    let usage = help
        .lines()
        .find(|line| line.starts_with("Usage:"))
        .unwrap();
    if usage.ends_with("<COMMAND>") {
        for name in commands(&help).into_iter().filter(|name| *name != "help") {
            collect_examples(&[path, &[name]].concat(), examples);
        }
    }
}

/// Package with members `kernels` and `physics`, a library, a wheel, a program and archives.
fn prepare(directory: &Path) {
    write_packages(directory);
    acme(directory);
    let (list, _) = ends(0, directory, &["symbols", "libacme.so.3"]);
    write(directory, "symbols/acme.symbols", &list);
    build_archives(directory);
    build_images(directory);
    pack_wheel(directory);
    let git = Command::new("git")
        .current_dir(directory)
        .args(["init", "--quiet"])
        .status();
    assert!(git.expect("this test needs git").success());
}

fn manifest(name: &str, more: &str) -> String {
    format!(
        "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n{more}\
         [build-dependencies]\ngpustub-build = {{ workspace = true }}\n"
    )
}

fn write_packages(directory: &Path) {
    let workspace = "[workspace]\nmembers = [\"helper\", \"kernels\", \"physics\"]\n\
                     [workspace.dependencies]\ngpustub-build = { path = \"helper\" }\n\
                     [dependencies]\ncudarc = { path = \"cudarc\", features = [\"nvrtc\"] }\n";
    let cudarc = "[package]\nname = \"cudarc\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\
                  [features]\ndefault = [\"dynamic-linking\"]\ndynamic-linking = []\nnvrtc = []\n";
    write(directory, "cudarc/Cargo.toml", cudarc);
    write(directory, "cudarc/src/lib.rs", "");
    write(directory, "Cargo.toml", &manifest("app", workspace));
    let helper = "[package]\nname = \"gpustub-build\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\
                  [features]\narchive = []\ndevice-link = []\n";
    write(directory, "helper/Cargo.toml", helper);
    write(directory, "kernels/Cargo.toml", &manifest("kernels", ""));
    write(
        directory,
        "physics/Cargo.toml",
        &manifest("physics", "links = \"gpustub-physics\"\n"),
    );
    write(directory, "helper/src/lib.rs", HELPER);
    for source in ["src/lib.rs", "kernels/src/lib.rs", "physics/src/lib.rs"] {
        write(directory, source, "");
    }
    let archive = "\n[archive.builtins]\nlayers = { gfx900 = [\"gfx900.a\"] }\nviews = { gfx900 = [\"gfx900\"] }\n";
    let stubs =
        "\n[stub.nvrtc]\nheader-version = \"12\"\n\n[stub.cudart]\nheader-version = \"12\"\n";
    write(
        directory,
        "GpuStub.toml",
        &format!("{ACME}{stubs}{archive}"),
    );
    write(
        directory,
        "kernels/GpuStub.toml",
        &format!("schema = 1\n{stubs}"),
    );
    write(
        directory,
        "physics/build.rs",
        "fn main() { gpustub_build::finalize() }\n",
    );
    let device_link = "schema = 1\n\n[device-link.physics]\ninclude-dirs = [\"include\"]\n";
    write(directory, "physics/GpuStub.toml", device_link);
    write(directory, "physics/include/physics.cuh", "#pragma once\n");
}

fn build_archives(directory: &Path) {
    for name in ["gfx900", "gfx1100", "common"] {
        let source = format!(
            "int {}(void) {{ return 1; }}\n",
            if name == "common" { "shared" } else { "scale" }
        );
        write(directory, "member.c", &source);
        cc(directory, &["-c", "member.c", "-o", "member.o"]);
        let member = (
            format!("{name}.o"),
            fs::read(directory.join("member.o")).unwrap(),
        );
        pack(
            &directory.join("none"),
            &[member],
            &directory.join(format!("{name}.a")),
        )
        .unwrap();
    }
    ends(
        0,
        directory,
        &[
            "archive",
            "build",
            "-o",
            "kernels.a",
            "gfx900.a",
            "gfx1100.a",
        ],
    );
}

fn build_images(directory: &Path) {
    write(directory, "main.c", "int main(void) { return 0; }\n");
    fs::create_dir_all(directory.join("target/release")).unwrap();
    cc(directory, &["main.c", "-o", "target/release/app"]);
    write(
        directory,
        "cudart.c",
        "int cudaFree(void *p) { return !p; }\n",
    );
    let cudart = "libcudart.so.12";
    let soname = format!("-Wl,-soname,{cudart}");
    cc(
        directory,
        &["-shared", "-fPIC", "cudart.c", &soname, "-o", cudart],
    );
    write(
        directory,
        "user.c",
        "int cudaFree(void *);\nint main(void) { return cudaFree(0); }\n",
    );
    cc(directory, &["user.c", cudart, "-o", "program"]);
}

fn pack_wheel(directory: &Path) {
    fs::create_dir(directory.join("dist")).unwrap();
    let metadata = "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n";
    let record = format!(
        "demo-1.0.dist-info/METADATA,{}\ndemo-1.0.dist-info/RECORD,,\n",
        hash_and_size(metadata.as_bytes())
    );
    let members = [
        ("demo-1.0.dist-info/METADATA", metadata),
        ("demo-1.0.dist-info/RECORD", &record),
    ];
    let members = members.map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec()));
    pack(
        &directory.join("none"),
        &members,
        &directory.join("dist/demo-1.0-py3-none-any.whl"),
    )
    .unwrap();
}

/// Helper that compiles nothing, and reports a library of headers.
const HELPER: &str = r#"
pub fn build() {}
pub fn finalize() {
    let directory = |name| std::path::PathBuf::from(std::env::var_os(name).unwrap());
    let list = directory("OUT_DIR").join("gpustub/device-link/libraries");
    std::fs::create_dir_all(list.parent().unwrap()).unwrap();
    let include = directory("CARGO_MANIFEST_DIR").join("include");
    let text = "gpustub-device-link 5\nlibrary physics\npackage physics\nbuilt true\narchive \n\
                cudart none\nstubs none\ntype static\ninclude-dir ";
    std::fs::write(list, format!("{text}{}\n", include.display())).unwrap();
}
"#;

/// Whether findings are a result of this example: the command then exits with 1.
fn may_have_findings(line: &str) -> bool {
    ["gpustub check", "gpustub diff", "sync --check"]
        .iter()
        .any(|part| line.contains(part))
}

#[test]
fn each_example_runs() {
    let template = tempfile::tempdir().unwrap();
    prepare(template.path());
    let bin = tempfile::tempdir().unwrap();
    let tool = cargo_bin!("cargo-gpustub");
    let mut path = OsString::from(tool.parent().unwrap());
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap());
    let mut examples = Vec::new();
    collect_examples(&[], &mut examples);
    assert!(examples.len() > 40, "{examples:?}");
    for (command, line) in examples {
        let directory = bin.path().join("work");
        let cp = Command::new("cp")
            .arg("-R")
            .arg(template.path())
            .arg(&directory)
            .status();
        assert!(cp.unwrap().success());
        if command == ["init"] {
            fs::remove_file(directory.join("GpuStub.toml")).unwrap();
            fs::remove_file(directory.join("kernels/GpuStub.toml")).unwrap();
        }
        let library = directory.join("libacme.so.3").display().to_string();
        let script = line.replace("/opt/acme/lib/libacme.so", &library);
        let output = Command::new("bash")
            .current_dir(&directory)
            .args(["-c", &script])
            .env("PATH", &path)
            .env("CUDA_HOME", "/nonexistent")
            .env("CARGO_NET_OFFLINE", "true")
            .output()
            .unwrap();
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        let code = output.status.code();
        assert!(
            code == Some(0) || code == Some(1) && may_have_findings(&line),
            "{line}\n{code:?}\n{text}"
        );
        fs::remove_dir_all(&directory).unwrap();
    }
}
