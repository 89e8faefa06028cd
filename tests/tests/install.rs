//! Commands of `docs/install.md`: the static binary, and the subcommand installed from git.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_tests::cargo::{cargo, cargo_home, without_own_cargo};
use gpustub_tests::command::{path_with, succeed};
use gpustub_tests::components::target_dir;
use gpustub_tests::elf::readelf;
use gpustub_tests::isolated::Isolated;
use gpustub_tests::readme::commands;
use gpustub_tests::scratch::scratch;
use gpustub_tests::{Result, repository};

const PAGE: &str = "docs/install.md";

/// Lines of the page that begin a command with these words.
fn documented(words: &str) -> Result<Vec<String>> {
    let all = commands(PAGE)?.into_iter().map(|(command, _)| command);
    let found: Vec<String> = all.filter(|line| line.starts_with(words)).collect();
    if found.is_empty() {
        return Err(format!("{PAGE} has no command `{words}`").into());
    }
    Ok(found)
}

#[test]
fn page_names_the_profile_and_both_sources() -> Result<()> {
    let build = documented("cargo build")?.remove(0);
    assert!(build.contains("--profile static --target x86_64-unknown-linux-musl"));
    let root = fs::read_to_string(repository().join("Cargo.toml"))?;
    assert!(root.contains("\n[profile.static]\ninherits = \"release\"\n"));
    let installs = documented("cargo install")?;
    let [git, path] = &installs[..] else {
        return Err(format!("{installs:?}").into());
    };
    let repository = "https://github.com/gpustub/gpustub";
    assert!(
        git.ends_with(&format!("--git {repository} cargo-gpustub")),
        "{git}"
    );
    assert!(path.ends_with("--path cargo-gpustub"), "{path}");
    assert!(root.contains(&format!("repository = \"{repository}\"")));
    Ok(())
}

/// The binary of a release's archive on a machine that has nothing else, and no more bytes than the page says.
#[test]
#[ignore = "builds with link-time optimization: minutes (tests/run --all)"]
fn heavy_static_binary_needs_nothing() -> Result<()> {
    for line in ["rustup target add", "cargo build"] {
        let line = documented(line)?.remove(0);
        let mut bash = Command::new("bash");
        bash.args(["-euc", &line]).current_dir(repository());
        without_own_cargo(&mut bash);
        succeed(bash.env("CARGO_TARGET_DIR", target_dir()))?;
    }
    let release = scratch()?;
    let program = released("x86_64-unknown-linux-musl", release.path())?;
    let bytes = fs::metadata(&program)?.len();
    println!("{bytes} bytes");
    let page = fs::read_to_string(repository().join(PAGE))?;
    let stated = page
        .split(" has ")
        .find_map(|rest| rest.split_once(" MB, stripped"));
    let stated: f64 = stated.ok_or("no size in the page")?.0.parse()?;
    let megabytes = bytes as f64 / 1e6;
    assert!(
        (megabytes - stated).abs() < 0.5,
        "{megabytes:.1} MB, not {stated}"
    );
    assert!(!readelf(&["--program-headers"], &program)?.contains("INTERP"));

    let machine = Isolated::new()?;
    machine.copy(&program, Path::new("/cargo-gpustub"))?;
    fs::write(machine.path("/gpu.c"), "int gpuWork(void) { return 0; }\n")?;
    let mut cc = Command::new("cc");
    cc.current_dir(machine.path("/"));
    succeed(cc.args([
        "-shared",
        "-fPIC",
        "-Wl,-soname,libgpu.so.1",
        "-o",
        "libgpu.so.1",
        "gpu.c",
    ]))?;
    let stubs = [
        "export",
        "stubs",
        "cudart",
        "--header-version",
        "13",
        "--out-dir",
    ];
    for (words, expected) in [
        ([&stubs[..], &["/out", "--sources-only"]].concat(), ""),
        (vec!["check", "/libgpu.so.1"], ""),
        (vec!["symbols", "/libgpu.so.1"], "\ngpuWork\n"),
        (
            vec!["diff", "/libgpu.so.1", "/libgpu.so.1"],
            "same functions",
        ),
        (vec!["explain", "static-libc"], "static-libc: "),
    ] {
        let ran = machine.run_with("/cargo-gpustub", &words, &[])?;
        ran.success()?.expect_in_order(&[expected])?;
    }
    assert!(machine.path("/out/src/stubs.S").is_file());
    let compiled = [&stubs[..], &["/compiled"]].concat();
    for (words, expected) in [(compiled, ""), (vec!["doctor"], "C compiler  none\n")] {
        let ran = machine.run_with("/cargo-gpustub", &words, &[])?;
        assert_eq!(ran.status.code(), Some(101), "{words:?}");
        let missing = "error: no C compiler for x86_64-unknown-linux-gnu: ";
        assert!(ran.stderr.starts_with(missing), "{}", ran.stderr);
        ran.expect_in_order(&[expected])?;
    }
    Ok(())
}

