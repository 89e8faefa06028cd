//! Results of functions of a missing library; structs on each machine.

use std::fs;
use std::process::Command;

use gpustub_core::library::{Fallback, Library, OutKind, Returns};
use gpustub_tests::command::succeed;
use gpustub_tests::scratch::scratch;
use gpustub_tests::stubs::{Machine, Stubs, plan_or_fail, trap_manifest};
use gpustub_tests::{Result, repository};

/// One line of the table of `missing-all.c`; `None` for structs, which `results.c` covers.
pub fn row(library: &Library, name: &str) -> Option<String> {
    let status = Fallback::default();
    let fallback = library.fallbacks.get(name).unwrap_or(&status);
    let missing = fallback
        .status_if_missing
        .unwrap_or(library.status.library_missing);
    let (result, number) = match fallback.returns {
        Returns::Status => ("STATUS", missing),
        Returns::Value(value) => ("VALUE", value),
        Returns::String => ("TEXT", missing),
        Returns::Null => ("POINTER", missing),
        Returns::Void => ("NOTHING", missing),
        Returns::ErrorName | Returns::ErrorString => ("UNKNOWN", missing),
        Returns::UnknownError(code) => ("VALUE", code),
        Returns::ZeroedStruct(_) | Returns::ZeroedHfa(_) => return None,
    };
    let outs = fallback.outs.iter().map(|out| {
        let (bytes, kind) = match out.kind {
            OutKind::Zero(0) => (8, "ZERO"),
            OutKind::Zero(size) => (size, "ZERO"),
            OutKind::Status => (4, "CODE"),
            OutKind::String => (8, "STRING"),
            OutKind::ErrorName | OutKind::ErrorString => (8, "ZERO"),
        };
        format!("{{{}, {bytes}, {kind}}}, ", out.arg)
    });
    let outs: String = outs.collect();
    Some(format!(
        "FUNCTION({name}, {result}, {number}, {{{outs}{{0, 0, 0}}}})\n"
    ))
}

/// Runs `tests/programs/results.c`.
fn structs_are_zero(machine: Machine) -> Result<()> {
    let dir = scratch()?;
    let tests = repository().join("tests");
    let list = fs::read_to_string(tests.join("programs/results.symbols"))?;
    let keys = "zero-out = { trap_twelve = [{ arg = 0, size = 4 }], trap_pair = [{ arg = 1, size = 4 }], \
                trap_large = [{ arg = 0, size = 4 }] }";
    let plan = plan_or_fail(
        &trap_manifest(keys),
        &[("trap.symbols", list)],
        &machine.target(),
    )?;
    let compiler = machine.compiler("cc");
    let archive = Stubs::write(dir.path(), &plan, &compiler, &[])?.archive()?;
    let program = dir.path().join("results");
    let mut cc = Command::new(compiler);
    cc.args(["-O1", "-Wall", "-I"]).arg(tests.join("traps"));
    cc.arg(tests.join("programs/results.c")).arg(archive);
    cc.args(machine.link_flags()).arg("-o").arg(&program);
    succeed(cc.arg("-ldl"))?;
    let ran = succeed(&mut machine.run(&program))?;
    assert_eq!(ran.stdout, "passed\n", "{machine:?}");
    Ok(())
}

#[test]
fn structs_of_missing_functions() -> Result<()> {
    structs_are_zero(Machine::X86_64)
}

#[test]
#[ignore = "needs cross compilers and emulators: ./tests/run"]
fn structs_of_missing_functions_elsewhere() -> Result<()> {
    use Machine::{Aarch64, Arm, I686, Powerpc64le, Riscv64, S390x};
    [Aarch64, Arm, I686, Powerpc64le, Riscv64, S390x]
        .into_iter()
        .try_for_each(structs_are_zero)
}
