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
    let entries = fs::read_dir(directory).unwrap();
    let mut graphs: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    graphs.sort();
    assert!(graphs.len() >= 69, "only {} graphs", graphs.len());
    graphs
}

/// Standard output of a run, the diagnostics in the format of core's own tests, and the exit code.
fn planned(directory: &Path, graph: &str, arguments: &[&str]) -> (String, String, Option<i32>) {
    let json = ["plan", "--graph", "-", "--message-format", "json"];
    let mut child = gpustub(directory, &[&json[..], arguments].concat())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(graph.as_bytes()).unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    let (mut shown, mut found) = (String::new(), String::new());
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        if !line.starts_with("{\"reason\":\"diagnostic\"") {
            writeln!(shown, "{line}").unwrap();
            continue;
        }
        let one: Value = serde_json::from_str(line).unwrap();
        let text = |key: &str| one[key].as_str().unwrap();
        let place = &one["location"];
        assert_eq!(place["file"], "<stdin>");
        let (line, column) = (&place["line"], &place["column"]);
        let (level, code, message) = (text("level"), text("code"), text("message"));
        writeln!(found, "{line}:{column}: {level}[{code}]: {message}").unwrap();
        if let Some(help) = one["help"].as_str() {
            writeln!(found, "  help: {help}").unwrap();
        }
    }
    assert!(output.stderr.is_empty());
    (shown, found, output.status.code())
}

/// The command plans every graph of core's tests as core does.
#[test]
fn every_graph_gives_the_plan_of_core() {
    let directory = tempfile::tempdir().unwrap();
    let (mut explained, mut drawn) = (0, 0);
    for file in graphs() {
        let text = fs::read_to_string(&file).unwrap();
        let (graph, expected) = text.split_once("---\n").unwrap();
        let (mut shown, found, code) = planned(directory.path(), graph, &[]);
        shown += &found;
        let fails = expected.contains(": error[");
        assert_eq!(code, Some(i32::from(fails)), "{}", file.display());
        for line in graph.lines() {
            let (more, found_again, code_again) =
                if let Some(node) = line.strip_prefix("# explain ") {
                    explained += 1;
                    planned(directory.path(), graph, &["--why", node])
                } else if line == "# dot" {
                    drawn += 1;
                    planned(directory.path(), graph, &["--format", "dot"])
                } else {
                    continue;
                };
            assert_eq!((found_again, code_again), (found.clone(), code));
            write!(shown, "\n{more}").unwrap();
        }
        assert_eq!(shown, expected, "{}", file.display());
    }
    assert!(explained >= 2 && drawn >= 1);
}

#[test]
fn a_graph_as_json() {
    let directory = tempfile::tempdir().unwrap();
    let graph = "B*:shared archs=sm_80 cudart=shared; A*:static -> B; p:plugin -> B; \
                 exe:bin -> A opens p,q; q:cdylib -> A\n";
    let (text, found, code) = planned(directory.path(), graph, &["--format", "json"]);
    assert_eq!(code, Some(1));
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["reason"], "plan");
    assert_eq!(document["format_version"], 1);
    let nodes = document["device_link"]["nodes"].as_array().unwrap();
    let keys = |value: &Value| {
        let keys = value.as_object().unwrap().keys();
        keys.cloned().collect::<Vec<_>>().join(" ")
    };
    for node in nodes {
        assert_eq!(
            keys(node),
            "artifacts device_link final_host_link host_link kind links name opens rule type \
             uses_final"
        );
    }
    let archive = serde_json::json!({"item": "archive", "node": "A"});
    assert_eq!(
        nodes[3]["device_link"],
        serde_json::json!({"inputs": ["A", "B"], "archs": ["sm_80"], "lto": false, "exports": ["B"]})
    );
    assert_eq!(nodes[3]["host_link"][1], archive);
    assert_eq!(nodes[4]["device_link"]["exports"], serde_json::json!(["B"]));
    assert_eq!(nodes[3]["opens"], serde_json::json!(["p", "q"]));
    assert_eq!(nodes[2]["uses_final"], "B");
    assert_eq!(nodes[0]["rule"], "split-library");
    assert!(found.contains("error[duplicate-device-link]"), "{found}");
}

