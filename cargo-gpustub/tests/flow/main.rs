//! Complete workflows of the subcommand that need a compiler, a real library or a killed process.

mod abi;
mod archive_tables;
mod archive_unpack;
mod archive_views;
mod archives;
mod completions;
mod cuda;
mod device_links;
mod device_runtime;
mod doctor;
mod documents;
mod empty_path;
mod examples;
mod finalizer_targets;
mod finalizers;
mod formats;
mod graphs;
mod headers;
#[cfg(unix)]
mod interrupts;
mod libraries;
mod link_archs;
mod offers;
mod own;
mod own_data;
mod own_headers;
mod refusals;
mod renames;
mod repair;
mod repair_advice;
mod repair_again;
mod repair_archives;
mod repair_data;
mod repair_directory;
mod repair_kept;
mod repair_libraries;
mod repair_partial;
mod repair_wheels;
mod repair_windows;
mod sources;
mod stale;
mod sync;
mod terminal;
mod toolkit;
mod without_cargo;
mod workspaces;

#[path = "../support/pack.rs"]
mod pack;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use snapbox::cmd::cargo_bin;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Path of the repository.
fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

/// Path of an unpacked package.
#[expect(
    clippy::disallowed_methods,
    reason = "the environment names the directory of the packages"
)]
fn component(name: &str) -> PathBuf {
    let components = std::env::var_os("GPUSTUB_TEST_COMPONENTS")
        .expect("GPUSTUB_TEST_COMPONENTS names the directory of unpacked packages");
    Path::new(&components).join(name)
}

fn gpustub(directory: &Path, arguments: &[&str]) -> Command {
    // Cargo asks the compiler for its version and targets at each call, and stores the answers in an existing target directory.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("flow");
    fs::create_dir_all(&target).unwrap();
    let mut command = Command::new(cargo_bin!("cargo-gpustub"));
    command
        .current_dir(directory)
        .args(arguments)
        .env("CUDA_HOME", "/nonexistent")
        .env("CARGO_NET_OFFLINE", "true")
        .env("CARGO_TARGET_DIR", target)
        .env_remove("GPUSTUB_ACME_PATH");
    command
}

fn run(directory: &Path, arguments: &[&str]) -> Output {
    gpustub(directory, arguments).output().unwrap()
}

/// Runs the subcommand, which must exit with this code; returns standard output and standard error.
fn ends(code: i32, directory: &Path, arguments: &[&str]) -> (String, String) {
    ended(code, run(directory, arguments), arguments)
}

/// Checks the exit code of a run; returns standard output and standard error.
fn ended(code: i32, output: Output, arguments: &[&str]) -> (String, String) {
    let out = String::from_utf8(output.stdout).unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        output.status.code(),
        Some(code),
        "{arguments:?}\n{out}\n{err}"
    );
    (out, err)
}

fn cc(directory: &Path, arguments: &[&str]) {
    let output = Command::new("cc")
        .current_dir(directory)
        .args(arguments)
        .output()
        .expect("these tests need a C compiler `cc`");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn write(directory: &Path, name: &str, text: &str) {
    let path = directory.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn package(directory: &Path, name: &str, more: &str) {
    let text =
        format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n{more}");
    write(directory, "Cargo.toml", &text);
    write(directory, "src/lib.rs", "");
}

/// Compiles a user-defined library: two functions and a weak one.
fn acme(directory: &Path) {
    write(
        directory,
        "acme.c",
        "int acmeOpen(void **h) { *h = &h; return 0; }\n\
         int acmeCount(int *n) { *n = 42; return 0; }\n\
         __attribute__((weak)) int acmeWeak(void) { return 1; }\n",
    );
    cc(
        directory,
        &[
            "-shared",
            "-fPIC",
            "-Wl,-soname,libacme.so.3",
            "-o",
            "libacme.so.3",
            "acme.c",
        ],
    );
}

const ACME: &str = "schema = 1\n\n[stub.acme]\nload-names = { linux = [\"libacme.so.3\"] }\n\
                    symbols = \"symbols/acme.symbols\"\n\
                    fallback = { status = 999, string = \"no acme\", returns = \"status\" }\n";
