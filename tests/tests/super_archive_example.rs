//! Super-archives, as users build and use them.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use gpustub_tests::command::succeed;
use gpustub_tests::components::target_dir;
use gpustub_tests::readme::{commands, shows};
use gpustub_tests::{Result, repository, scratch};

/// All dependencies are already compiled.
const OFFLINE: [(&str, &str); 1] = [("CARGO_NET_OFFLINE", "true")];

#[test]
fn example_readme_shows_the_real_output() -> Result<()> {
    let dir = scratch()?;
    let root = dir.path().join("the example");
    let mut copy = Command::new("cp");
    copy.arg("-r")
        .arg(repository().join("examples/super-archive"));
    succeed(copy.arg(&root))?;
    // Without outputs of an earlier build in the source directory.
    let _ = fs::remove_dir_all(root.join("target"));
    let text = fs::read_to_string(root.join("Cargo.toml"))?;
    let here = format!("{}/", repository().display());
    assert_eq!(text.matches("../../").count(), 2);
    fs::write(root.join("Cargo.toml"), text.replace("../../", &here))?;
    // The dependencies are compiled once.
    let target = target_dir().join("example-super-archive");
    let _ = fs::remove_dir_all(target.join("debug/build"));
    fs::create_dir_all(&target)?;
    symlink(&target, root.join("target"))?;

    let commands = commands("examples/super-archive/README.md")?;
    assert_eq!(commands.len(), 10);
    shows(&commands, &root, &OFFLINE)
}

#[test]
fn archive_page_shows_the_real_output() -> Result<()> {
    let dir = scratch()?;
    let commands = commands("docs/archive.md")?;
    assert_eq!(commands.len(), 13);
    shows(&commands, dir.path(), &OFFLINE)
}
