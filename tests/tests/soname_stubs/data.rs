//! Data of soname stubs: an unchanged program reads it by a copy relocation, which for constants is in pages that are
//! read-only since the program started, or by its table of offsets.

use std::fs;
use std::process::Command;

use gpustub_tests::Result;
use gpustub_tests::command::succeed;
use gpustub_tests::elf::readelf;
use gpustub_tests::scratch::scratch;

use super::{export, library};

const LIBRARY: &str = "\
static int handle = 32;
void *const CUTENSOR_COMPUTE_DESC_32F = &handle;
unsigned long cutensorGetVersion(void) { return 20800; }
";

const NODES: &str = "\
libcutensor.1.0.0 { global: cutensorGetVersion; local: *; };
libcutensor.2.0.0 { global: CUTENSOR_COMPUTE_DESC_32F; };
";

const PROGRAM: &str = "\
#include <stdio.h>
extern void *const CUTENSOR_COMPUTE_DESC_32F;
unsigned long cutensorGetVersion(void);
int main(void)
{
    unsigned long version = cutensorGetVersion();
    int *handle = *(void *const volatile *)&CUTENSOR_COMPUTE_DESC_32F;
    return printf(\"%lu %d\\n\", version, handle ? *handle : -1) < 0;
}
";

#[test]
fn unchanged_programs_read_the_data() -> Result<()> {
    let dir = scratch()?;
    let source = dir.path().join("program.c");
    fs::write(&source, PROGRAM)?;
    let real = library(&dir.path().join("real"), "libcutensor.so.2", LIBRARY, NODES)?;
    let options = ["--header-version=2.8", "--soname=libcutensor.so.2"];
    export(
        dir.path(),
        &[&["--quiet", "cutensor"][..], &options].concat(),
    )?;
    let stubs = dir.path().join("lib");
    let symbols = readelf(&["--dyn-syms"], &stubs.join("libcutensor.so.2"))?;
    let data = "8 OBJECT  GLOBAL DEFAULT";
    let node = "CUTENSOR_COMPUTE_DESC_32F@@libcutensor.2.0.0";
    assert!(
        symbols
            .lines()
            .any(|line| line.contains(data) && line.ends_with(node)),
        "{symbols}"
    );
    for options in [
        ["-pie", "-fpie"],
        ["-no-pie", "-fno-pie"],
        ["-pie", "-fPIC"],
    ] {
        let program = dir.path().join("program");
        let mut cc = Command::new("cc");
        cc.args(options).arg(&source).arg(&real);
        succeed(cc.arg("-o").arg(&program))?;
        for (path, expected) in [("off", "0 -1\n"), (&*real.to_string_lossy(), "20800 32\n")] {
            let mut command = Command::new(&program);
            command.env("LD_LIBRARY_PATH", &stubs);
            command.env("GPUSTUB_CUTENSOR_PATH", path);
            let ran = succeed(&mut command)?;
            assert_eq!(ran.stdout, expected, "{options:?}: {}", ran.stderr);
        }
    }
    Ok(())
}
