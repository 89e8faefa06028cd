//! Table and plot of the budgets, from one list.

use std::fmt::Write;
use std::path::Path;

use serde::Deserialize;
use svg::Document;
use svg::node::element::{Line, Rectangle, Style, Text};

use super::colors::STYLE;
use super::{Output, image, read};

/// The plot, and the page that has the table.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plot {
    file: String,
    page: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Budgets {
    budget: Vec<Budget>,
}

/// A row of the table.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Budget {
    what: String,
    budget: String,
    here: String,
    met: String,
    plot: Option<Bar>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Bar {
    label: String,
    budget: f64,
    here: f64,
    unit: String,
    peer: Option<Peer>,
}

/// Result of what a user would pick instead.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Peer {
    name: String,
    value: f64,
}

const TABLE_START: &str =
    "<!-- `cargo xtask pictures` writes this table from xtask/data/budgets.toml -->\n";
const TABLE_END: &str = "<!-- end -->\n";

const WIDTH: usize = 800;
const ROW: usize = 34;
const LEFT: f64 = 240.0;
/// Pixels from 0 to the budget.
const SCALE: f64 = 200.0;
/// End of the axis, in budgets.
const MOST: f64 = 1.7;

impl Plot {
    pub fn render(&self, root: &Path) -> Result<[Output; 2], String> {
        let budgets: Budgets = toml::from_str(include_str!("../../data/budgets.toml"))
            .map_err(|e| format!("xtask/data/budgets.toml: {e}"))?;
        let page = read(root, &self.page)?;
        let places = page.split_once(TABLE_START).and_then(|(before, rest)| {
            rest.split_once(TABLE_END).map(|(_, after)| (before, after))
        });
        let (before, after) = places.ok_or_else(|| format!("{} has no table", self.page))?;
        let mut table = String::from("| what | budget | here | met |\n|---|---|---|---|\n");
        for Budget {
            what,
            budget,
            here,
            met,
            ..
        } in &budgets.budget
        {
            // Cannot fail: a string grows.
            let _ = writeln!(table, "| {what} | {budget} | {here} | {met} |");
        }
        let page = Output {
            path: self.page.clone(),
            text: format!("{before}{TABLE_START}{table}{TABLE_END}{after}"),
        };
        let bars: Vec<&Bar> = budgets
            .budget
            .iter()
            .filter_map(|row| row.plot.as_ref())
            .collect();
        Ok([page, image(&self.file, draw(&bars))])
    }
}

fn draw(bars: &[&Bar]) -> String {
    let height = 40 + bars.len() * ROW + 30;
    let limit = LEFT + SCALE;
    let text = |text: &str, x: f64, y: usize| Text::new(text).set("x", x).set("y", y);
    let mut document = Document::new()
        .set("viewBox", (0, 0, WIDTH, height))
        .set("width", WIDTH)
        .set("height", height)
        .set("font-size", 13)
        .add(Style::new(STYLE))
        .add(text("budget = 1.0", limit, 20).set("text-anchor", "middle"));
    for (at, bar) in bars.iter().enumerate() {
        let y = 34 + at * ROW;
        let share = bar.here / bar.budget;
        let length = share.min(MOST) * SCALE;
        let class = if share <= 1.0 { "good" } else { "bad" };
        let rectangle = |length: f64, y: usize, height: usize, class: &str| {
            Rectangle::new()
                .set("class", class)
                .set("x", LEFT)
                .set("y", y)
                .set("width", format!("{length:.1}"))
                .set("height", height)
        };
        let result = format!("{} {} of {}", bar.here, bar.unit, bar.budget);
        let result = result.replace("  ", " ");
        document = document
            .add(text(&bar.label, LEFT - 10.0, y + 13).set("text-anchor", "end"))
            .add(rectangle(length, y, 14, class));
        let mut note = result;
        let mut end = length;
        if let Some(peer) = &bar.peer {
            let length = (peer.value / bar.budget).min(MOST) * SCALE;
            document = document.add(rectangle(length, y + 16, 5, "peer"));
            note = format!("{note}; {} {}", peer.name, peer.value);
            end = end.max(length);
        }
        let x = LEFT + end.max(SCALE) + 10.0;
        document = document.add(
            text(&note, x, y + 13)
                .set("class", "note")
                .set("font-size", 12),
        );
    }
    let line = Line::new()
        .set("class", "line")
        .set("x1", limit)
        .set("x2", limit)
        .set("y1", 26)
        .set("y2", height - 30);
    let legend = "green: within the budget; red: over it; grey: what one would use instead";
    let legend = text(legend, LEFT, height - 8)
        .set("class", "note")
        .set("font-size", 12);
    format!("{}\n", document.add(line).add(legend))
}
