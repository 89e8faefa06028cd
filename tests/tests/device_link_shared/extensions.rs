//! Libraries for C, such as Python's extension modules, that reach shared libraries: the loader finds
//! their device links, one process may open several, or the plan reports that it may not.

use std::env::join_paths;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_tests::Result;
use gpustub_tests::cargo::gpustub;
use gpustub_tests::command::{Ran, run};
use gpustub_tests::scratch::scratch;

use crate::{Project, Record, TRIPLE, alone, expect, opens, workspace};

fn built(project: &Project, name: &str) -> PathBuf {
    let directory = project.target().join(TRIPLE).join("debug");
    directory.join(format!("lib{name}.so"))
}

/// Installs the shared libraries below `directory`.
fn libraries(project: &Project, directory: &Path) -> Result<PathBuf> {
    let prefix = directory.join("prefix");
    for package in ["area", "volume"] {
        project.install(package, &prefix)?;
    }
    Ok(prefix.join("lib"))
}

/// Opens libraries in this order, and calls a function of each.
fn open(project: &Project, directory: &Path, names: &[&str]) -> Result<Command> {
    let [first, rest @ ..] = names else {
        return Err("nothing is opened".into());
    };
    let function = format!("{first}_status");
    let mut command = opens(directory, &built(project, first), &function)?;
    for name in rest {
        command
            .arg(built(project, name))
            .arg(format!("{name}_status"));
    }
    let directories = [project.runtime.clone(), libraries(project, directory)?];
    command.env("LD_LIBRARY_PATH", join_paths(directories)?);
    Ok(command)
}

fn build(project: &Project, names: &[&str], linker: Option<&str>) -> Result<Ran> {
    let mut words = vec!["build"];
    words.extend(names.iter().flat_map(|name| ["-p", name]));
    let mut cargo = project.cargo(&words);
    if let Some(linker) = linker {
        let flags = [
            "-Clinker-features=-lld",
            &format!("-Clink-arg=-fuse-ld={linker}"),
        ];
        cargo.arg("--config");
        cargo.arg(format!("target.{TRIPLE}.rustflags={flags:?}"));
    }
    run(&mut cargo)
}

/// The cdylib's link object registers kernels in `lib<name>.so` and in `libbase.so`.
fn own_link(name: &str) -> Record {
    let library = format!("lib{name}.so");
    Record {
        opened: vec![library.clone()],
        kernels: vec!["libbase.so".to_owned(), library.clone()],
        launched: vec![library],
    }
}

/// Builds `inner`, whose device link the shared library `base` calls, and `wide`, with shared ones only.
fn own_links_are_found(linker: Option<&str>) -> Result<()> {
    let project = workspace()?;
    build(project, &["inner", "wide"], linker)?.success()?;
    let dir = scratch()?;
    expect(
        run(&mut open(project, dir.path(), &["inner"])?)?,
        &own_link("inner"),
    )?;
    let expected = Record::new(
        "libwide.so",
        &["area", "base", "volume"],
        &["area", "volume"],
    );
    expect(run(&mut open(project, dir.path(), &["wide"])?)?, &expected)
}

#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_shared_libraries_call_the_device_link_of_a_cdylib() -> Result<()> {
    let _alone = alone();
    own_links_are_found(None)
}

#[test]
#[ignore = "needs nvcc, mold and gold, and a minute: ./tests/run --all"]
fn heavy_every_linker_exports_the_device_link_of_a_cdylib() -> Result<()> {
    let _alone = alone();
    for linker in ["bfd", "gold", "mold"] {
        own_links_are_found(Some(linker)).map_err(|why| format!("{linker}: {}", why.0))?;
    }
    Ok(())
}

/// The build script of `native` cannot add Rust code to it.
#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_cdylib_with_device_code_is_linked_or_refused_by_the_linker() -> Result<()> {
    let _alone = alone();
    let project = workspace()?;
    build(project, &["native"], None)?.success()?;
    let dir = scratch()?;
    expect(
        run(&mut open(project, dir.path(), &["native"])?)?,
        &own_link("native"),
    )?;
    let ran = build(project, &["native"], Some("bfd"))?;
    let reported = "anonymous version tag cannot be combined with other version tags";
    if ran.status.success() || !ran.stderr.contains(reported) {
        return Err(ran.error("GNU ld links two version scripts"));
    }
    Ok(())
}

/// `plugin` and `flat` share a final, and the memory of its libraries.
#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_two_cdylibs_of_one_final_are_registered_once() -> Result<()> {
    let _alone = alone();
    let project = workspace()?;
    build(project, &["plugin", "flat"], None)?.success()?;
    let dir = scratch()?;
    let mut command = open(project, dir.path(), &["flat"])?;
    command.arg(built(project, "plugin")).arg("plugin_run");
    let expected = Record::new("libarea_final.so", &["area", "base"], &["area", "area"]);
    expect(run(&mut command)?, &expected)
}

/// The finals of `flat` and `solid` are both over `base`: kernels of `volume` would not be registered.
#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_two_cdylibs_of_two_finals_are_reported_before_and_after_the_build() -> Result<()> {
    let _alone = alone();
    let project = workspace()?;
    let reported = "`flat/cdylib`, `solid/cdylib` cannot be opened by one process";
    for (command, code, level) in [
        ("plan", 0, "warning"),
        ("sync", 0, "warning"),
        ("check", 1, "error"),
    ] {
        let words = [command, "--offline", "-p", "flat", "-p", "solid"];
        let ran = run(&mut project.gpustub(&words)?)?;
        let start = format!("{level}[duplicate-device-link]: {reported}");
        if ran.status.code() != Some(code) || !ran.stderr.contains(&start) {
            return Err(ran.error(command));
        }
    }
    build(project, &["flat", "solid"], None)?.success()?;
    let dir = scratch()?;
    let ran = run(&mut open(project, dir.path(), &["flat", "solid"])?)?;
    if ran.status.success() && ran.stdout.contains("status 98") {
        return check_reports(project, dir.path());
    }
    Err(ran.error("both are registered: the warning is wrong"))
}

/// `check` finds the same in a directory with all libraries.
fn check_reports(project: &Project, dir: &Path) -> Result<()> {
    let shipped = libraries(project, dir)?;
    for name in ["flat", "solid"] {
        fs::copy(built(project, name), shipped.join(format!("lib{name}.so")))?;
    }
    let ran = run(gpustub(&["check", "--allow", "needed-toolkit"])?.arg(&shipped))?;
    let reported = "error[duplicate-device-link]";
    if ran.status.success() || !ran.stderr.contains(reported) {
        return Err(ran.error("check accepts two finals over base"));
    }
    Ok(())
}
