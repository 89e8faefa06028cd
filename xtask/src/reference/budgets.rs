//! Budgets and results: the table of `BENCHMARKS.md`, and its picture.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;

use serde::{Deserialize, Serialize};

use crate::repository::{read, repository};

/// The picture, below `docs/`.
pub const PICTURE: &str = "images/benchmarks.svg";

/// The page with the table, from the root.
pub const PAGE: &str = "BENCHMARKS.md";

/// The rows, from the root.
const ROWS: &str = "tests/benches/budgets.toml";

/// The figures, from the root.
const FIGURES: &str = "tests/benches/figures.toml";

/// First line of the figures.
const HEAD: &str = "# Written by `tests/bench`: figures of the rows of budgets.toml, and the commit that was measured.\n";

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

/// Figures by row and name, and the commit that was measured.
type Figures = BTreeMap<String, Measured>;

#[derive(Deserialize, Serialize, Default)]
struct Measured {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    commit: String,
    #[serde(flatten)]
    figures: BTreeMap<String, f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    budget: Vec<Budget>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Budget {
    id: String,
    /// Arguments of `tests/bench`.
    bench: String,
    what: String,
    #[serde(default)]
    budget: String,
    /// A text with names of figures in braces.
    result: String,
    /// Limits of figures.
    #[serde(default)]
    limits: BTreeMap<String, f64>,
    plot: Option<Plot>,
}

/// A figure of the result.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Plot {
    label: String,
    figure: String,
    #[serde(default)]
    unit: String,
    /// The figure of what one would use instead.
    peer: Option<f64>,
    #[serde(default)]
    peer_name: String,
}

/// The rows, and their figures.
struct Data {
    budgets: Vec<Budget>,
    figures: Figures,
}

impl Data {
    fn read() -> Result<Self, String> {
        let text = read(&repository().join(ROWS))?;
        let document: Document = toml::from_str(&text).map_err(|e| format!("{ROWS}: {e}"))?;
        Ok(Self {
            budgets: document.budget,
            figures: read_figures()?,
        })
    }

    /// A figure of a row.
    fn figure(&self, budget: &Budget, name: &str) -> Result<f64, String> {
        let measured = self.figures.get(&budget.id);
        let figure = measured.and_then(|measured| measured.figures.get(name));
        figure.copied().ok_or_else(|| {
            let (id, bench) = (&budget.id, &budget.bench);
            format!("{FIGURES} has no `{name}` of `{id}`: run `tests/bench {bench}`")
        })
    }

    /// The text with figures.
    fn result(&self, budget: &Budget) -> Result<String, String> {
        let mut parts = budget.result.split('{');
        let mut text = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (name, rest) = part.split_once('}').ok_or("`{` without `}`")?;
            text += &figure_text(self.figure(budget, name)?);
            text += rest;
        }
        Ok(text)
    }

    /// Whether the limits are kept: `yes`, `no`, or the names of the figures that keep theirs.
    fn met(&self, budget: &Budget) -> Result<String, String> {
        let mut met = Vec::new();
        for (name, limit) in &budget.limits {
            if self.figure(budget, name)? <= *limit {
                met.push(name.replace('-', " "));
            }
        }
        Ok(match met.len() {
            count if count == budget.limits.len() => "yes".to_owned(),
            0 => "no".to_owned(),
            _ => met.join(", "),
        })
    }
}

fn read_figures() -> Result<Figures, String> {
    let text = read(&repository().join(FIGURES))?;
    toml::from_str(&text).map_err(|e| format!("{FIGURES}: {e}"))
}

