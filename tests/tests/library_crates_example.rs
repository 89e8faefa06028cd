//! Libraries that bring stubs, as their authors publish them, in an application without gpustub.

use gpustub_tests::Result;
use gpustub_tests::readme::{commands, copy_example, shows};
use gpustub_tests::scratch::scratch;

#[test]
fn example_readme_shows_the_real_output() -> Result<()> {
    let dir = scratch()?;
    let root = copy_example("library-crates", 1, dir.path())?;
    let commands = commands("examples/library-crates/README.md")?;
    assert_eq!(commands.len(), 5);
    shows(&commands, &root, &[("CARGO_NET_OFFLINE", "true")])
}
