//! Plans of device links as data: each `device_link/*.txt` is a graph, a line `---`, and the plan with
//! every diagnostic; after a comment `# explain NAME` or `# dot`, also that output. `g*` are the worked
//! graphs of the rules, `crdc-*` tests of CudaRdcUtils. `BLESS=1 cargo test` rewrites the plans.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use gpustub_core::device_link::{Graph, plan};
use gpustub_core::diag::{Diagnostic, LineColumn, line_column};

fn show(diagnostics: &[Diagnostic], text: &str) -> String {
    let mut rendered = String::new();
    for diagnostic in diagnostics {
        let origin = diagnostic.origin.as_ref().expect("a place");
        let LineColumn { line, column } = line_column(text, origin.span.start);
        writeln!(rendered, "{line}:{column}: {diagnostic}").unwrap();
    }
    rendered
}

fn run(text: &str) -> String {
    let (graph, diagnostics) = Graph::parse("graph", text);
    if !diagnostics.is_empty() {
        return show(&diagnostics, text);
    }
    let (plan, diagnostics) = plan(&graph);
    let mut output = plan.to_text() + &show(&diagnostics, text);
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("# explain ") {
            output += "\n";
            output += &plan.explain(graph.find(name).expect("a node"));
        } else if line == "# dot" {
            output += "\n";
            output += &plan.to_dot();
        }
    }
    output
}

#[test]
fn graphs_give_the_expected_plans() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/device_link");
    let mut cases: Vec<PathBuf> = fs::read_dir(&root)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    cases.sort();
    assert!(cases.len() >= 60, "only {} cases", cases.len());
    #[expect(
        clippy::disallowed_methods,
        reason = "a switch of this test, no input of a build"
    )]
    let bless = std::env::var_os("BLESS").is_some();
    let mut differences = String::new();
    for case in &cases {
        let text = fs::read_to_string(case).unwrap();
        let (graph, expected) = text.split_once("---\n").expect("a line ---");
        let output = run(graph);
        if bless {
            fs::write(case, format!("{graph}---\n{output}")).unwrap();
        } else if output != expected {
            let name = case.display();
            write!(
                differences,
                "---- {name}: expected\n{expected}---- found\n{output}"
            )
            .unwrap();
        }
    }
    assert!(
        differences.is_empty(),
        "{differences}(BLESS=1 takes what was found)"
    );
}
