//! The example workspace: two libraries, a plain crate between, an application, a plugin.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use gpustub_tests::Result;
use gpustub_tests::cargo::program;
use gpustub_tests::command::{path_with, succeed};
use gpustub_tests::nvcc::{TOOLKIT_11, TOOLKIT_12, TOOLKIT_13, Toolkit, recorder};
use gpustub_tests::pair::major;
use gpustub_tests::rdc::{Call, Project};
use gpustub_tests::readme::commands;

use crate::Record;

/// Checks the compilations and the device link of `cargo build`: that of the application and the plugin.
fn expect_all_calls(project: &Project) -> Result<()> {
    let mut calls = project.calls()?;
    let link_call = calls.pop();
    let sources = ["area.cu", "energy.cu", "geometry.cu"];
    assert_eq!(calls, sources.map(compile));
    let links = ["gpustub-final-app", "gpustub-final-plugin"].map(link);
    assert!(
        links.iter().any(|link| Some(link) == link_call.as_ref()),
        "{link_call:?}"
    );
    Ok(())
}

fn compile(name: &str) -> Call {
    Call::Compile(name.to_owned())
}

fn link(name: &str) -> Call {
    Call::Link(name.to_owned())
}

/// The application, with its plugin.
fn app(directory: &Path) -> Command {
    let mut app = Command::new(directory.join("app"));
    app.arg(directory.join("libplugin.so"));
    app
}

/// Runs the application in `directory`, with the plugin beside it: without CUDA, and with a recording
/// runtime.
fn run_example(project: &Project, toolkit: Toolkit, directory: &str) -> Result<()> {
    let directory = project.target().join(directory);
    let ran = succeed(app(&directory).env("GPUSTUB_CUDART_PATH", "off"))?;
    let expected = "app: no CUDA: status 35\nplugin: no CUDA: status 35\n";
    assert_eq!(ran.stdout, expected);

    let library = recorder(&project.path("recorder"), major(toolkit.version)?)?;
    let record = Record::run(&mut app(&directory), &library)?;
    record.expect(
        &[
            ("app", &["area", "energy"]),
            ("libplugin.so", &["area", "energy"]),
        ],
        3,
    )
}

/// Marks that the tools have left in a program.
fn linker(program: &Path) -> Result<String> {
    let mut readelf = Command::new("readelf");
    Ok(succeed(readelf.args(["-p", ".comment"]).arg(program))?.stdout)
}

#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_example_builds_and_registers_each_kernel_once() -> Result<()> {
    let project = Project::example(TOOLKIT_13)?;
    succeed(&mut project.cargo(&["build", "--locked", "-j2"]))?;
    expect_all_calls(&project)?;
    run_example(&project, TOOLKIT_13, "debug")?;

    // Tests, including documentation tests, use the device links of their own packages.
    let ran = succeed(&mut project.cargo(&["test", "--locked", "-j2"]))?;
    let ran = ran.expect_in_order(&["test a_report_is_written_everywhere ... ok"])?;
    let successes = ran.stdout.matches(" ... ok\n").count();
    assert_eq!(successes, 3, "{}", ran.stdout);
    // The tests of `physics` have the device link of the application.
    assert_eq!(project.calls()?, [link("gpustub-final-geometry")]);

    assert!(linker(&project.built("app"))?.contains("LLD"));

    // As for a release, with the other linker.
    let mut release = project.cargo(&["build", "--release", "--locked", "-j2"]);
    succeed(release.env("RUSTFLAGS", "-Clink-arg=-fuse-ld=bfd"))?;
    expect_all_calls(&project)?;
    assert!(!linker(&project.target().join("release/app"))?.contains("LLD"));
    run_example(&project, TOOLKIT_13, "release")
}

fn builds_with(toolkit: Toolkit) -> Result<()> {
    let project = Project::example(toolkit)?;
    let major = major(toolkit.version)?;
    for package in ["geometry", "physics"] {
        project.edit(
            &format!("{package}/GpuStub.toml"),
            "header-version = \"13\"",
            &format!("header-version = \"{major}\""),
        )?;
    }
    let mut build = project.cargo(&["build", "--locked", "-j2"]);
    if major == 11 {
        // Supports gcc up to 11 (crt/host_config.h).
        build.env("NVCC_APPEND_FLAGS", "-allow-unsupported-compiler");
    }
    succeed(&mut build)?;
    expect_all_calls(&project)?;
    run_example(&project, toolkit, "debug")
}

#[test]
#[ignore = "needs CUDA's compiler of 12: ./tests/run --all"]
fn heavy_example_builds_with_toolkit_12() -> Result<()> {
    builds_with(TOOLKIT_12)
}

#[test]
#[ignore = "needs CUDA's compiler of 11: ./tests/run --all"]
fn heavy_example_builds_with_toolkit_11() -> Result<()> {
    builds_with(TOOLKIT_11)
}

/// Output without the parts that differ from run to run: directory, time, order of parallel builds.
fn steady(text: &str, project: &Project) -> Vec<String> {
    let root = format!("{}/", project.root().display());
    let mut lines: Vec<_> = text
        .lines()
        .filter(|line| !line.contains("Blocking waiting"))
        .map(|line| line.replace(&root, ""))
        .map(|line| {
            line.split(" target(s) in ")
                .next()
                .unwrap_or_default()
                .to_owned()
        })
        .collect();
    if lines.iter().any(|line| line.contains("Compiling")) {
        lines.sort();
    }
    lines
}

#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_example_readme_shows_the_real_output() -> Result<()> {
    let project = Project::example(TOOLKIT_13)?;
    symlink(project.target(), project.root().join("target"))?;
    let subcommand = program("cargo-gpustub")?;
    let commands = commands("examples/device-link/README.md")?;
    assert_eq!(commands.len(), 8);
    for (command, expected) in commands {
        // Called directly, because cargo would read the repository's own settings from here.
        let line = command.replace("cargo gpustub", "cargo-gpustub gpustub");
        let mut bash = project.shell(&format!("exec 2>&1; {line}"));
        bash.env(
            "PATH",
            path_with(subcommand.parent().unwrap_or(&subcommand))?,
        );
        let ran = succeed(&mut bash)?;
        let expected = steady(&expected.join("\n"), &project);
        assert_eq!(steady(&ran.stdout, &project), expected, "{command}");
    }
    Ok(())
}
