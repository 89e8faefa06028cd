//! Object formats of super-archives that need a cargo feature.

use std::fs;
use std::process::Command;

use gpustub_tests::cargo::cargo;
use gpustub_tests::command::{run, succeed};
use gpustub_tests::components::target_dir;
use gpustub_tests::scratch::scratch;
use gpustub_tests::{Result, repository};

/// Without the feature an object would be treated as a file without symbols, and its functions
/// would be missing from every view.
#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_objects_of_a_disabled_format_are_refused_with_the_feature() -> Result<()> {
    let dir = scratch()?;
    let root = dir.path();
    fs::create_dir(root.join("src"))?;
    fs::write(root.join("src/lib.rs"), "")?;
    fs::write(
        root.join("build.rs"),
        "fn main() { gpustub_build::build(); }\n",
    )?;
    fs::write(
        root.join("GpuStub.toml"),
        "schema = 1\n[archive.one]\nlayers = { all = [\"all.o\"] }\nviews = { all = [\"all\"] }\n",
    )?;
    fs::copy(repository().join("Cargo.lock"), root.join("Cargo.lock"))?;
    fs::write(root.join("all.c"), "int answer(void) { return 42; }\n")?;
    let helper = repository().join("gpustub-build");
    for (features, target, refused) in [
        ("", "x86_64-unknown-linux-gnu", None),
        ("", "x86_64-apple-macos11", Some(("Mach-O", "macho"))),
        ("", "x86_64-pc-windows-msvc", Some(("COFF", "coff"))),
        (", \"coff\", \"macho\"", "x86_64-apple-macos11", None),
        (", \"coff\", \"macho\"", "x86_64-pc-windows-msvc", None),
    ] {
        let manifest = format!(
            "[package]\nname = \"user\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n\
             [build-dependencies]\n\
             gpustub-build = {{ path = {helper:?}, features = [\"archive\"{features}] }}\n"
        );
        fs::write(root.join("Cargo.toml"), manifest)?;
        let mut clang = Command::new("clang");
        clang.current_dir(root).args(["-target", target]);
        succeed(clang.args(["-c", "all.c", "-o", "all.o"]))?;
        let mut build = cargo(root);
        build.args(["build", "--offline", "--quiet", "--target-dir"]);
        let build = run(build.arg(target_dir().join("object-formats")))?;
        match refused {
            None => assert!(build.status.success(), "{target}: {}", build.stderr),
            Some((format, feature)) => {
                assert!(!build.status.success(), "{target}");
                let error =
                    format!("all.o` is a {format} object, and feature `{feature}` is disabled");
                let help = format!(
                    "help: add feature `{feature}` to the build-dependency `gpustub-build`"
                );
                assert!(
                    build.stderr.contains("error[missing-build-feature]"),
                    "{}",
                    build.stderr
                );
                assert!(build.stderr.contains(&error), "{}", build.stderr);
                assert!(build.stderr.contains(&help), "{}", build.stderr);
            }
        }
    }
    Ok(())
}
