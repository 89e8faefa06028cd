//! `plan --graph`: graphs in files, which need neither cargo nor a package.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;

use super::{ends, gpustub, repository, write};

/// Graphs of core's tests, each with its expected plan.
fn graphs() -> Vec<PathBuf> {
    let directory = repository().join("crates/core/tests/device_link");
    let mut graphs: Vec<PathBuf> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    graphs.sort();
    assert!(graphs.len() >= 69, "only {} graphs", graphs.len());
    graphs
}

/// Standard output of a run, the diagnostics in the format of core's own tests, and the exit code.
fn plan_graph(directory: &Path, graph: &str, options: &[&str]) -> (String, String, Option<i32>) {
    let plan = ["plan", "--graph", "-", "--message-format", "json"];
    let mut child = gpustub(directory, &[&plan[..], options].concat())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(graph.as_bytes()).unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    let (mut out, mut diagnostics) = (String::new(), String::new());
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        if !line.starts_with("{\"reason\":\"diagnostic\"") {
            writeln!(out, "{line}").unwrap();
            continue;
        }
        let diagnostic: Value = serde_json::from_str(line).unwrap();
        let location = &diagnostic["location"];
        assert_eq!(location["file"], "<stdin>");
        let (line, column) = (&location["line"], &location["column"]);
        let [level, code, message] =
            ["level", "code", "message"].map(|key| diagnostic[key].as_str().unwrap());
        writeln!(diagnostics, "{line}:{column}: {level}[{code}]: {message}").unwrap();
        if let Some(help) = diagnostic["help"].as_str() {
            writeln!(diagnostics, "  help: {help}").unwrap();
        }
    }
    assert!(output.stderr.is_empty());
    (out, diagnostics, output.status.code())
}

/// The command plans every graph of core's tests as core does.
#[test]
fn every_graph_gives_the_plan_of_core() {
    let directory = tempfile::tempdir().unwrap();
    let (mut explained, mut drawn) = (0, 0);
    for file in graphs() {
        let text = fs::read_to_string(&file).unwrap();
        let (graph, expected) = text.split_once("---\n").unwrap();
        let (mut plan, diagnostics, code) = plan_graph(directory.path(), graph, &[]);
        plan += &diagnostics;
        let has_errors = expected.contains(": error[");
        assert_eq!(code, Some(i32::from(has_errors)), "{}", file.display());
        for line in graph.lines() {
            let options = if let Some(node) = line.strip_prefix("# explain ") {
                explained += 1;
                ["--why", node]
            } else if line == "# dot" {
                drawn += 1;
                ["--format", "dot"]
            } else {
                continue;
            };
            let output = plan_graph(directory.path(), graph, &options);
            write!(plan, "\n{}", output.0).unwrap();
            assert_eq!((output.1, output.2), (diagnostics.clone(), code));
        }
        assert_eq!(plan, expected, "{}", file.display());
    }
    assert!(explained >= 2 && drawn >= 1);
}

#[test]
fn a_graph_as_json() {
    let directory = tempfile::tempdir().unwrap();
    let graph = "B*:shared archs=sm_80 cudart=shared; A*:static -> B; p:plugin -> B; \
                 exe:bin -> A opens p,q; q:cdylib -> A\n";
    let (out, diagnostics, code) = plan_graph(directory.path(), graph, &["--format", "json"]);
    assert_eq!(code, Some(1));
    let document: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(document["reason"], "plan");
    assert_eq!(document["format_version"], 1);
    let nodes = document["device_link"]["nodes"].as_array().unwrap();
    for node in nodes {
        let keys: Vec<&str> = node
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        assert_eq!(
            keys.join(" "),
            "artifacts device_link final_host_link host_link kind links name opens rule type \
             uses_final"
        );
    }
    let archive = serde_json::json!({"item": "archive", "node": "A"});
    assert_eq!(
        nodes[3]["device_link"],
        serde_json::json!({"inputs": ["A", "B"], "archs": ["sm_80"], "lto": false, "ptx": null, "exports": ["B"]})
    );
    assert_eq!(nodes[3]["host_link"][1], archive);
    assert_eq!(nodes[4]["device_link"]["exports"], serde_json::json!(["B"]));
    assert_eq!(nodes[3]["opens"], serde_json::json!(["p", "q"]));
    assert_eq!(nodes[2]["uses_final"], "B");
    assert_eq!(nodes[0]["rule"], "split-library");
    assert!(
        diagnostics.contains("error[duplicate-device-link]"),
        "{diagnostics}"
    );
}

