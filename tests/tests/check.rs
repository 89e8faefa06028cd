//! `cargo gpustub check` on real files: stubs in stripped images, and the vendors' own libraries,
//! which must have no findings. `cargo-gpustub/tests/check` has the findings of each rule.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use gpustub_tests::Result;
use gpustub_tests::cargo::gpustub;
use gpustub_tests::command::{run, succeed};
use gpustub_tests::components::{component, wheel_libraries};
use gpustub_tests::scratch::scratch;
use gpustub_tests::stubs::{Machine, Stubs, plan_or_fail};

/// Findings of `check` in a directory, one per line, with relative paths.
fn check(directory: &Path) -> Result<Vec<String>> {
    let mut command = gpustub(&["check", "--message-format", "short", "."])?;
    let ran = run(command.current_dir(directory))?;
    Ok(ran
        .stderr
        .lines()
        .map(|line| line.trim_start_matches("./").to_owned())
        .collect())
}

const CALLS: &str = "
int cuInit(unsigned);
int nvmlInit_v2(void);
int cudaGetDeviceCount(int *);
int demo(int *count) { return cuInit(0) + nvmlInit_v2() + cudaGetDeviceCount(count); }
int main(void) { int count; return demo(&count); }
";

/// Stubs of the driver, NVML and the runtime, and a source that calls them.
fn stubs(dir: &Path) -> Result<Stubs> {
    let manifest = "schema = 1\n[stub.cuda]\nheader-version = \"none\"\n[stub.nvml]\n[stub.cudart]\nheader-version = \"12\"\n";
    fs::write(dir.join("calls.c"), CALLS)?;
    let plan = plan_or_fail(manifest, &[], &Machine::X86_64.target())?;
    Stubs::write(dir, &plan, "cc", &[])
}

fn link(dir: &Path, flags: &[&str], library: &Path, output: &Path) -> Result<()> {
    let mut command = Command::new("cc");
    command
        .args(["-fPIC", "-s"])
        .args(flags)
        .arg(dir.join("calls.c"));
    succeed(command.arg(library).arg("-ldl").arg("-o").arg(output))?;
    Ok(())
}

#[test]
fn stripped_images_with_stubs_have_no_findings() -> Result<()> {
    let dir = scratch()?;
    let work = dir.path();
    let archive = stubs(work)?.archive()?;
    let package = work.join("package");
    fs::create_dir(&package)?;
    link(work, &["-shared"], &archive, &package.join("_core.so"))?;
    link(work, &["-pie"], &archive, &package.join("app"))?;
    assert_eq!(check(&package)?, Vec::<String>::new());
    // Shows that the stubs are recognized: a static program cannot use them.
    link(work, &["-static", "-w"], &archive, &package.join("app"))?;
    assert_eq!(
        check(&package)?,
        [
            "app: error[stubs-in-static-executable]: stubs in a static executable cannot load the real libraries"
        ]
    );
    Ok(())
}

#[test]
fn stub_libraries_have_no_findings() -> Result<()> {
    let dir = scratch()?;
    let work = dir.path();
    let package = work.join("package");
    fs::create_dir(&package)?;
    let shared = stubs(work)?.shared(&package, "shared")?;
    let library = shared.library;
    let linked = work.join("for-linkers.so");
    fs::rename(shared.link_library, &linked)?;
    let flags = ["-shared", "-Wl,-rpath,$ORIGIN"];
    link(work, &flags, &linked, &package.join("_core.so"))?;
    succeed(Command::new("strip").arg(&library))?;
    assert_eq!(check(&package)?, Vec::<String>::new());
    // Shows that the stubs are recognized, also under the real library's name.
    fs::rename(&library, package.join("libcudart.so.12"))?;
    let findings = check(&package)?;
    let expected = "libcudart.so.12: error[ambiguous-stub-name]: ";
    assert!(
        findings.iter().any(|finding| finding.starts_with(expected)),
        "{findings:?}"
    );
    Ok(())
}

#[test]
#[ignore = "needs cudart of three versions: ./tests/run"]
fn a_cudart_that_is_linked_in_is_found_in_stripped_images() -> Result<()> {
    for version in ["12.9", "13.0", "13.5"] {
        let dir = scratch()?;
        let package = dir.path().join("package");
        fs::create_dir(&package)?;
        let code =
            "int cudaGetDeviceCount(int *); int demo(int *n) { return cudaGetDeviceCount(n); }";
        fs::write(dir.path().join("calls.c"), code)?;
        let runtime = wheel_libraries(&format!("cudart-{version}"))?.join("libcudart_static.a");
        let flags = [
            "-shared",
            "-Wl,--gc-sections",
            "-Wl,--exclude-libs,ALL",
            "-lpthread",
            "-lrt",
        ];
        link(dir.path(), &flags, &runtime, &package.join("_core.so"))?;
        assert_eq!(
            check(&package)?,
            ["_core.so: warning[static-cudart]: a static CUDA runtime is linked into this image"],
            "{version}"
        );
    }
    Ok(())
}

/// Findings in files of vendors, by file name: directories of the machine that built them.
const VENDORS_FINDINGS: [&str; 3] = [
    "libmigraphx_c.so.3.0: error[absolute-runpath]: absolute runpath entries: \
     /usr/lib/x86_64-linux-gnu/migraphx/lib",
    "nvshmem_bootstrap_mpi.so.3: error[absolute-runpath]: absolute runpath entries: /data/tmp/openmpi_install/lib",
    "nvshmem_bootstrap_shmem.so.3: error[absolute-runpath]: absolute runpath entries: /data/tmp/openmpi_install/lib",
];

#[test]
#[ignore = "needs the real libraries of all versions: ./tests/run --all"]
fn heavy_vendor_libraries_have_no_other_findings() -> Result<()> {
    let mut findings = BTreeSet::new();
    for entry in fs::read_dir(component("wheels")?.join(".."))? {
        let entry = entry?;
        let directory = entry.path();
        let name = entry.file_name();
        // Third-party wheels, for several suites: `tests/wheels` has the findings of those for `check`. Wine's libraries
        // are no vendor's.
        let is_third_party = ["wheels-", "wine-"]
            .iter()
            .any(|prefix| name.to_string_lossy().starts_with(prefix));
        if !directory.is_dir() || is_third_party {
            continue;
        }
        for finding in check(&directory)? {
            let (path, rest) = finding.split_once(": ").unwrap_or((&finding, ""));
            let file = path.rsplit('/').next().unwrap_or(path);
            findings.insert(format!("{file}: {rest}"));
        }
    }
    assert_eq!(Vec::from_iter(findings), VENDORS_FINDINGS);
    Ok(())
}
