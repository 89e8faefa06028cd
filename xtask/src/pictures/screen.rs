//! A terminal with a command and its output.

use std::path::Path;

use serde::Deserialize;
use svg::Document;
use svg::node::element::{Circle, Rectangle, Text};

use super::read;

/// Output of a command, as a page has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Screen {
    pub file: String,
    title: String,
    /// Page that has the command in a `console` block.
    page: String,
    command: String,
    /// Number of lines that are shown; all if absent.
    lines: Option<usize>,
}

/// Longest line, in characters: at 800 pixels a character is 7.6 wide.
const COLUMNS: usize = 100;
const CHARACTER_WIDTH: f32 = 7.6;
const LINE_HEIGHT: usize = 18;
const MARGIN: usize = 16;
const TITLE_HEIGHT: usize = 30;

impl Screen {
    pub fn render(&self, root: &Path) -> Result<String, String> {
        let page = read(root, &self.page)?;
        let prompt = format!("$ {}", self.command);
        let mut output = page
            .lines()
            .skip_while(|line| *line != prompt)
            .skip(1)
            .peekable();
        if output.peek().is_none() {
            return Err(format!("{} has no line `{prompt}`", self.page));
        }
        let output = output.take_while(|line| *line != "```" && !line.starts_with("$ "));
        let shown = output.take(self.lines.unwrap_or(usize::MAX));
        let lines = std::iter::once(prompt.as_str()).chain(shown);
        let lines: Vec<String> = lines.flat_map(wrap).collect();
        Ok(self.draw(&lines))
    }

    fn draw(&self, lines: &[String]) -> String {
        let width = 2 * MARGIN + (COLUMNS as f32 * CHARACTER_WIDTH) as usize;
        let height = TITLE_HEIGHT + MARGIN + lines.len() * LINE_HEIGHT + MARGIN / 2;
        let background = Rectangle::new()
            .set("width", width)
            .set("height", height)
            .set("rx", 8)
            .set("fill", "#0d1117")
            .set("stroke", "#3d444d");
        let mut document = Document::new()
            .set("viewBox", (0, 0, width, height))
            .set("width", width)
            .set("height", height)
            .set(
                "font-family",
                "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace",
            )
            .set("font-size", 12.6)
            .add(background);
        for (at, color) in ["#f85149", "#d29922", "#3fb950"].into_iter().enumerate() {
            let button = Circle::new().set("cx", MARGIN + 4 + at * 18).set("cy", 16);
            document = document.add(button.set("r", 5).set("fill", color));
        }
        let title = Text::new(&self.title)
            .set("x", width / 2)
            .set("y", 20)
            .set("text-anchor", "middle");
        document = document.add(title.set("fill", "#9198a1"));
        for (at, line) in lines.iter().enumerate() {
            let mut y = TITLE_HEIGHT + MARGIN + at * LINE_HEIGHT;
            y += LINE_HEIGHT / 4;
            for (column, text, color) in colored(line) {
                let x = MARGIN as f32 + column as f32 * CHARACTER_WIDTH;
                let text = Text::new(text)
                    .set("x", x)
                    .set("y", y)
                    .set("xml:space", "preserve")
                    .set("fill", color);
                document = document.add(text);
            }
        }
        format!("{document}\n")
    }
}

/// Lines of at most [`COLUMNS`] characters, broken at blanks.
fn wrap(line: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = line.to_owned();
    while rest.chars().count() > COLUMNS {
        let limit = rest
            .char_indices()
            .nth(COLUMNS)
            .map_or(rest.len(), |(at, _)| at);
        let indent = rest.len() - rest.trim_start().len();
        let blank = rest[..limit].rfind(' ').filter(|at| *at > indent);
        let end = blank.unwrap_or(limit);
        let continued = format!("{}{}", " ".repeat(indent + 4), rest[end..].trim_start());
        rest.truncate(end);
        lines.push(std::mem::replace(&mut rest, continued));
    }
    lines.push(rest);
    lines
}

/// Parts of a line, each with its column and colour: those of the terminal.
fn colored(line: &str) -> Vec<(usize, &str, &str)> {
    const PLAIN: &str = "#e6edf3";
    const RED: &str = "#ff7b72";
    const YELLOW: &str = "#d29922";
    const GREEN: &str = "#3fb950";
    const BLUE: &str = "#79c0ff";
    let indent = line.len() - line.trim_start().len();
    let text = &line[indent..];
    let split = |at: usize, color| {
        let end = indent + at;
        vec![(0, &line[..end], color), (end, &line[end..], PLAIN)]
    };
    // Up to the colon of `error[code]:`, the arrow of a place, or cargo's status word.
    if let Some(level) = ["error", "warning"]
        .into_iter()
        .find(|level| text.starts_with(level))
    {
        let end = text.find(':').unwrap_or(level.len());
        return split(end, if level == "error" { RED } else { YELLOW });
    }
    if text.starts_with("$ ") {
        return vec![(0, line, GREEN)];
    }
    if text.starts_with("-->") {
        return split(3, BLUE);
    }
    if text.starts_with("= help") {
        return split(6, BLUE);
    }
    let first = text.split(' ').next().unwrap_or_default();
    if indent > 0 && indent + first.len() == 12 {
        return split(first.len(), GREEN);
    }
    vec![(0, line, PLAIN)]
}