/// Plans the graph in `g.txt`.
fn plan_file(code: i32, directory: &Path, options: &[&str]) -> (String, String) {
    let plan = ["plan", "--graph", "g.txt"];
    ends(code, directory, &[&plan[..], options].concat())
}

#[test]
fn invalid_graphs_are_reported_with_spans() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    write(directory, "g.txt", "B*:shared\napp:bin -> B\n");
    let (out, _) = plan_file(0, directory, &[]);
    assert!(
        out.ends_with("app: uses B_final, then middles B\n"),
        "{out}"
    );

    let (out, err) = plan_file(101, directory, &["--why", "ap"]);
    assert!(
        out.is_empty() && err.contains("did you mean `app`?"),
        "{err}"
    );
    let (_, err) = plan_file(101, directory, &["--why", "nothing-like-it"]);
    assert!(err.contains("unknown target `nothing-like-it`"), "{err}");
    for options in [
        &["-p", "x"][..],
        &["--target", "x"],
        &["--offline"],
        &["--manifest-path", "x"],
        &["--all-features"],
    ] {
        let (_, err) = plan_file(2, directory, options);
        assert!(err.contains("cannot be used with"), "{err}");
    }
    let (_, err) = plan_file(2, directory, &["--why", "B", "--format", "dot"]);
    assert!(err.contains("cannot be used with"), "{err}");
    let (_, err) = ends(101, directory, &["plan", "--graph", "none.txt"]);
    assert!(err.contains("could not read `none.txt`"), "{err}");

    write(directory, "g.txt", "B*:shard\n");
    let (out, err) = plan_file(1, directory, &[]);
    assert!(out.is_empty(), "{out}");
    assert!(
        err.contains("--> g.txt:1:4") && err.contains("did you mean `shared`?"),
        "{err}"
    );
    // Same as with a graph that is parsed and cannot be planned.
    write(directory, "g.txt", "B*:shared -> C\n");
    let (_, err) = plan_file(1, directory, &[]);
    assert!(
        err.contains("error[unknown-device-library]: unknown device library `C` in `B`"),
        "{err}"
    );
    fs::write(directory.join("g.txt"), b"B*:shared \xff").unwrap();
    let (_, err) = plan_file(101, directory, &[]);
    assert!(err.contains("UTF-8"), "{err}");
    let oversized = "# a comment of sixteen\n".repeat((16 << 20) / 23 + 1);
    fs::write(directory.join("g.txt"), oversized).unwrap();
    let (_, err) = plan_file(101, directory, &[]);
    assert!(err.contains("`g.txt` is longer than 16 MiB"), "{err}");
}

/// Outputs shown in `docs/device-link.md`, of the example and of a graph.
#[test]
fn device_link_page_shows_the_real_output() {
    let page = fs::read_to_string(repository().join("docs/device-link.md")).unwrap();
    let blocks: Vec<&str> = page
        .split("```console\n$ ")
        .skip(1)
        .filter_map(|block| block.split("```").next())
        .collect();
    // The first workspace needs nvcc: `tests/cases/newcomers.toml`.
    let [_, example, graph] = blocks[..] else {
        panic!("{} blocks", blocks.len());
    };
    let (command, expected) = example.split_once("\n...\n").unwrap();
    assert_eq!(command, "cargo gpustub plan -p app");
    let (out, _) = ends(
        0,
        &repository().join("examples/device-link"),
        &["plan", "-p", "app"],
    );
    assert!(out.ends_with(&format!("\n{expected}")), "{out}");

    let (command, expected) = graph.split_once('\n').unwrap();
    let (echo, command) = command.split_once(" | ").unwrap();
    assert_eq!(command, "cargo gpustub plan --graph -");
    let graph = echo.trim_start_matches("echo '").trim_end_matches('\'');
    let directory = tempfile::tempdir().unwrap();
    let (out, diagnostics, code) = plan_graph(directory.path(), graph, &[]);
    assert_eq!(
        (out.as_str(), diagnostics.as_str(), code),
        (expected, "", Some(0))
    );
    // Every code that the page names exists.
    let table = page.split("| code | fault |").nth(1).unwrap();
    for row in table.lines().filter(|line| line.starts_with("| `")) {
        let codes = row.split('|').nth(1).unwrap();
        for code in codes.split('`').skip(1).step_by(2) {
            ends(0, directory.path(), &["explain", code]);
        }
    }
}
