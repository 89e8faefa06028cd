//! Published outputs of this tree are reproducible and complete.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use gpustub_tests::cargo::{cargo, program};
use gpustub_tests::command::{run, succeed};
use gpustub_tests::components::target_dir;
use gpustub_tests::scratch::scratch;
use gpustub_tests::{Result, repository};

/// All files below a directory, by relative path.
fn files(directory: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let listed = succeed(
        Command::new("find")
            .current_dir(directory)
            .args([".", "-type", "f"]),
    )?;
    let mut files = BTreeMap::new();
    for path in listed.stdout.lines() {
        files.insert(path.to_owned(), std::fs::read(directory.join(path))?);
    }
    Ok(files)
}

/// Sources, objects, archives and shared libraries, built in two directories by two users.
#[test]
#[ignore = "needs user namespaces: ./tests/run"]
fn two_users_in_two_directories_generate_the_same_bytes() -> Result<()> {
    let subcommand = program("cargo-gpustub")?;
    for form in ["static", "shared"] {
        let dir = scratch()?;
        let first = dir.path().join("one");
        let second = dir.path().join("another/folder/deeper");
        let words = [
            "gpustub",
            "export",
            "stubs",
            "cuda",
            "cudart",
            "nvrtc",
            "opencl",
            "hip",
            "--header-version",
            "none",
            "--type",
            form,
            "--out-dir",
        ];
        succeed(Command::new(&subcommand).args(words).arg(&first))?;
        std::fs::create_dir_all(&second)?;
        let mut unshare = Command::new("unshare");
        unshare
            .args(["--user", "--map-user=4321", "--map-group=4321"])
            .arg(&subcommand)
            .args(words);
        unshare
            .arg(&second)
            .current_dir("/")
            .env("USER", "other")
            .env("TZ", "Asia/Tokyo")
            .env("LC_ALL", "C");
        succeed(&mut unshare)?;

        let (first, second) = (files(&first)?, files(&second)?);
        assert!(first.len() > 10, "{:?}", first.keys());
        assert_eq!(
            first.keys().collect::<Vec<_>>(),
            second.keys().collect::<Vec<_>>()
        );
        for (path, bytes) in &first {
            assert!(second.get(path) == Some(bytes), "{form}: {path} differs");
        }
    }
    Ok(())
}

/// Every published package compiles from its packed file, offline, without files outside it.
/// (`cargo package` can do this itself, but keeps the unpacked files of a version indefinitely, and
/// then checks older sources.)
#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_packages_compile_from_their_packed_files() -> Result<()> {
    let dir = scratch()?;
    let mut package = cargo(&repository());
    package.args([
        "package",
        "--workspace",
        "--offline",
        "--allow-dirty",
        "--no-verify",
        "--quiet",
    ]);
    for package_name in ["gpustub-tests", "xtask"] {
        package.args(["--exclude", package_name]);
    }
    succeed(package.arg("--target-dir").arg(dir.path()))?;

    let packed = dir.path().join("package");
    let (mut members, mut patches) = (Vec::new(), String::new());
    for entry in std::fs::read_dir(&packed)? {
        let file = entry?.file_name().into_string().unwrap_or_default();
        let Some(member) = file.strip_suffix(".crate") else {
            continue;
        };
        succeed(
            Command::new("tar")
                .current_dir(&packed)
                .args(["-xzf", &file]),
        )?;
        for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
            let text = std::fs::read(packed.join(member).join(licence))
                .map_err(|e| format!("{file}: {licence}: {e}"))?;
            assert!(
                text == std::fs::read(repository().join(licence))?,
                "{file}: {licence}"
            );
        }
        let name = member
            .rsplit_once('-')
            .map_or(member, |(name, _version)| name);
        patches += &format!("{name} = {{ path = \"{member}\" }}\n");
        members.push(member.to_owned());
    }
    assert_eq!(members.len(), 14, "published packages: {members:?}");
    let workspace = format!(
        "[workspace]\nresolver = \"3\"\nmembers = {members:?}\n[patch.crates-io]\n{patches}"
    );
    std::fs::write(packed.join("Cargo.toml"), workspace)?;
    std::fs::copy(repository().join("Cargo.lock"), packed.join("Cargo.lock"))?;
    let mut check = cargo(&packed);
    check.args([
        "check",
        "--workspace",
        "--offline",
        "--quiet",
        "--target-dir",
    ]);
    succeed(check.arg(target_dir()))?;
    Ok(())
}

/// Most projects have no CUDA code of their own, and compile a helper without CUDA support.
#[test]
fn missing_build_features_are_reported() -> Result<()> {
    let dir = scratch()?;
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text);
    let helper = repository().join("gpustub-build");
    let cargo_toml = |features: &str| {
        format!(
            "[package]\nname = \"p\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[lib]\npath = \"lib.rs\"\n\
             [workspace]\n[build-dependencies]\n\
             gpustub-build = {{ path = {helper:?}, features = [{features}] }}\n"
        )
    };
    write("Cargo.toml", &cargo_toml(""))?;
    write("build.rs", "fn main() { gpustub_build::build(); }\n")?;
    write("lib.rs", "")?;
    let build = || {
        let mut build = cargo(dir.path());
        let target = target_dir().join("without-feature");
        build.args(["check", "--quiet", "--offline", "--target-dir"]);
        run(build.arg(target))
    };
    for (table, feature) in [
        ("device-link.physics", "device-link"),
        ("archive.builtins", "archive"),
    ] {
        write("GpuStub.toml", &format!("schema = 1\n[{table}]\n"))?;
        let ran = build()?;
        let needs =
            format!("error[missing-build-feature]: [{table}] needs the feature `{feature}`");
        assert!(ran.stderr.contains(&needs), "{}", ran.stderr);
        let help = format!("features = [\"{feature}\"]");
        assert!(ran.stderr.contains(&help), "{}", ran.stderr);
    }
    write("Cargo.toml", &cargo_toml("\"archive\""))?;
    for (key, feature) in [("split", "split"), ("compress", "zstd")] {
        let table =
            "[archive.builtins]\nlayers = { all = [\"lib.rs\"] }\nviews = { all = [\"all\"] }";
        write(
            "GpuStub.toml",
            &format!("schema = 1\n{table}\n{key} = true\n"),
        )?;
        let ran = build()?;
        let needs = format!(
            "error[missing-build-feature]: `{key}` needs feature `{feature}`, which is disabled"
        );
        assert!(ran.stderr.contains(&needs), "{}", ran.stderr);
    }
    Ok(())
}
