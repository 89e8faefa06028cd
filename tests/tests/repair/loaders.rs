//! A published wheel that brings its own OpenCL loader, which finds the drivers of every vendor.

use std::fs;
use std::process::Command;

use gpustub_tests::Result;
use gpustub_tests::cargo::gpustub;
use gpustub_tests::command::succeed;
use gpustub_tests::components::{component, only_entry};

/// Status and number of platforms, by the loader that the extension module needs. Importing the package needs numpy; it
/// sets the variable, which the loader reads.
const SCRIPT: &str = "
import ctypes, glob, os
os.environ['PYOPENCL_HOME'] = SITE + '/pyopencl'
module = ctypes.CDLL(glob.glob(SITE + '/pyopencl/_cl.*.so')[0])
count = ctypes.c_uint()
status = module.clGetPlatformIDs(0, None, ctypes.byref(count))
print(status, count.value > 0)
";

#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_pyopencl_finds_drivers_without_a_loader_of_the_system() -> Result<()> {
    let wheel = only_entry(&component("wheels-repair/pyopencl")?)?;
    let scratch = tempfile::tempdir()?;
    let out = scratch.path().join("out");
    let mut repair = gpustub(&["repair", "--out-dir"])?;
    succeed(repair.arg(&out).arg(&wheel))?;
    let output = only_entry(&out)?;
    assert_eq!(output.file_name(), wheel.file_name());
    assert!(fs::read(&output)? == fs::read(&wheel)?);
    let site = scratch.path().join("site");
    super::unpack(&output, &site)?;
    let script = format!("SITE = {site:?}\n{SCRIPT}");
    let mut python = Command::new("python3");
    python.args(["-B", "-c", &script]);
    // A stub finds no loader, as on a machine without one.
    let ran = succeed(python.env("GPUSTUB_OPENCL_PATH", "off"))?;
    assert_eq!(ran.stdout, "0 True\n");
    Ok(())
}
