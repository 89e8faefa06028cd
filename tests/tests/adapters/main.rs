//! Adapters in C: calls by a program on a fake of an older library. `*.txt` contains what the program calls, what
//! arrives at the library, and the results.

#![allow(
    clippy::disallowed_methods,
    reason = "the environment says whether driver.txt is rewritten"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use gpustub_tests::command::succeed;
use gpustub_tests::scratch::scratch;
use gpustub_tests::stubs::{Machine, Stubs, plan_or_fail};
use gpustub_tests::{Result, elf, repository};

/// Version of the program's headers, version of the driver, and the parts of `driver.c`.
const DRIVERS: [(&str, u32, &[&str]); 5] = [
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
    ("none", 12020, &["nodes"]),
    ("none", 12090, &["nodes", "batches"]),
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
            let manifest = format!("schema = 1\n[stub.cuda]\nheader-version = \"{headers}\"\n");
            let plan = plan_or_fail(&manifest, &[], &machine.target())?;
            let stubs = dir.join(format!("stubs-{headers}"));
            let archive = Stubs::write(&stubs, &plan, &machine.compiler("cc"), &[])?.archive()?;
            let mut cc = compiler(machine, &program);
            succeed(cc.arg(sources.join("driver.c")).arg(archive).arg("-ldl"))?;
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
