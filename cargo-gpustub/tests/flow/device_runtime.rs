//! `plan` of shared device-linked libraries: the CUDA runtime that they call.

use super::cuda::{dependencies_on, plain, rdc, workspace};
use super::{ends, write};

/// The build of a library learns of a dependency's stubs from that package's device-link metadata.
#[test]
fn shared_stubs_are_those_of_a_package_with_device_code() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let stub = "[stub.cudart]\nheader-version = \"13\"\n";
    workspace(directory);
    plain(directory, "stubs", "");
    write(
        directory,
        "stubs/GpuStub.toml",
        &format!("schema = 1\n{stub}type = \"shared\"\n"),
    );
    rdc(
        directory,
        "area",
        &dependencies_on(&["stubs"]),
        &format!("type = \"shared\"\n{stub}provide = false\n"),
    );
    let hidden =
        "device-link.area has type = \"shared\", and the stubs of the CUDA runtime are static";
    let (_, err) = ends(1, directory, &["plan"]);
    assert!(err.contains(hidden), "{err}");

    rdc(
        directory,
        "stubs",
        "",
        &format!("type = \"shared\"\n{stub}type = \"shared\"\n"),
    );
    ends(0, directory, &["sync", "--workspace"]);
    let (_, err) = ends(0, directory, &["plan"]);
    assert!(!err.contains(hidden), "{err}");
}

/// Programs contain libcudadevrt, and the device link of a shared library does not.
#[test]
fn shared_libraries_require_no_kernels_that_launch_kernels() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    workspace(directory);
    rdc(directory, "base", "", "cudadevrt = true\n");
    let shared = "type = \"shared\"\nrequires = [\"between\"]\n";
    let between = "requires = [\"base\"]\n";
    rdc(directory, "between", &dependencies_on(&["base"]), between);
    rdc(directory, "top", &dependencies_on(&["between"]), shared);
    let (_, err) = ends(1, directory, &["plan"]);
    for part in [
        "error[invalid-value]: device-link.top is shared and requires `base`, which has `cudadevrt`",
        "top/GpuStub.toml:2:14",
    ] {
        assert!(err.contains(part), "{err}");
    }
    rdc(directory, "base", "", "");
    let (_, err) = ends(1, directory, &["plan"]);
    assert!(!err.contains("cudadevrt"), "{err}");
}
