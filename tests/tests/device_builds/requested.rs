//! `GPUSTUB_DEVICE_ARCHS`: a build for the GPU at hand.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use gpustub_image::archive_device_code_file;
use gpustub_tests::Result;
use gpustub_tests::command::{run, succeed};
use gpustub_tests::nvcc::{TOOLKIT_13, recorder};
use gpustub_tests::rdc::{Library, Project};

use crate::Record;

/// Architectures of the code in the archives of all packages.
fn archs(project: &Project) -> Result<BTreeSet<String>> {
    let mut archs = BTreeSet::new();
    for package in fs::read_dir(project.target().join("debug/build"))? {
        let lib = package?.path().join("out/gpustub/device-link/lib");
        for file in fs::read_dir(lib).into_iter().flatten() {
            let file = file?.path();
            if file.extension().is_some_and(|extension| extension == "a") {
                let code = archive_device_code_file(&file)?;
                archs.extend(code.archs().iter().map(ToString::to_string));
            }
        }
    }
    Ok(archs)
}

#[test]
#[ignore = "needs CUDA's compiler: ./tests/run"]
fn environment_requests_architectures_of_all_packages() -> Result<()> {
    let project = Project::new(TOOLKIT_13)?;
    for (name, requires) in [("base", &[][..]), ("top", &["base"][..])] {
        project.library(Library {
            archs: "\"sm_80\", \"sm_90\", \"compute_90\"",
            ..Library::new(name, requires)
        })?;
    }
    let needs = "[dependencies]\ntop = { path = \"../top\" }\n";
    let main = "fn main() {\n    assert_eq!(top::run(), 0);\n}\n";
    project.package("tip", needs, &[("src/main.rs", main)])?;
    succeed(&mut project.gpustub(&["sync"])?)?;
    let library = recorder(&project.path("recorder"), 13)?;
    let all = ["compute_90", "sm_80", "sm_90"];
    for (value, expected) in [("sm_86", &["sm_86"][..]), ("", &all)] {
        let mut cargo = project.cargo(&["build", "-j2", "-p", "tip"]);
        succeed(cargo.env("GPUSTUB_DEVICE_ARCHS", value))?;
        assert_eq!(Vec::from_iter(archs(&project)?), expected, "{value}");
        let record = Record::run(&mut Command::new(project.built("tip")), &library)?;
        record.expect(&[("tip", &["base_kernel", "top_kernel"])], 2)?;
    }
    let mut cargo = project.cargo(&["build", "-p", "base"]);
    let refused = run(cargo.env("GPUSTUB_DEVICE_ARCHS", "native"))?;
    let message =
        "error[invalid-value]: the environment variable GPUSTUB_DEVICE_ARCHS names `native`";
    assert!(refused.stderr.contains(message), "{}", refused.stderr);
    Ok(())
}
