//! NVML of the drivers whose lists of processes have larger entries than the headers say.

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::Command;

use gpustub_core::library::{Library, override_variable};
use gpustub_tests::command::{run, succeed};
use gpustub_tests::components::{component, only_entry};
use gpustub_tests::scratch::scratch;
use gpustub_tests::stubs::{Stubs, plan_shipped};
use gpustub_tests::{Result, repository};

/// Compiler with the headers of a release.
fn compiler(release: &str) -> Result<Command> {
    // nvidia/nvml_dev/include, or nvidia/cu13/include.
    let package = only_entry(&component(&format!("headers/nvml-{release}"))?.join("nvidia"))?;
    let mut cc = Command::new("cc");
    cc.arg("-I").arg(package.join("include"));
    Ok(cc)
}

fn source(name: &str) -> PathBuf {
    repository().join("tests/programs").join(name)
}

#[test]
#[ignore = "needs headers of two releases: ./tests/run"]
fn processes_of_early_drivers_of_535_are_read() -> Result<()> {
    let dir = scratch()?;
    let dir = dir.path();
    let driver = dir.join("libnvidia-ml.so.1");
    let mut cc = compiler("12.2.81")?;
    cc.args(["-DNVML_NO_UNVERSIONED_FUNC_DEFS", "-shared", "-fPIC", "-o"]);
    succeed(cc.arg(&driver).arg(source("nvml-driver.c")))?;

    let shipped = Library::builtin("nvml").expect("a shipped library");
    let plan = plan_shipped(shipped, "13.5", |name| name.contains("RunningProcesses"))?;
    let stubs = Stubs::write(dir, &plan, "cc", &[])?;
    let compile = |program: &str, library: PathBuf| -> Result<Command> {
        let program = dir.join(program);
        let mut cc = compiler("13.5")?;
        cc.arg("-o").arg(&program).arg(source("nvml-processes.c"));
        succeed(cc.arg(library))?;
        let mut command = Command::new(program);
        command.env("LD_LIBRARY_PATH", dir);
        command.env(override_variable("nvml"), &driver);
        Ok(command)
    };
    let printed = succeed(&mut compile("with-stubs", stubs.archive()?)?)?.stdout;
    let expected = "compute 0, 100: 4096, 101: 8192\n\
                    graphics 0, 100: 4096, 101: 8192\n\
                    mps 0, 100: 4096, 101: 8192\n";
    assert_eq!(printed, expected);
    // Linked directly, the driver writes beyond the array.
    let direct = run(&mut compile("direct", driver.clone())?)?;
    assert_eq!(direct.status.signal(), Some(11), "{}", direct.stdout);
    Ok(())
}
