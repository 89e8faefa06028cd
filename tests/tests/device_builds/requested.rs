//! Architectures that a program requests: `link-archs`, and `GPUSTUB_DEVICE_ARCHS` for the GPU at hand.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use gpustub_image::{archive_device_code_file, read_device_code};
use gpustub_tests::Result;
use gpustub_tests::command::{run, succeed};
use gpustub_tests::nvcc::{TOOLKIT_13, recorder};
use gpustub_tests::rdc::{Library, Project};

use crate::Record;

/// Architectures of the code in the archives of all packages.
pub fn archs(project: &Project) -> Result<BTreeSet<String>> {
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
#[ignore = "slow: ./tests/run --all"]
fn heavy_environment_requests_architectures_of_all_packages() -> Result<()> {
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
    let mut cargo = project.cargo(&["build", "-p", "tip"]);
    let refused = run(cargo.env("GPUSTUB_DEVICE_ARCHS", "compute_90"))?;
    let message = "help: the environment variable GPUSTUB_DEVICE_ARCHS is `compute_90`";
    assert!(refused.stderr.contains(message), "{}", refused.stderr);
    Ok(())
}

/// A chain of three libraries with code for four GPUs: each is compiled once, for all or for one of them, and the program
/// linked once.
#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_a_request_leaves_the_number_of_compilations_and_links() -> Result<()> {
    let project = Project::new(TOOLKIT_13)?;
    for (name, requires) in [("one", &[][..]), ("two", &["one"]), ("three", &["two"])] {
        project.library(Library {
            archs: "\"sm_80\", \"sm_86\", \"sm_90\", \"sm_100\"",
            ..Library::new(name, requires)
        })?;
        let script = "fn main() {\n    gpustub_build::build();\n}\n";
        project.write(&format!("{name}/build.rs"), script)?;
    }
    let needs = "[dependencies]\nthree = { path = \"../three\" }\n";
    let main = "fn main() {\n    assert_eq!(three::run(), 0);\n}\n";
    project.package("tip", needs, &[("src/main.rs", main)])?;
    for (variable, request, compilations, links) in [
        ("", "", &[4, 4, 4][..], [4]),
        ("sm_90", "", &[1, 1, 1], [1]),
        // The store has the objects of the first build.
        ("", "link-archs = [\"sm_90\"]\n", &[], [1]),
        // The environment precedes the file.
        ("sm_86", "link-archs = [\"sm_90\"]\n", &[1, 1, 1], [1]),
    ] {
        project.write("tip/GpuStub.toml", &format!("schema = 1\n{request}"))?;
        succeed(&mut project.gpustub(&["sync", "-p", "tip"])?)?;
        let mut cargo = project.cargo(&["build", "-j2", "-p", "tip"]);
        succeed(cargo.env("GPUSTUB_DEVICE_ARCHS", variable))?;
        let counts = project.code_counts()?;
        let expected = (compilations.to_vec(), links.to_vec());
        assert_eq!(counts, expected, "{variable:?}, {request:?}");
    }
    Ok(())
}

/// Code of two libraries, and an architecture that nvlink serves from both.
const SERVED: [(&str, &str, &str); 6] = [
    ("sm_80", "sm_86", "sm_86"),
    ("sm_90", "sm_90a", "sm_90a"),
    ("sm_100f", "sm_103", "sm_103"),
    ("sm_100", "sm_103", "sm_103"),
    ("sm_120f", "sm_121", "sm_121"),
    ("sm_100f", "sm_100a", "sm_100a"),
];

#[test]
#[ignore = "needs CUDA's compiler: ./tests/run"]
fn programs_are_linked_for_what_their_libraries_serve() -> Result<()> {
    let project = Project::new(TOOLKIT_13)?;
    for name in ["base", "top"] {
        let requires = if name == "top" { &["base"][..] } else { &[] };
        project.library(Library::new(name, requires))?;
        // The tests of `top` would be one more program over both.
        let script = "fn main() {\n    gpustub_build::build();\n}\n";
        project.write(&format!("{name}/build.rs"), script)?;
    }
    let needs = "[dependencies]\ntop = { path = \"../top\" }\n";
    let main = "fn main() {\n    assert_eq!(top::run(), 0);\n}\n";
    project.package("tip", needs, &[("src/main.rs", main)])?;
    let library = recorder(&project.path("recorder"), 13)?;
    let declared = |name: &str| fs::read_to_string(project.root().join(name).join("GpuStub.toml"));
    let (base_text, top_text) = (declared("base")?, declared("top")?);
    for (base, top, requested) in SERVED {
        let case = format!("{base} and {top} for {requested}");
        project.write("base/GpuStub.toml", &base_text.replace("sm_80", base))?;
        project.write("top/GpuStub.toml", &top_text.replace("sm_80", top))?;
        project.write("tip/GpuStub.toml", "schema = 1\n")?;
        // All architectures of both, which one of them does not have.
        let refused = run(&mut project.gpustub(&["plan", "-p", "tip"])?)?;
        let message = "error[missing-arch]";
        assert!(
            refused.stderr.contains(message),
            "{case}: {}",
            refused.stderr
        );
        let request = format!("schema = 1\nlink-archs = [\"{requested}\"]\n");
        project.write("tip/GpuStub.toml", &request)?;
        succeed(&mut project.gpustub(&["sync", "-p", "tip"])?)?;
        succeed(&mut project.cargo(&["build", "-j2", "-p", "tip"]))?;
        let program = project.built("tip");
        let linked = read_device_code(&fs::read(&program)?)?.linked;
        let linked: Vec<String> = linked.iter().map(ToString::to_string).collect();
        assert_eq!(linked, [requested], "{case}");
        let record = Record::run(&mut Command::new(&program), &library)?;
        record.expect(&[("tip", &["base_kernel", "top_kernel"])], 2)?;
    }
    Ok(())
}
