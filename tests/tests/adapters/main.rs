//! Adapters in C: calls by a program on a fake of an older library. `*.txt` contains what the program calls, what
//! arrives at the library, and the results.

#![allow(
    clippy::disallowed_methods,
    reason = "the environment says whether driver.txt is rewritten"
)]

use std::fs;
use std::path::Path;
use std::process::Command;

use gpustub_tests::command::succeed;
use gpustub_tests::stubs::{Machine, Stubs, plan_or_fail};
use gpustub_tests::{Result, repository, scratch};

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
            let archive = Stubs::write(&stubs, &plan, machine.compiler("cc"), &[])?.archive()?;
            let mut cc = compiler(machine, &program);
            succeed(cc.arg(sources.join("driver.c")).arg(archive).arg("-ldl"))?;
        }
        let library = dir.join(format!("libcuda-{driver}.so"));
        let mut cc = compiler(machine, &library);
        cc.args(["-shared", "-fPIC"])
            .arg(format!("-DVERSION={driver}"));
        succeed(cc.arg(sources.join("libcuda.c")))?;
        let mut command = match machine {
            Machine::X86_64 => Command::new(&program),
            Machine::Aarch64 => {
                let mut qemu = Command::new("qemu-aarch64");
                qemu.args(["-L", "/usr/aarch64-linux-gnu"]).arg(&program);
                qemu
            }
        };
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
