//! `abi`: every function against the schema, and a consumer in another language.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use serde_json::Value;

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
    let names = [
        "cudart",
        "cudaInitDevice",
        "cudaMalloc",
        "cudaGetDeviceProperties",
    ];
    let mut python = Command::new("python3")
        .arg(repository().join("tests/programs/abi-releases.py"))
        .args(names)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    python
        .stdin
        .take()
        .unwrap()
        .write_all(ALL.as_bytes())
        .unwrap();
    let output = python.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        "cudaGetDeviceProperties 13.0: argument 0: cudaDeviceProp: 728 -> 1008 bytes\nneeds 12.0\n"
    );
}
