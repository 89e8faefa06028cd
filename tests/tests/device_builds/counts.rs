//! Number of compilations and device links of cargo's commands.

use std::fmt::Write as _;

use gpustub_tests::Result;
use gpustub_tests::command::succeed;
use gpustub_tests::nvcc::TOOLKIT_13;
use gpustub_tests::rdc::{Call, Library, Project};

use crate::fresh::touch;

pub(super) const BUILD: &[&str] = &["build", "--workspace", "-j2"];
const TEST: &[&str] = &["test", "--workspace", "--no-run", "-j2"];
const CHECK: &[&str] = &["check", "--workspace", "-j2"];
pub(super) const CLIPPY: &[&str] = &["clippy", "--workspace", "-j2"];
const DOC: &[&str] = &["doc", "--workspace", "--no-deps", "-j2"];
const RELEASE: &[&str] = &["build", "--workspace", "--release", "-j2"];
/// A profile with the options of `dev`, in a directory of its own.
pub(super) const TWIN: &[&str] = &["build", "--workspace", "--profile", "twin", "-j2"];

/// Change before a step.
enum Change {
    /// None.
    None,
    /// Files that are written again.
    Touch(&'static [&'static str]),
    /// Files with a variable more, or a macro in a header.
    Edit(&'static [&'static str]),
}

use Change::{Edit, None, Touch};

/// A step: a change, the command, and the number of compilations and device links.
type Step = (Change, &'static [&'static str], usize, usize);

/// Four libraries, a program with a test, and a library for C, which has the device link of the program.
const FOUR: &[Step] = &[
    (None, BUILD, 4, 1),
    (None, BUILD, 0, 0),
    // The unit tests of each library, but those of `top`, which have the device link of the program.
    (None, TEST, 0, 3),
    (None, TEST, 0, 0),
    (None, BUILD, 0, 0),
    (Touch(&["base/include/base.cuh"]), BUILD, 0, 0),
    (Edit(&["base/include/base.cuh"]), BUILD, 4, 1),
    (None, TEST, 0, 3),
    (Edit(&["left/cuda/left.cu"]), BUILD, 1, 1),
    (None, TEST, 0, 1),
    (Edit(&["left/cuda/left.cu"]), TEST, 1, 2),
    (Touch(&["tip/src/main.rs", "tip/tests/it.rs"]), TEST, 0, 0),
];

/// A program over two libraries, by all commands.
const COMMANDS: &[Step] = &[
    (None, BUILD, 2, 1),
    (None, CLIPPY, 0, 0),
    (None, CHECK, 0, 0),
    (None, DOC, 0, 0),
    (None, TWIN, 0, 0),
    // The unit tests of `base`: those of `top` have the device link of the program.
    (None, TEST, 0, 1),
    (None, RELEASE, 2, 1),
    (Touch(&["top/cuda/top.cu"]), BUILD, 0, 0),
    (Edit(&["top/cuda/top.cu"]), BUILD, 1, 1),
    (None, CLIPPY, 0, 0),
    (Edit(&["base/include/base.cuh"]), CLIPPY, 2, 1),
    (None, BUILD, 0, 0),
];

/// Eight libraries, each of which requires the one below it, and a program.
const CHAIN: &[Step] = &[
    (None, BUILD, 8, 1),
    (None, BUILD, 0, 0),
    (Edit(&["n0/cuda/n0.cu"]), BUILD, 1, 1),
    // The unit tests of each library but the last.
    (None, TEST, 0, 7),
];

/// A library, a program and tests in one package: one device link for all.
const ALONE: &[Step] = &[
    (None, BUILD, 1, 1),
    (None, TEST, 0, 0),
    (Edit(&["own/cuda/own.cu"]), TEST, 1, 1),
];

fn counts(project: &Project, steps: &[Step]) -> Result<()> {
    succeed(&mut project.gpustub(&["sync", "--workspace"])?)?;
    let mut faults = String::new();
    for (number, (change, command, compilations, links)) in steps.iter().enumerate() {
        let (paths, kind) = match change {
            None => (&[][..], "no change"),
            Touch(paths) => (*paths, "touched"),
            Edit(paths) => (*paths, "edited"),
        };
        for path in paths {
            match change {
                Edit(_) => project.extend(path)?,
                None | Touch(_) => touch(&project.root().join(path))?,
            }
        }
        succeed(&mut project.cargo(command))?;
        let calls = counted(project)?;
        if calls != (*compilations, *links) {
            let step = format!("step {number}, {kind} {paths:?}, {command:?}");
            writeln!(
                faults,
                "{step}: {calls:?} instead of {compilations}, {links}"
            )?;
        }
    }
    assert_eq!(faults, "");
    Ok(())
}

/// Numbers of compilations and device links since the last call of this function.
pub(super) fn counted(project: &Project) -> Result<(usize, usize)> {
    let calls = project.calls()?;
    let is_link = |call: &&Call| matches!(call, Call::Link(_));
    let links = calls.iter().filter(is_link).count();
    Ok((calls.len() - links, links))
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
#[ignore = "slow: ./tests/run --all"]
fn heavy_programs_are_linked_by_builds_and_libraries_by_tests() -> Result<()> {
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
#[ignore = "slow: ./tests/run --all"]
fn heavy_a_package_with_programs_links_them_and_its_tests_once() -> Result<()> {
    let project = Project::new(TOOLKIT_13)?;
    project.library(Library::new("own", &[]))?;
    let body = "{\n    assert_eq!(own::run(), 0);\n}\n";
    project.write("own/src/main.rs", &format!("fn main() {body}"))?;
    project.write("own/tests/it.rs", &format!("#[test]\nfn it() {body}"))?;
    counts(&project, ALONE)
}

/// `tip`, whose library `top` requires `base`, which publishes a header.
pub(super) fn two_libraries() -> Result<Project> {
    let project = Project::new(TOOLKIT_13)?;
    project.library(Library {
        table: "include-dirs = [\"include\"]",
        ..Library::new("base", &[])
    })?;
    project.write("base/include/base.cuh", "#pragma once\n")?;
    project.library(Library::new("top", &["base"]))?;
    for name in ["base", "top"] {
        let source = format!("{name}/cuda/{name}.cu");
        let first = format!("__device__ int {name}_value");
        project.edit(&source, &first, &format!("#include <base.cuh>\n{first}"))?;
    }
    program(&project, "tip", "top")?;
    let profile = "[profile.dev]\n";
    let twin = format!("[profile.twin]\ninherits = \"dev\"\n\n{profile}");
    project.edit("Cargo.toml", profile, &twin)?;
    Ok(project)
}

#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_device_code_is_compiled_once_for_all_commands() -> Result<()> {
    counts(&two_libraries()?, COMMANDS)
}
