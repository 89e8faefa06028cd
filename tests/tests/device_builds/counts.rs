//! Number of compilations and device links of cargo's commands.

use std::fs;

use gpustub_tests::Result;
use gpustub_tests::command::succeed;
use gpustub_tests::nvcc::TOOLKIT_13;
use gpustub_tests::rdc::{Call, Library, Project};

const BUILD: &[&str] = &["build", "--workspace", "-j2"];
const TEST: &[&str] = &["test", "--workspace", "--no-run", "-j2"];

/// A step: files that are written again, the command, and the number of compilations and device links.
type Step = (
    &'static [&'static str],
    &'static [&'static str],
    usize,
    usize,
);

/// Four libraries, a program with a test, and a library for C.
const FOUR: &[Step] = &[
    (&[], BUILD, 4, 2),
    (&[], BUILD, 0, 0),
    // The unit tests of each library. The test of the program has the program's device link.
    (&[], TEST, 0, 4),
    (&[], TEST, 0, 0),
    (&[], BUILD, 0, 0),
    (&["base/include/base.cuh"], BUILD, 4, 2),
    (&[], TEST, 0, 4),
    (&["left/cuda/left.cu"], BUILD, 1, 2),
    // The libraries `left` and `top`.
    (&[], TEST, 0, 2),
    (&["left/cuda/left.cu"], TEST, 1, 4),
    (&["tip/src/main.rs", "tip/tests/it.rs"], TEST, 0, 0),
];

/// Eight libraries, each of which requires the one below it, and a program.
const CHAIN: &[Step] = &[
    (&[], BUILD, 8, 1),
    (&[], BUILD, 0, 0),
    (&["n0/cuda/n0.cu"], BUILD, 1, 1),
    (&[], TEST, 0, 8),
];

/// A library, a program and tests in one package: one device link for all.
const ALONE: &[Step] = &[
    (&[], BUILD, 1, 1),
    (&[], TEST, 0, 0),
    (&["own/cuda/own.cu"], TEST, 1, 1),
];

fn counts(project: &Project, steps: &[Step]) -> Result<()> {
    succeed(&mut project.gpustub(&["sync", "--workspace"])?)?;
    for (number, (changed, command, compilations, links)) in steps.iter().enumerate() {
        for path in *changed {
            let path = project.root().join(path);
            let text = fs::read(&path)?;
            fs::write(&path, text)?;
        }
        succeed(&mut project.cargo(command))?;
        let calls = project.calls()?;
        let link_calls = calls
            .iter()
            .filter(|call| matches!(call, Call::Link(_)))
            .count();
        let step = format!("step {number}, {changed:?}, {command:?}: {calls:?}");
        assert_eq!(calls.len() - link_calls, *compilations, "{step}");
        assert_eq!(link_calls, *links, "{step}");
    }
    Ok(())
}

/// A program with a test that launches the kernels of a package.
fn program(project: &Project, name: &str, package: &str) -> Result<()> {
    let test = format!("#[test]\nfn it() {{\n    assert_eq!({package}::run(), 0);\n}}\n");
    project.package(
        name,
        &format!("[dependencies]\n{package} = {{ path = \"../{package}\" }}\n"),
        &[
            (
                "src/main.rs",
                &format!("fn main() {{\n    assert_eq!({package}::run(), 0);\n}}\n"),
            ),
            ("tests/it.rs", &test),
        ],
    )
}

#[test]
#[ignore = "needs CUDA's compiler: ./tests/run"]
fn programs_are_linked_by_builds_and_libraries_by_tests() -> Result<()> {
    let project = Project::new(TOOLKIT_13)?;
    project.library(Library {
        table: "include-dirs = [\"include\"]",
        ..Library::new("base", &[])
    })?;
    project.write("base/include/base.cuh", "#pragma once\n")?;
    project.library(Library::new("left", &["base"]))?;
    project.library(Library::new("right", &["base"]))?;
    project.library(Library::new("top", &["left", "right"]))?;
    for name in ["base", "left", "right", "top"] {
        let source = format!("{name}/cuda/{name}.cu");
        let first = format!("__device__ int {name}_value");
        let included = format!("#include <base.cuh>\n{first}");
        project.edit(&source, &first, &included)?;
    }
    program(&project, "tip", "top")?;
    project.package(
        "plug",
        "[lib]\ncrate-type = [\"cdylib\"]\n\n[dependencies]\ntop = { path = \"../top\" }\n",
        &[(
            "src/lib.rs",
            "#[no_mangle]\npub extern \"C\" fn plug() -> i32 {\n    top::run()\n}\n",
        )],
    )?;
    counts(&project, FOUR)
}

#[test]
#[ignore = "needs CUDA's compiler, and minutes: ./tests/run --all"]
fn heavy_a_chain_of_libraries_has_one_link_in_its_program() -> Result<()> {
    let project = Project::new(TOOLKIT_13)?;
    let names: Vec<String> = (0..8).map(|number| format!("n{number}")).collect();
    project.library(Library::new(&names[0], &[]))?;
    for pair in names.windows(2) {
        project.library(Library::new(&pair[1], &[&pair[0]]))?;
    }
    program(&project, "tip", "n7")?;
    counts(&project, CHAIN)
}

#[test]
#[ignore = "needs CUDA's compiler: ./tests/run"]
fn a_package_with_programs_links_them_and_its_tests_once() -> Result<()> {
    let project = Project::new(TOOLKIT_13)?;
    project.library(Library::new("own", &[]))?;
    let body = "{\n    assert_eq!(own::run(), 0);\n}\n";
    project.write("own/src/main.rs", &format!("fn main() {body}"))?;
    project.write("own/tests/it.rs", &format!("#[test]\nfn it() {body}"))?;
    counts(&project, ALONE)
}
