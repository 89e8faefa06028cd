//! Super-archives, as users build and use them.

use gpustub_tests::readme::{commands, copy_example, shows};
use gpustub_tests::{Result, scratch};

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

#[test]
fn archive_page_shows_the_real_output() -> Result<()> {
    let dir = scratch()?;
    let commands = commands("docs/archive.md")?;
    assert_eq!(commands.len(), 13);
    shows(&commands, dir.path(), &OFFLINE)
}
