//! Super-archives, as users build and use them.

use gpustub_tests::Result;
use gpustub_tests::components::target_dir;
use gpustub_tests::readme::{commands, copy_example, follow, patched_directory, shows};
use gpustub_tests::scratch::scratch;

/// All dependencies are already compiled.
const OFFLINE: [(&str, &str); 1] = [("CARGO_NET_OFFLINE", "true")];

#[test]
fn example_readme_shows_the_real_output() -> Result<()> {
    let dir = scratch()?;
    let root = copy_example("super-archive", 2, dir.path())?;
    let commands = commands("examples/super-archive/README.md")?;
    assert_eq!(commands.len(), 10);
    shows(&commands, &root, &OFFLINE)
}

/// Except the settings of packages of distributions: `super_archive/packages.rs`, and a library of HIP:
/// `fat_archives/hip.rs`.
#[test]
#[ignore = "needs pkg-config and CMake: ./tests/run"]
fn archive_page_is_followed() -> Result<()> {
    let dir = patched_directory()?;
    let target = target_dir().join("page-archive");
    let target = target.to_str().ok_or("a path that is not UTF-8")?;
    let variables = [OFFLINE[0], ("CARGO_TARGET_DIR", target)];
    let omitted = ["make", "spec", "text"];
    let count = follow("docs/archive.md", &omitted, dir.path(), &variables)?;
    assert!(count > 30, "{count}");
    Ok(())
}
