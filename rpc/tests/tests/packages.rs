//! Packages as they are published.

use std::process::Command;

use gpurpc_tests::cargo::cargo;
use gpurpc_tests::command::succeed;
use gpurpc_tests::components::target_dir;
use gpurpc_tests::{Result, scratch, workspace};

/// Packages of the other workspace that the loader uses.
const GPUSTUB: [(&str, &str); 2] = [
    ("gpustub", "../crates/gpustub"),
    ("gpustub-build", "../gpustub-build"),
];

/// Every published package compiles from its packed file, offline, without files outside it, except for gpustub's packages.
/// (`cargo package` can do this itself, but keeps the unpacked files of a version indefinitely, and
/// then checks older sources.)
#[test]
fn packages_compile_from_their_packed_files() -> Result<()> {
    let dir = scratch()?;
    let mut patches = String::new();
    let mut package = cargo(&workspace());
    package.args(["package", "--workspace", "--exclude", "gpurpc-tests"]);
    package.args(["--offline", "--allow-dirty", "--no-verify", "--quiet"]);
    for (name, path) in GPUSTUB {
        let path = workspace().join(path);
        patches += &format!("{name} = {{ path = {path:?} }}\n");
        package.arg("--config");
        package.arg(format!("patch.crates-io.{name}.path = {path:?}"));
    }
    succeed(package.arg("--target-dir").arg(dir.path()))?;

    let packed = dir.path().join("package");
    let mut members = Vec::new();
    for entry in std::fs::read_dir(&packed)? {
        let file = entry?.file_name().into_string().unwrap_or_default();
        let Some(member) = file.strip_suffix(".crate") else {
            continue;
        };
        let mut unpack = Command::new("tar");
        succeed(unpack.current_dir(&packed).args(["-xzf", &file]))?;
        for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
            let text = std::fs::read(packed.join(member).join(licence))
                .map_err(|e| format!("{file}: {licence}: {e}"))?;
            let expected = std::fs::read(workspace().join("..").join(licence))?;
            assert!(text == expected, "{file}: {licence}");
        }
        let name = member.rsplit_once('-').map_or(member, |(name, _)| name);
        patches += &format!("{name} = {{ path = \"{member}\" }}\n");
        members.push(member.to_owned());
    }
    assert_eq!(members.len(), 5, "published packages: {members:?}");
    let manifest = format!(
        "[workspace]\nresolver = \"3\"\nmembers = {members:?}\n[patch.crates-io]\n{patches}"
    );
    std::fs::write(packed.join("Cargo.toml"), manifest)?;
    std::fs::copy(workspace().join("Cargo.lock"), packed.join("Cargo.lock"))?;
    let mut check = cargo(&packed);
    check.args(["check", "--workspace", "--offline", "--quiet"]);
    succeed(check.arg("--target-dir").arg(target_dir()))?;
    Ok(())
}