#[test]
fn invalid_graphs_are_reported_with_spans() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    write(directory, "g.txt", "B*:shared\napp:bin -> B\n");
    let plan = |more: &[&'static str]| [&["plan", "--graph", "g.txt"][..], more].concat();
    let (out, _) = ends(0, directory, &plan(&[]));
    assert!(
        out.ends_with("app: uses B_final, then middles B\n"),
        "{out}"
    );

    let (out, err) = ends(101, directory, &plan(&["--why", "ap"]));
    assert!(
        out.is_empty() && err.contains("did you mean `app`?"),
        "{err}"
    );
    let (_, err) = ends(101, directory, &plan(&["--why", "nothing-like-it"]));
    assert!(err.contains("unknown target `nothing-like-it`"), "{err}");
    for more in [
        &["-p", "x"][..],
        &["--target", "x"],
        &["--offline"],
        &["--manifest-path", "x"],
        &["--all-features"],
    ] {
        let (_, err) = ends(2, directory, &plan(more));
        assert!(err.contains("cannot be used with"), "{err}");
    }
    let (_, err) = ends(2, directory, &plan(&["--why", "B", "--format", "dot"]));
    assert!(err.contains("cannot be used with"), "{err}");
    let (_, err) = ends(101, directory, &["plan", "--graph", "none.txt"]);
    assert!(err.contains("could not read `none.txt`"), "{err}");

    write(directory, "g.txt", "B*:shard\n");
    let (out, err) = ends(1, directory, &plan(&[]));
    assert!(out.is_empty(), "{out}");
    assert!(
        err.contains("--> g.txt:1:4") && err.contains("did you mean `shared`?"),
        "{err}"
    );
    // Same as with a graph that is parsed and cannot be planned.
    write(directory, "g.txt", "B*:shared -> C\n");
    let (_, err) = ends(1, directory, &plan(&[]));
    assert!(
        err.contains("error[unknown-device-library]: unknown device library `C` in `B`"),
        "{err}"
    );
    fs::write(directory.join("g.txt"), b"B*:shared \xff").unwrap();
    let (_, err) = ends(101, directory, &plan(&[]));
    assert!(err.contains("UTF-8"), "{err}");
    let long = "# a comment of sixteen\n".repeat((16 << 20) / 23 + 1);
    fs::write(directory.join("g.txt"), long).unwrap();
    let (_, err) = ends(101, directory, &plan(&[]));
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
    let [example, graph] = blocks[..] else {
        panic!("{} blocks", blocks.len());
    };
    let (command, shown) = example.split_once("\n...\n").unwrap();
    assert_eq!(command, "cargo gpustub plan -p app");
    let (out, _) = ends(
        0,
        &repository().join("examples/device-link"),
        &["plan", "-p", "app"],
    );
    assert!(out.ends_with(&format!("\n{shown}")), "{out}");

    let (command, shown) = graph.split_once('\n').unwrap();
    let (echo, command) = command.split_once(" | ").unwrap();
    assert_eq!(command, "cargo gpustub plan --graph -");
    let text = echo.trim_start_matches("echo '").trim_end_matches('\'');
    let directory = tempfile::tempdir().unwrap();
    let (out, found, code) = planned(directory.path(), text, &[]);
    assert_eq!((out.as_str(), found.as_str(), code), (shown, "", Some(0)));
    // Every code that the page names exists.
    let table = page.split("| code | fault |").nth(1).unwrap();
    for row in table.lines().filter(|line| line.starts_with("| `")) {
        let codes = row.split('|').nth(1).unwrap();
        for code in codes.split('`').skip(1).step_by(2) {
            ends(0, directory.path(), &["explain", code]);
        }
    }
}