/// `cargo xtask figures DIR COMMIT`: takes over the figures that benches wrote to a directory.
pub fn collect(arguments: &[String]) -> Result<bool, String> {
    let [directory, commit] = arguments else {
        return Err("a directory and a commit are expected".to_owned());
    };
    let mut figures = read_figures()?;
    let unreadable = |e: std::io::Error| format!("could not read {directory}: {e}");
    for entry in fs::read_dir(directory).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let error = |e: toml::de::Error| format!("{}: {e}", path.display());
        let mut measured: Measured = toml::from_str(&read(&path)?).map_err(error)?;
        for figure in measured.figures.values_mut() {
            *figure = rounded(*figure);
        }
        measured.commit.clone_from(commit);
        let row = path.file_stem().unwrap_or_default().to_string_lossy();
        figures.insert(row.into_owned(), measured);
    }
    let text = toml::to_string(&figures).map_err(|e| e.to_string())?;
    fs::write(repository().join(FIGURES), format!("{HEAD}\n{text}"))
        .map_err(|e| format!("could not write {FIGURES}: {e}"))?;
    Ok(true)
}

/// Three digits, or all of those before the point.
fn rounded(figure: f64) -> f64 {
    let digits = 2 - figure.abs().max(0.001).log10().floor() as i32;
    let scale = 10_f64.powi(digits.clamp(0, 3));
    (figure * scale).round() / scale
}

/// A figure as text: ratios have two digits behind the point.
fn figure_text(figure: f64) -> String {
    if figure.fract() == 0.0 && figure.abs() >= 2.0 {
        return figure.to_string();
    }
    let text = figure.to_string();
    let digits = text.split_once('.').map_or(0, |(_, digits)| digits.len());
    if figure.abs() < 10.0 && digits < 2 {
        format!("{figure:.2}")
    } else {
        text
    }
}

/// The page with its table written anew.
pub fn page(page: &str) -> Result<String, String> {
    let (before, rest) = page.split_once(START).ok_or("no begin of the table")?;
    let (_, after) = rest.split_once(END).ok_or("no end of the table")?;
    let mut table =
        String::from("| what | budget | here | met | commit |\n|---|---|---|---|---|\n");
    let data = Data::read()?;
    for budget in &data.budgets {
        let met = match budget.limits.len() {
            0 => String::new(),
            _ => data.met(budget)?,
        };
        let commit = data.figures.get(&budget.id).map(|row| row.commit.clone());
        let cells = [
            budget.what.clone(),
            budget.budget.clone(),
            data.result(budget)?,
            met,
            commit.unwrap_or_default(),
        ];
        let row = cells.map(|cell| format!("| {cell} ")).concat() + "|\n";
        table += &row.replace("|  |", "| |").replace("|  |", "| |");
    }
    Ok([before, START, &table, END, after].concat())
}

/// A bar of the picture.
struct Bar<'a> {
    plot: &'a Plot,
    value: f64,
    limit: f64,
}

/// Each plotted result as a share of its limit.
pub fn svg() -> Result<String, String> {
    let data = Data::read()?;
    let mut plots = Vec::new();
    for budget in &data.budgets {
        if let Some(plot) = &budget.plot {
            let limit = *(budget.limits.get(&plot.figure)).ok_or("a plot without a limit")?;
            let value = data.figure(budget, &plot.figure)?;
            plots.push(Bar { plot, value, limit });
        }
    }
    let height = 70 + 34 * plots.len();
    let mut svg = format!(
        "<svg font-size=\"13\" height=\"{height}\" viewBox=\"0 0 800 {height}\" width=\"800\" \
         xmlns=\"http://www.w3.org/2000/svg\">\n{STYLE}<text text-anchor=\"middle\" x=\"460\" y=\"20\">budget</text>\n"
    );
    for (index, bar) in plots.iter().enumerate() {
        bars(&mut svg, bar, 34 + 34 * index);
    }
    let end = height - 30;
    let _ = write!(
        svg,
        "<path class=\"line\" d=\"M460 26V{end}\"/>\n<text class=\"note\" font-size=\"12\" x=\"260\" y=\"{}\">\
         green: within the budget; red: over it; grey: what one would use instead</text>\n</svg>\n",
        height - 10
    );
    Ok(svg)
}

/// The bars of a result at a height.
fn bars(svg: &mut String, bar: &Bar<'_>, y: usize) {
    let Bar { plot, value, limit } = *bar;
    let width = |value: f64| (FULL * value / limit).min(MAX_WIDTH);
    let bar = width(value);
    let class = if value <= limit { "good" } else { "bad" };
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
        value,
        limit,
        peer.unwrap_or_default()
    );
}
