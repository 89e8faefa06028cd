//! Adapters of HIP: a program compiled with the real headers of one version calls a fake library compiled with
//! those of another. Both print fields and enumerators by name, so that an adapted call prints what a direct one
//! does. `tests/cases/hip_adapters.toml` has the output of each pair.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_core::library::override_variable;
use gpustub_tests::command::succeed;
use gpustub_tests::scratch::scratch;
use gpustub_tests::stubs::{Machine, Stubs, plan_or_fail};
use gpustub_tests::{Result, components, repository};
use serde::Deserialize;

const VERSIONS: [&str; 4] = ["5.2", "5.7", "6.4", "7.2"];

/// Output of a test of `program.c`. The first case with the name, the headers and the library applies.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    /// Versions of the headers.
    #[serde(default = "all")]
    headers: Vec<String>,
    /// Versions of the library.
    #[serde(default = "all")]
    libraries: Vec<String>,
    output: String,
}

#[derive(Deserialize)]
struct Cases {
    case: Vec<Case>,
}

fn all() -> Vec<String> {
    VERSIONS.map(str::to_owned).to_vec()
}

/// Compiler of a file of `tests/programs/hip`, with the headers of a version.
fn compiler(source: &str, version: &str) -> Result<Command> {
    let headers = components::component(&format!("hip-headers-{version}/include"))?;
    let mut cc = Command::new("cc");
    cc.args(["-std=gnu11", "-O1", "-D__HIP_PLATFORM_AMD__"])
        .args(["-Wno-deprecated-declarations", "-isystem"])
        .arg(headers)
        .arg(repository().join("tests/programs/hip").join(source));
    Ok(cc)
}

fn library(dir: &Path, version: &str) -> Result<PathBuf> {
    let library = dir.join(format!("libamdhip64-{version}.so"));
    let mut cc = compiler("library.c", version)?;
    cc.args(["-shared", "-fPIC", "-o"]).arg(&library);
    succeed(&mut cc)?;
    Ok(library)
}

fn program(dir: &Path, version: &str) -> Result<PathBuf> {
    let dir = dir.join(version);
    let manifest = format!("schema = 1\n[stub.hip]\nheader-version = \"{version}\"\n");
    let plan = plan_or_fail(&manifest, &[], &Machine::X86_64.target())?;
    let warnings = ["-Wall", "-Wextra", "-Werror"].map(str::to_owned);
    std::fs::create_dir(&dir)?;
    let archive = Stubs::write(&dir, &plan, "cc", &warnings)?.archive()?;
    let program = dir.join("program");
    let mut cc = compiler("program.c", version)?;
    succeed(cc.arg(archive).arg("-o").arg(&program))?;
    Ok(program)
}

/// Tests of a run by name, with their output.
fn tests(printed: &str) -> impl Iterator<Item = (&str, &str)> {
    let tests = printed.split("== ").skip(1);
    tests.map(|test| test.split_once('\n').unwrap_or((test, "")))
}

#[test]
#[ignore = "needs packages of suites that move on: ./tests/run --all"]
fn heavy_calls_of_hip_arrive_by_name() -> Result<()> {
    let dir = scratch()?;
    let dir = dir.path();
    let Cases { case: cases } = toml::from_str(include_str!("../cases/hip_adapters.toml"))?;
    let mut libraries = BTreeMap::new();
    for version in VERSIONS {
        libraries.insert(version, library(dir, version)?);
    }
    let (mut used, mut wrong) = (BTreeSet::new(), Vec::new());
    for headers in VERSIONS {
        let program = program(dir, headers)?;
        for (version, library) in &libraries {
            let mut run = Command::new(&program);
            let printed = succeed(run.env(override_variable("hip"), library))?.stdout;
            for (name, output) in tests(&printed) {
                let fits = |case: &Case| {
                    case.name == name
                        && case.headers.iter().any(|other| other == headers)
                        && case.libraries.iter().any(|other| other == version)
                };
                let expected = cases.iter().position(fits);
                used.extend(expected);
                let expected = expected.map_or("no case", |index| &cases[index].output);
                if expected != output {
                    wrong.push(format!(
                        "{name}: headers {headers} on {version}:\n{output}-- not\n{expected}"
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let unused = (0..cases.len()).filter(|index| !used.contains(index));
    let unused: Vec<&str> = unused.map(|index| cases[index].name.as_str()).collect();
    assert!(unused.is_empty(), "cases that no pair has: {unused:?}");
    Ok(())
}
