//! Pictures of `docs/images`: sources that programs print, and the pages that show each.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use gpustub_tests::cargo::gpustub;
use gpustub_tests::{Result, repository};

/// The graph of `docs/device-link.md`.
const GRAPH: &str = "B*:shared; A*:shared -> B; C*:shared -> B; exe:bin -> A,C";

#[test]
fn device_link_figure_is_the_graph_that_plan_prints() -> Result<()> {
    let page = fs::read_to_string(repository().join("docs/device-link.md"))?;
    assert!(page.contains(GRAPH), "the page shows the same graph");
    let mut plan = gpustub(&["plan", "--graph", "-", "--format", "dot"])?;
    let mut plan = plan.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut input = plan.stdin.take().ok_or("no input")?;
    input.write_all(GRAPH.as_bytes())?;
    drop(input);
    let printed = String::from_utf8(plan.wait_with_output()?.stdout)?;
    let figure = fs::read_to_string(repository().join("docs/images/device-link.dot"))?;
    assert_eq!(printed, figure);
    Ok(())
}

#[test]
fn each_picture_is_on_a_page() -> Result<()> {
    let root = repository();
    let mut pages = fs::read_to_string(root.join("README.md"))?;
    pages += &fs::read_to_string(root.join("BENCHMARKS.md"))?;
    for entry in fs::read_dir(root.join("docs"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "md") {
            pages += &fs::read_to_string(path)?;
        }
    }
    for entry in fs::read_dir(root.join("docs/images"))? {
        let name = entry?.file_name();
        let name = name.to_string_lossy();
        let is_source = name.ends_with(".dot");
        assert!(
            is_source || pages.contains(&format!("images/{name})")),
            "no page shows {name}"
        );
    }
    Ok(())
}
