//! A graph that Graphviz draws.

use std::io::Write;
use std::process::{Command, Stdio};

use serde::Deserialize;

/// `docs/images/<file>.dot`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Graph {
    pub file: String,
}

const SOURCE_START: &str = "<desc><![CDATA[\n";
const SOURCE_END: &str = "\n]]></desc>";

/// Colours on light and dark pages. Nodes are filled, and keep dark text. Of two outlines of a node, the inner
/// one comes first and is filled.
const STYLE: &str = "<style>
.node title + [fill=\"none\"] { fill: #ffffff }
@media (prefers-color-scheme: dark) {
  .node polygon, .node path, .node ellipse { stroke: #8b949e }
  .edge path { stroke: #e6edf3 }
  .edge polygon { stroke: #e6edf3; fill: #e6edf3 }
  .edge text { fill: #e6edf3 }
}</style>";

/// White rectangle that Graphviz draws below a graph unless its background is transparent.
const BACKGROUND: &str = "<polygon fill=\"white\"";

/// Whether a picture was drawn from this text, with the colours above.
pub fn is_current(svg: &str, source: &str) -> bool {
    let drawn_from = source_of(svg);
    drawn_from.as_deref() == Some(source.trim()) && svg.contains(STYLE) && !svg.contains(BACKGROUND)
}

/// Text that a picture was drawn from.
fn source_of(svg: &str) -> Option<String> {
    let (_, rest) = svg.split_once(SOURCE_START)?;
    let (source, _) = rest.split_once(SOURCE_END)?;
    Some(source.to_owned())
}

/// Draws a graph by Graphviz (Debian's package graphviz).
pub fn render(source: &str) -> Result<String, String> {
    let mut dot = Command::new("dot");
    dot.args(["-Tsvg", "-Gbgcolor=transparent"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut dot = dot.spawn().map_err(|e| format!("Graphviz's `dot`: {e}"))?;
    let mut input = dot.stdin.take().ok_or("no input of dot")?;
    input
        .write_all(source.as_bytes())
        .map_err(|e| format!("dot: {e}"))?;
    drop(input);
    let drawn = dot.wait_with_output().map_err(|e| format!("dot: {e}"))?;
    if !drawn.status.success() {
        return Err(String::from_utf8_lossy(&drawn.stderr).into_owned());
    }
    let svg = String::from_utf8_lossy(&drawn.stdout);
    let start = svg.find("<svg").ok_or("dot wrote no SVG")?;
    let end = start + svg[start..].find('>').ok_or("dot wrote no SVG")? + 1;
    Ok(format!(
        "{}\n{SOURCE_START}{}{SOURCE_END}\n{STYLE}{}",
        &svg[start..end],
        source.trim(),
        &svg[end..]
    ))
}
