//! Unchanged crates for Windows.

use gpustub_tests::rustup::rustc;
use gpustub_tests::windows::{TRIPLES, build_variables};
use gpustub_tests::wine::{install_random_numbers, run, wine};

use super::*;

/// Packages with a program each.
const PACKAGES: [&str; 3] = ["uses-cudarc", "uses-cl-sys", "uses-sys"];

/// The programs check the values of the APIs themselves. OpenCL is missing by its variable: wine has an OpenCL.dll.
#[test]
#[ignore = "slow, needs crates from the registry and wine: ./tests/run --all"]
fn heavy_unchanged_crates_of_the_registry_for_windows() -> Result<()> {
    let project = Project::new("registry", false)?;
    for triple in TRIPLES {
        let mut words = vec!["build", "--target", triple];
        words.extend(PACKAGES.iter().flat_map(|package| ["--package", package]));
        let mut build = project.cargo(&words, DEFAULT, false)?;
        let scratch = scratch()?;
        build.env("RUSTC", rustc(&[triple], scratch.path())?);
        succeed(build.envs(build_variables(triple)?))?;
        let directory = project.work.join("target-bare").join(triple).join("debug");
        install_random_numbers(&directory)?;
        for package in PACKAGES {
            let mut program = wine(&directory.join(format!("{package}.exe")))?;
            run(project.switch_off(&mut program))?
                .success()
                .map_err(|e| format!("{triple}: {package}: {e:?}"))?;
        }
    }
    Ok(())
}