/// Program of the archive that a release has for a target, unpacked in a directory.
fn released(target: &str, directory: &Path) -> Result<PathBuf> {
    let mut package = Command::new(repository().join(".github/package-binary"));
    without_own_cargo(&mut package);
    package.arg(target).arg(directory);
    succeed(package.env("CARGO_TARGET_DIR", target_dir()))?;
    let name = format!("cargo-gpustub-{target}");
    let unpack = format!("sha256sum --check {name}.tgz.sha256 && tar -xzf {name}.tgz");
    succeed(
        Command::new("bash")
            .current_dir(directory)
            .args(["-euc", &unpack]),
    )?;
    let unpacked = directory.join(name);
    for file in [
        "CHANGELOG.md",
        "LICENSE-APACHE",
        "LICENSE-MIT",
        "completions/bash",
        "man/cargo-gpustub-check.1",
    ] {
        let bytes = fs::metadata(unpacked.join(file)).map_err(|e| format!("{file}: {e}"))?;
        assert!(bytes.len() > 500, "{file}");
    }
    Ok(unpacked.join("cargo-gpustub"))
}

/// From a clone to a program that runs: install, init, add, sync, build, with a cargo home of its
/// own that has the packages of the registry only.
#[test]
#[ignore = "compiles the subcommand: minutes (tests/run --all)"]
fn heavy_install_from_git() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let dir = dir.path();
    let clone = dir.join("clone");
    let mut git = Command::new("git");
    git.args(["clone", "--quiet", "--no-local"])
        .arg(repository())
        .arg(&clone);
    succeed(&mut git)?;
    let head = succeed(
        Command::new("git")
            .arg("-C")
            .arg(&clone)
            .args(["rev-parse", "HEAD"]),
    )?;
    let home = cargo_home(dir)?;
    let url = format!("file://{}", clone.display());
    let root = dir.join("root");
    let cargo = |directory: &Path, words: &[&str]| {
        let mut command = cargo(directory);
        command.args(words).env("CARGO_HOME", &home);
        // Without CARGO_NET_OFFLINE, by which cargo would refuse the clone, too.
        command
            .env_remove("CARGO_NET_OFFLINE")
            .env("CARGO_PROFILE_DEV_DEBUG", "0");
        command.env("PATH", path_with(&root.join("bin"))?);
        command.env("GPUSTUB_CUDART_PATH", "off");
        Ok::<_, gpustub_tests::Failure>(command)
    };
    let install = [
        "install",
        "--locked",
        "--debug",
        "--git",
        &url,
        "cargo-gpustub",
        "--root",
    ];
    let mut install = cargo(dir, &install)?;
    install
        .arg(&root)
        .env("CARGO_TARGET_DIR", target_dir().join("install"));
    succeed(&mut install)?;

    succeed(&mut cargo(dir, &["new", "--quiet", "app"])?)?;
    let app = dir.join("app");
    fs::write(
        app.join("src/main.rs"),
        "unsafe extern \"C\" { fn cudaGetDeviceCount(n: *mut i32) -> i32; }\n\
         fn main() { let mut n = -7; let r = unsafe { cudaGetDeviceCount(&mut n) }; println!(\"{r} {n}\"); }\n",
    )?;
    // Versions of foreign packages as in the repository, which the cargo home has.
    fs::copy(clone.join("Cargo.lock"), app.join("Cargo.lock"))?;
    for words in [
        &["gpustub", "add", "cudart", "--header-version", "12"][..],
        &["gpustub", "sync", "--check"],
    ] {
        succeed(&mut cargo(&app, words)?)?;
    }
    let manifest = fs::read_to_string(app.join("Cargo.toml"))?;
    let rev = head.stdout.trim();
    let line = format!("gpustub-build = {{ git = \"{url}\", rev = \"{rev}\" }}\n");
    assert!(manifest.contains(&line), "{manifest}");
    let ran = succeed(&mut cargo(&app, &["run", "--quiet"])?)?;
    assert_eq!(ran.stdout, "35 0\n");
    Ok(())
}
