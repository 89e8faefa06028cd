//! Adapters in C: calls by a program on a fake of an older library. `*.txt` contains what the program calls, what
//! arrives at the library, and the results.

#![allow(
    clippy::disallowed_methods,
    reason = "the environment says whether driver.txt is rewritten"
)]

mod entry_points;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use gpustub_tests::command::succeed;
use gpustub_tests::components::component;
use gpustub_tests::scratch::scratch;
use gpustub_tests::stubs::{Machine, Stubs, plan_or_fail};
use gpustub_tests::{Result, elf, repository};

/// Version of the program's headers, version of the driver, and the parts of `driver.c`.
const DRIVERS: [(&str, u32, &[&str]); 6] = [
    (
        "none",
        11080,
        &[
            "contexts",
            "addresses",
            "locations",
            "kernels",
            "dependencies",
            "edges",
            "captures",
            "updates",
            "missing",
        ],
    ),
    ("none", 12020, &["nodes", "entries"]),
    ("none", 12090, &["nodes", "batches"]),
    ("none", 13000, &["entries"]),
    ("11.7", 11080, &["attributes"]),
    ("11.8", 11070, &["attributes"]),
];

fn calls_are_made_by_older_functions(machine: Machine) -> Result<()> {
    let dir = scratch()?;
    let dir = dir.path();
    let sources = repository().join("tests/tests/adapters");
    let mut found = String::new();
    for (headers, driver, parts) in DRIVERS {
        let program = dir.join(headers);
        if !program.exists() {
            let source = sources.join("driver.c");
            compile_with_stubs(machine, ("cuda", headers), &source, &program)?;
        }
        let library = dir.join(format!("libcuda-{driver}.so"));
        let mut cc = compiler(machine, &library);
        cc.args(["-shared", "-fPIC"])
            .arg(format!("-DVERSION={driver}"));
        succeed(cc.arg(sources.join("libcuda.c")))?;
        let mut command = machine.run(&program);
        command.arg(&library).args(parts);
        let ran = succeed(command.env("GPUSTUB_CUDA_PATH", &library))?;
        found += &format!("==== headers {headers}, driver {driver}\n{}", ran.stdout);
    }
    let file = sources.join("driver.txt");
    if std::env::var_os("BLESS").is_some() {
        fs::write(&file, &found)?;
    }
    let expected = fs::read_to_string(&file)?;
    assert!(
        found == expected,
        "{found}\n(BLESS=1 takes what was found instead of driver.txt)"
    );
    Ok(())
}

/// Compiles a program with stubs of a library for a version of the headers.
fn compile_with_stubs(
    machine: Machine,
    (library, headers): (&str, &str),
    source: &Path,
    program: &Path,
) -> Result<()> {
    let manifest = format!("schema = 1\n[stub.{library}]\nheader-version = \"{headers}\"\n");
    let plan = plan_or_fail(&manifest, &[], &machine.target())?;
    let stubs = program.with_extension("stubs");
    let archive = Stubs::write(&stubs, &plan, &machine.compiler("cc"), &[])?.archive()?;
    let mut cc = compiler(machine, program);
    succeed(cc.arg(source).arg(archive).arg("-ldl"))?;
    Ok(())
}

/// Compiles a program or library.
fn compiler(machine: Machine, output: &Path) -> Command {
    let mut cc = Command::new(machine.compiler("cc"));
    cc.args(["-Wall", "-Werror", "-o"]).arg(output);
    cc
}

#[test]
fn calls_that_an_older_driver_lacks_are_made_by_older_functions() -> Result<()> {
    calls_are_made_by_older_functions(Machine::X86_64)
}

#[test]
#[ignore = "needs a cross compiler and qemu: ./tests/run"]
fn calls_that_an_older_driver_lacks_are_made_by_older_functions_on_aarch64() -> Result<()> {
    calls_are_made_by_older_functions(Machine::Aarch64)
}

