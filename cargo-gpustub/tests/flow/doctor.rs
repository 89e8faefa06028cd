//! `doctor`, and what `plan` says of the same files.

use serde_json::Value;

use super::{ACME, acme, ends, gpustub, package, write};

#[test]
fn doctor_runs_the_real_run_time() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    package(directory, "user", "");
    acme(directory);
    write(directory, "GpuStub.toml", ACME);
    ends(
        0,
        directory,
        &["add", "acme", "--from", "libacme.so.3", "--returns=status"],
    );
    ends(0, directory, &["sync"]);

    let (out, _) = ends(0, directory, &["doctor"]);
    assert!(out.starts_with("gpustub     "), "{out}");
    assert!(
        out.contains("\nGpuStub.toml\n  acme: unavailable: "),
        "{out}"
    );

    let library = directory.join("libacme.so.3");
    let output = gpustub(directory, &["doctor", "--message-format", "json"])
        .env("GPUSTUB_ACME_PATH", &library)
        .output()
        .unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    let messages: Vec<Value> = out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let [machine, acme] = &messages[..] else {
        panic!("{out}");
    };
    assert_eq!(machine["reason"], "machine");
    assert_eq!(machine["gpustub_version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(acme["library"], "acme");
    assert_eq!(acme["available"], true);
    assert_eq!(acme["path"], library.to_str().unwrap());
    let report = acme["report"].as_str().unwrap();
    assert!(report.contains("3 functions bound"), "{out}");
}

/// CUDA 11 and 12 have one file name of cuSOLVER. An empty file declares nothing, so all libraries are examined.
#[test]
fn doctor_and_plan_name_a_file_of_two_majors_once() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    package(directory, "user", "");
    write(directory, "GpuStub.toml", "schema = 1\n");
    let (out, _) = ends(0, directory, &["doctor"]);
    assert!(
        out.contains("\nknown libraries\n  cublas: ")
            && out.contains("\nknown libraries of ROCm\n  amd-smi: ")
            && out.contains("\n  rocrand: "),
        "{out}"
    );
    assert!(
        !out.contains("libcusolver.so.11, libcusolver.so.11"),
        "{out}"
    );

    let tables = "schema = 1\n[stub.cusolver]\nheader-version = \"12\"\n[stub.hipblaslt]\nheader-version = \"6\"\n";
    write(directory, "GpuStub.toml", tables);
    let (out, _) = ends(0, directory, &["plan"]);
    let names = "load names  libcusolver.so.11, libcusolver.so.12, libcusolver.so\n";
    let notes = "note        no ABI table: calls of all releases are taken to have the same ABI\n    \
                 note        packages share its stubs if their header versions have the same major\n";
    assert!(out.contains(names) && out.contains(notes), "{out}");
}

#[test]
fn doctor_without_a_compiler_names_the_remedy() {
    let directory = tempfile::tempdir().unwrap();
    let output = gpustub(directory.path(), &["doctor"])
        .env("CC", "/nonexistent/cc")
        .output()
        .unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(101), "{err}");
    assert!(
        String::from_utf8(output.stdout)
            .unwrap()
            .contains("\nC compiler  none\n")
    );
    assert!(
        err.contains("no C compiler") && err.contains("apt install gcc"),
        "{err}"
    );
}
