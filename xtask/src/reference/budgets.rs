//! Budgets and results: the table of `BENCHMARKS.md`, and its picture.

use std::fmt::Write;

use serde::Deserialize;

/// The picture, below `docs/`.
pub const PICTURE: &str = "images/benchmarks.svg";

/// The page with the table, from the root.
pub const PAGE: &str = "BENCHMARKS.md";

/// Lines around the table.
const START: &str = "<!-- written by `cargo xtask reference` -->\n\n";
const END: &str = "\n<!-- end -->";

/// Width of a bar that fills its budget.
const FULL: f64 = 200.0;

/// Width of a bar at most: more is cut.
const MAX_WIDTH: f64 = 380.0;

const STYLE: &str = "<style>
text { font-family: system-ui, sans-serif; fill: #1f2328 }
.line { stroke: #1f2328; fill: none }
.note { fill: #59636e }
.good { fill: #2da44e }
.bad { fill: #cf222e }
.peer { fill: #8b949e }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  .line { stroke: #e6edf3 }
  .note { fill: #9198a1 }
}
</style>
";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    budget: Vec<Budget>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Budget {
    what: String,
    #[serde(default)]
    budget: String,
    result: String,
    #[serde(default)]
    met: String,
    plot: Option<Plot>,
}

/// A figure of the result.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Plot {
    label: String,
    limit: f64,
    value: f64,
    #[serde(default)]
    unit: String,
    /// The figure of what one would use instead.
    peer: Option<f64>,
    #[serde(default)]
    peer_name: String,
}

/// The data.
fn budgets() -> Vec<Budget> {
    let text = include_str!("../../../tests/benches/budgets.toml");
    let document: Document = toml::from_str(text).expect("tests/benches/budgets.toml is valid");
    document.budget
}

/// The page with its table written anew.
pub fn page(page: &str) -> Result<String, String> {
    let (before, rest) = page.split_once(START).ok_or("no begin of the table")?;
    let (_, after) = rest.split_once(END).ok_or("no end of the table")?;
    let mut table = String::from("| what | budget | here | met |\n|---|---|---|---|\n");
    for budget in budgets() {
        let cells = [budget.what, budget.budget, budget.result, budget.met];
        let row = cells.map(|cell| format!("| {cell} ")).concat() + "|\n";
        table += &row.replace("|  |", "| |");
    }
    Ok([before, START, &table, END, after].concat())
}

/// Each plotted result as a share of its budget.
pub fn svg() -> String {
    let plots: Vec<Plot> = budgets()
        .into_iter()
        .filter_map(|budget| budget.plot)
        .collect();
    let height = 70 + 34 * plots.len();
    let mut svg = format!(
        "<svg font-size=\"13\" height=\"{height}\" viewBox=\"0 0 800 {height}\" width=\"800\" \
         xmlns=\"http://www.w3.org/2000/svg\">\n{STYLE}<text text-anchor=\"middle\" x=\"460\" y=\"20\">budget</text>\n"
    );
    for (index, plot) in plots.iter().enumerate() {
        bars(&mut svg, plot, 34 + 34 * index);
    }
    let end = height - 30;
    let _ = write!(
        svg,
        "<path class=\"line\" d=\"M460 26V{end}\"/>\n<text class=\"note\" font-size=\"12\" x=\"260\" y=\"{}\">\
         green: within the budget; red: over it; grey: what one would use instead</text>\n</svg>\n",
        height - 10
    );
    svg
}

/// The bars of a result at a height.
fn bars(svg: &mut String, plot: &Plot, y: usize) {
    let width = |value: f64| (FULL * value / plot.limit).min(MAX_WIDTH);
    let bar = width(plot.value);
    let class = if plot.value <= plot.limit {
        "good"
    } else {
        "bad"
    };
    let unit = match &*plot.unit {
        "" => String::new(),
        unit => format!(" {unit}"),
    };
    let peer = plot.peer.map(|peer| format!("; {} {peer}", plot.peer_name));
    let _ = write!(
        svg,
        "<text text-anchor=\"end\" x=\"250\" y=\"{}\">{}</text>\n\
         <rect class=\"{class}\" height=\"14\" width=\"{bar:.1}\" x=\"260\" y=\"{y}\"/>\n",
        y + 13,
        plot.label
    );
    if let Some(peer) = plot.peer {
        let _ = writeln!(
            svg,
            "<rect class=\"peer\" height=\"5\" width=\"{:.1}\" x=\"260\" y=\"{}\"/>",
            width(peer),
            y + 16
        );
    }
    let _ = writeln!(
        svg,
        "<text class=\"note\" font-size=\"12\" x=\"{:.0}\" y=\"{}\">{}{unit} of {}{}</text>",
        270.0 + bar.max(FULL).max(plot.peer.map_or(0.0, width)),
        y + 13,
        plot.value,
        plot.limit,
        peer.unwrap_or_default()
    );
}
