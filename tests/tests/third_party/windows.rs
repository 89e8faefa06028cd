//! Unchanged crates for Windows, with the GNU ABI.

use gpustub_tests::rustup::rustc;
use gpustub_tests::wine::{TRIPLE, install_random_numbers, run, wine};

use super::*;

/// The programs check the values of the APIs themselves. OpenCL is missing by its variable: wine has an OpenCL.dll.
#[test]
#[ignore = "slow, needs crates from the registry and wine: ./tests/run --all"]
fn heavy_unchanged_crates_of_the_registry_for_windows() -> Result<()> {
    let project = Project::new("registry", false)?;
    let words = ["build", "--target", TRIPLE];
    let packages = ["--package", "uses-cudarc", "--package", "uses-cl-sys"];
    let mut build = project.cargo(&[&words[..], &packages].concat(), DEFAULT, false)?;
    let scratch = scratch()?;
    succeed(build.env("RUSTC", rustc(&[TRIPLE], scratch.path())?))?;
    let directory = project.work.join("target-bare").join(TRIPLE).join("debug");
    install_random_numbers(&directory)?;
    for name in ["uses-cudarc", "uses-cl-sys"] {
        let mut program = wine(&directory.join(format!("{name}.exe")))?;
        run(project.switch_off(&mut program))?.success()?;
    }
    Ok(())
}
