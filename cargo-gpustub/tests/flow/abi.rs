//! `abi`: every function against the schema, and a consumer in another language.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use serde_json::{Value, json};

use super::{ends, repository};

/// The whole table.
static ALL: LazyLock<String> = LazyLock::new(|| {
    let directory = tempfile::tempdir().unwrap();
    ends(
        0,
        directory.path(),
        &["gpustub", "abi", "--all", "--format", "jsonl"],
    )
    .0
});

#[test]
fn every_line_has_the_form_of_the_schema() {
    let text = fs::read_to_string(repository().join("docs/abi.schema.json")).unwrap();
    let schema: Value = serde_json::from_str(&text).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let (mut functions, mut prototypes) = (0, 0);
    for line in ALL.lines() {
        let function: Value = serde_json::from_str(line).unwrap();
        let errors: Vec<String> = validator
            .iter_errors(&function)
            .map(|error| error.to_string())
            .collect();
        assert!(errors.is_empty(), "{line}\n{errors:?}");
        if let Some(prototype) = function["prototypes"].as_array().unwrap().last() {
            let is_void = prototype["text"].as_str().unwrap().starts_with("void ")
                && !prototype["text"].as_str().unwrap().starts_with("void *");
            assert_eq!(is_void, function["returns"] == "void", "{line}");
        }
        functions += 1;
        prototypes += usize::from(function["prototypes"][0].is_object());
    }
    // Functions that no header in C declares, and libraries without a table, have none.
    assert!(
        functions > 9000 && prototypes > functions * 8 / 10,
        "{prototypes} of {functions}"
    );
}

/// The example of `docs/abi.md`.
#[test]
fn python_reads_the_table() {
    for (names, status, stdout, stderr) in [
        (
            &["cudaInitDevice", "cudaMalloc", "cudaGetDeviceProperties"][..],
            0,
            "cudaGetDeviceProperties 13.0: argument 0: cudaDeviceProp: 728 -> 1008 bytes\nneeds 12.0\n",
            "",
        ),
        // The first one ended with 11.8.
        (
            &["cudaBindTexture", "cudaInitDevice"],
            1,
            "",
            "no release has all of them\n",
        ),
        (&["cudaBindTexture", "cudaMalloc"], 0, "needs 11.7\n", ""),
        (
            &["cudaMalloc", "nope1", "nope2"],
            1,
            "",
            "unknown: nope1 nope2\n",
        ),
    ] {
        let mut python = Command::new("python3")
            .arg(repository().join("tests/programs/abi-releases.py"))
            .arg("cudart")
            .args(names)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = python.stdin.take().unwrap();
        stdin.write_all(ALL.as_bytes()).unwrap();
        drop(stdin);
        let output = python.wait_with_output().unwrap();
        let texts = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
        assert_eq!(texts, [stdout, stderr], "{names:?}");
        assert_eq!(output.status.code(), Some(status), "{names:?}");
    }
}

/// Facts that the form does not show.
#[test]
fn facts_about_functions() {
    for (library, name, pointer, expected) in [
        // Two symbol versions, of 2.0 to 2.7 and from 2.3 on.
        (
            "cutensor",
            "cutensorBlockSparseContract",
            "/releases",
            json!([{ "since": "2.0", "until": null, "lacking": null }]),
        ),
        (
            "cutensor",
            "cutensorBlockSparseContract",
            "/symbol_versions",
            json!(["libcutensor.2.0.0", "libcutensor.2.3.0"]),
        ),
        (
            "nvml",
            "nvmlDeviceGetComputeRunningProcesses_v3",
            "/variants",
            json!([
                { "since": "11.7", "variant": 2, "difference": null },
                { "since": "12.2", "variant": null, "difference": null },
                { "since": "12.3", "variant": 2, "difference": null },
            ]),
        ),
        (
            "opencl",
            "clGetPlatformIDs",
            "/status/library_missing",
            json!(-1001),
        ),
        (
            "opencl",
            "clGetDeviceIDs",
            "/status/library_missing",
            json!(-32),
        ),
        ("nccl", "ncclResetDebugInit", "/returns", json!("void")),
        (
            "rocblas",
            "rocblas_abort",
            "/prototypes/0/text",
            json!("void rocblas_abort(void) __attribute__((noreturn))"),
        ),
    ] {
        let key = format!("\"name\":\"{name}\"");
        let functions = ALL.lines().filter(|line| line.contains(&key));
        let function = functions
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .find(|function| function["library"] == library && function["name"] == name)
            .unwrap();
        assert_eq!(function.pointer(pointer), Some(&expected), "{name}");
    }
}
