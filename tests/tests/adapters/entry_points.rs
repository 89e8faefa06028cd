//! Functions of the driver that a program gets from the runtime by their names.

use std::fs;

use gpustub_core::version::Version;
use gpustub_tests::command::succeed;
use gpustub_tests::scratch::scratch;
use gpustub_tests::stubs::Machine;
use gpustub_tests::{Result, repository};
use serde::Deserialize;

use super::{compile_with_stubs, compiler};

/// `tests/cases/entry_points.toml`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Machines {
    machine: Vec<Versions>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Versions {
    headers: String,
    runtime: String,
    driver: String,
    /// `NAME: RESULT`, a line for each call.
    results: String,
}

fn code(version: &str) -> Result<String> {
    let version = Version::parse(version).ok_or("no version")?;
    Ok(version.code().to_string())
}

#[test]
fn runtimes_hand_out_functions_that_fit_the_headers() -> Result<()> {
    let dir = scratch()?;
    let dir = dir.path();
    let sources = repository().join("tests/tests/adapters");
    let library = dir.join("libcudart.so");
    let mut cc = compiler(Machine::X86_64, &library);
    cc.args(["-shared", "-fPIC"]);
    succeed(cc.arg(sources.join("libcudart.c")))?;
    let text = fs::read_to_string(repository().join("tests/cases/entry_points.toml"))?;
    let Machines { machine: machines } = toml::from_str(&text)?;
    let mut wrong = String::new();
    for versions in machines {
        let Versions {
            headers,
            runtime,
            driver,
            results,
        } = versions;
        let program = dir.join(&headers);
        if !program.exists() {
            let stub = ("cudart", &*headers);
            let source = sources.join("entry_points.c");
            compile_with_stubs(Machine::X86_64, stub, &source, &program)?;
        }
        let names = results.lines().filter_map(|line| line.split(':').next());
        let mut command = Machine::X86_64.run(&program);
        command
            .args(names)
            .env("GPUSTUB_CUDART_PATH", &library)
            .env("GPUSTUB_TEST_RUNTIME_VERSION", code(&runtime)?)
            .env("GPUSTUB_TEST_DRIVER_VERSION", code(&driver)?);
        let printed = succeed(&mut command)?.stdout;
        if printed != results {
            wrong += &format!("headers {headers}, runtime {runtime}, driver {driver}\n{printed}\n");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    Ok(())
}
