//! A major newer than this gpustub: stable functions work, others are refused.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_tests::command::succeed;
use gpustub_tests::isolated::Isolated;
use gpustub_tests::scratch::scratch;
use gpustub_tests::stubs::{Machine, Stubs, plan_or_fail};
use gpustub_tests::{Result, repository};

/// Functions of the ABI table end the program: they must not be called.
const FOURTEEN: &str = r#"
#include <stddef.h>
void abort(void);
int cudaGetDeviceCount(int *count) { *count = 7; return 0; }
int cudaMalloc(void **memory, size_t size) { *memory = (void *)size; return 0; }
int cudaRuntimeGetVersion(int *version) { *version = 14000; return 0; }
int cudaGraphInstantiate(void) { abort(); return 0; }
int cudaGraphInstantiateWithFlags(void) { abort(); return 0; }
int cudaGetDeviceProperties(void) { abort(); return 0; }
int cudaGetDeviceProperties_v2(void) { abort(); return 0; }
"#;

/// A fake of the next runtime with this soname, and with a version query or without.
fn fourteen(dir: &Path, soname: &str, has_query: bool) -> Result<PathBuf> {
    let text = if has_query {
        FOURTEEN.to_owned()
    } else {
        FOURTEEN.replace("cudaRuntimeGetVersion", "cudaRuntimeGetVersionOfOld")
    };
    fake(dir, soname, &text)
}

/// A fake of a runtime with this soname.
fn fake(dir: &Path, soname: &str, text: &str) -> Result<PathBuf> {
    let source = dir.join("fourteen.c");
    fs::write(&source, text)?;
    let map = dir.join("map");
    fs::write(&map, "libcudart.so.14 { global: cuda*; local: *; };\n")?;
    let file = dir.join("libcudart.so.14");
    let mut command = Command::new("cc");
    command.args(["-shared", "-fPIC"]).arg(source);
    command.arg(format!("-Wl,--version-script={}", map.display()));
    if !soname.is_empty() {
        command.arg(format!("-Wl,-soname,{soname}"));
    }
    succeed(command.arg("-o").arg(&file))?;
    Ok(file)
}

fn program(dir: &Path, header: &str) -> Result<PathBuf> {
    let manifest = format!("schema = 1\n[stub.cudart]\n{header}\n");
    let plan = plan_or_fail(&manifest, &[], &Machine::X86_64.target())?;
    let stubs = Stubs::write(dir, &plan, "cc", &[])?;
    let program = dir.join("program");
    let mut command = Command::new("cc");
    command.arg("-I").arg(&stubs.sources);
    command.arg(repository().join("tests/programs/newer.c"));
    succeed(command.arg(stubs.archive()?).arg("-o").arg(&program))?;
    Ok(program)
}

#[test]
#[ignore = "needs user namespaces: ./tests/run"]
fn newer_major_binds_stable_functions_only() -> Result<()> {
    for header in [
        "header-version = \"13\"",
        "header-version = \"11\"",
        "header-version = \"none\"",
    ] {
        let dir = scratch()?;
        let program = program(dir.path(), header)?;
        // The major is in the soname; in the version node, if there is no soname or no function.
        for (soname, has_query) in [("libcudart.so.14", true), ("", true), ("", false)] {
            let library = fourteen(dir.path(), soname, has_query)?;
            let machine = Isolated::new()?;
            machine.install(&program, "/program")?;
            machine.install(&library, "/opt/libcudart.so.14")?;
            let variables = [("GPUSTUB_CUDART_PATH", "/opt/libcudart.so.14")];
            let ran = machine.run_with("/program", &[], &variables)?;
            let mut runs = vec![(ran, "GPUSTUB_CUDART_PATH")];
            if !soname.is_empty() {
                let ran = machine.run_with("/program", &["/opt/libcudart.so.14"], &[])?;
                runs.push((ran, "already loaded"));
            }
            for (ran, found_by) in runs {
                let ran = ran.success()?;
                let (code, version) = if has_query { (0, 14000) } else { (302, 0) };
                let description = if has_query {
                    "version 14.0"
                } else {
                    "major 14"
                };
                let version = format!("cudaRuntimeGetVersion {code} {version}\n");
                let newer = format!(
                    "cudart: /opt/libcudart.so.14, {description}, newer than the newest known major (13), by {found_by}: "
                );
                ran.expect_in_order(&[
                    "cudaGetDeviceCount 0 7\ncudaMalloc 0 1\n",
                    &version,
                    "cudaGraphInstantiate 801\ncudaGetDeviceProperties 801\nhas 1 0 0\n",
                    &newer,
                    "\n  refused: ",
                    " (ABI unknown for newer majors)",
                ])?;
            }
        }
    }
    Ok(())
}

/// The higher of the major in the soname and the reported version decides what a function means.
#[test]
#[ignore = "needs user namespaces: ./tests/run"]
fn higher_of_soname_and_version_decides() -> Result<()> {
    let dir = scratch()?;
    let program = program(dir.path(), "header-version = \"13\"")?;
    for (soname, version, description) in [
        ("libcudart.so.14", "13050", "major 14"),
        ("libcudart.so.13", "14000", "version 14.0"),
    ] {
        let text = FOURTEEN.replace("14000", version);
        let library = fake(dir.path(), soname, &text)?;
        let machine = Isolated::new()?;
        machine.install(&program, "/program")?;
        machine.install(&library, "/opt/libcudart.so.14")?;
        let variables = [("GPUSTUB_CUDART_PATH", "/opt/libcudart.so.14")];
        let ran = machine.run_with("/program", &[], &variables)?.success()?;
        let newer = format!("{description}, newer than the newest known major (13), by ");
        ran.expect_in_order(&[
            "cudaGetDeviceCount 0 7\n",
            "cudaGraphInstantiate 801\ncudaGetDeviceProperties 801\n",
            &newer,
            " (ABI unknown for newer majors)",
        ])?;
    }
    Ok(())
}