/// Real drivers answer these calls without a device.
#[test]
#[ignore = "needs real drivers: ./tests/run"]
fn real_drivers_hand_out_no_function_with_another_prototype() -> Result<()> {
    let dir = scratch()?;
    let program = dir.path().join("entries");
    let source = repository().join("tests/tests/adapters/entries.c");
    compile_with_stubs(Machine::X86_64, ("cuda", "none"), &source, &program)?;
    for (driver, expected) in [
        (
            "driver-535",
            "cuInit 13020: 0, status 0, set\ncuUnknown 13020: 0, status 1, null\n\
             cuGraphAddNode 12000: 0, status 2, null\ncuGraphAddNode 12020: 0, status 0, set\n\
             cuGraphAddNode 12030: 0, status 2, null\n\
             cuCtxCreate 12040: 0, status 0, set\ncuCtxCreate 12050: 0, status 2, null\n",
        ),
        (
            "driver-550",
            "cuInit 13020: 0, status 0, set\ncuUnknown 13020: 0, status 1, null\n\
             cuGraphAddNode 12000: 0, status 2, null\ncuGraphAddNode 12020: 0, status 0, set\n\
             cuGraphAddNode 12030: 0, status 0, set\n\
             cuCtxCreate 12040: 0, status 0, set\ncuCtxCreate 12050: 0, status 2, null\n",
        ),
    ] {
        let library = component(&format!("{driver}/libcuda.so.1"))?;
        let ran = succeed(Command::new(&program).env("GPUSTUB_CUDA_PATH", library))?;
        assert_eq!(ran.stdout, expected, "{driver}");
    }
    let ran = succeed(Command::new(&program).env("GPUSTUB_CUDA_PATH", "off"))?;
    let is_unanswered = |line: &str| line.ends_with(": 100, status -1, null");
    assert!(ran.stdout.lines().all(is_unanswered), "{}", ran.stdout);
    Ok(())
}

/// Versions from which on a name stands for another function: `PFN_cuMemAlloc_v2000` and `PFN_cuMemAlloc_v3020` of
/// cudaTypedefs.h. cuGetProcAddress came with 11.3.
#[test]
#[ignore = "needs the headers of CUDA 13.5: ./tests/run"]
fn names_with_several_functions_are_those_of_the_headers() -> Result<()> {
    let header = component("wheels/cudart-13.5/nvidia/cu13/include/cudaTypedefs.h")?;
    let mut versions: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    for word in fs::read_to_string(header)?.split(|c: char| c != '_' && !c.is_alphanumeric()) {
        let plain = word.trim_end_matches("_ptsz").trim_end_matches("_ptds");
        if let Some((name, version)) = plain
            .strip_prefix("PFN_")
            .and_then(|name| name.rsplit_once("_v"))
            && let Ok(version) = version.parse()
        {
            versions.entry(name.to_owned()).or_default().insert(version);
        }
    }
    let mut expected = BTreeSet::new();
    for (name, versions) in &versions {
        for version in versions.iter().skip(1).filter(|version| **version > 11030) {
            expected.insert(format!("{{{version}, \"{name}\"}}"));
        }
    }
    assert!(expected.remove("{12080, \"cuEventElapsedTime\"}"));
    let adapters = fs::read_to_string(repository().join("templates/adapters/common.h"))?;
    let page = fs::read_to_string(repository().join("docs/design/stubs.md"))?;
    for change in &expected {
        let name = change.split('"').nth(1).unwrap_or_default();
        assert!(page.contains(&format!("`{name}`")), "stubs.md: {name}");
    }
    let listed: BTreeSet<String> = adapters
        .lines()
        .filter_map(|line| line.trim().strip_suffix(','))
        .filter(|line| line.starts_with("{1") && line.contains("\"cu"))
        .map(str::to_owned)
        .collect();
    assert_eq!(listed, expected);
    Ok(())
}

/// Users who compile exported sources do so without -ffunction-sections.
#[test]
fn adapters_of_unused_functions_vanish_from_programs_with_exported_sources() -> Result<()> {
    let dir = scratch()?;
    let dir = dir.path();
    let manifest = "schema = 1\n[stub.cuda]\nheader-version = \"none\"\n";
    let plan = plan_or_fail(manifest, &[], &Machine::X86_64.target())?;
    let sources = Stubs::write(dir, &plan, "cc", &[])?.sources;
    let main = dir.join("main.c");
    let text = "int cuCtxCreate_v4(void **, void *, unsigned, int);\n\
                int main(void)\n{\n void *context;\n \
                return cuCtxCreate_v4(&context, 0, 0, 0);\n}\n";
    fs::write(&main, text)?;
    let program = dir.join("program");
    let mut cc = compiler(Machine::X86_64, &program);
    cc.args(["-std=gnu11", "-fPIC", "-fvisibility=hidden"]);
    cc.arg(&main)
        .args(["runtime.c", "stubs.S"].map(|file| sources.join(file)));
    succeed(cc.args(["-ldl", "-Wl,--gc-sections"]))?;
    let adapters: BTreeSet<String> = elf::symbols("--symbols", &program)?
        .into_iter()
        .filter(|row| row.name.starts_with("adapted_"))
        .map(|row| row.name)
        .collect();
    let used = ["adapted_cuCtxCreate_v4_context_by_affinities".to_owned()];
    assert_eq!(adapters, BTreeSet::from(used));
    Ok(())
}
