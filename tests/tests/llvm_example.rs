//! `examples/llvm`: a super-archive in LLVM's JIT and linker, as its README says.

use std::process::Command;

use gpustub_tests::command::succeed;
use gpustub_tests::readme::{commands, shows};
use gpustub_tests::scratch::scratch;
use gpustub_tests::{Result, repository};

#[test]
#[ignore = "needs pkg-config and LLVM's headers: ./tests/run"]
fn example_readme_shows_the_real_output() -> Result<()> {
    let dir = scratch()?;
    // Without a space, which the shell would need escaped, unlike the README.
    let root = dir.path().join("example");
    let mut copy = Command::new("cp");
    succeed(
        copy.arg("-r")
            .arg(repository().join("examples/llvm"))
            .arg(&root),
    )?;
    let mut commands = commands("examples/llvm/README.md")?;
    assert_eq!(commands.len(), 14);
    for (command, _) in &mut commands {
        *command = command.replace("../../", &format!("{}/", repository().display()));
    }
    shows(&commands, &root, &[])
}
