//! A sequence diagram.

use serde::Deserialize;
use svg::Document;
use svg::node::element::path::Data;
use svg::node::element::{Line, Path, Rectangle, Style, Text};

use super::colors::STYLE;

/// Participants, and messages between them from top to bottom.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sequence {
    pub file: String,
    participants: Vec<String>,
    /// Sender, receiver, text.
    messages: Vec<(usize, usize, String)>,
}

const WIDTH: usize = 800;
const TOP: usize = 50;
const STEP: usize = 46;

impl Sequence {
    pub fn render(&self) -> String {
        let height = TOP + (self.messages.len() + 1) * STEP;
        let column = WIDTH / self.participants.len();
        let x = |participant: usize| participant * column + column / 2;
        let mut document = Document::new()
            .set("viewBox", (0, 0, WIDTH, height))
            .set("width", WIDTH)
            .set("height", height)
            .set("font-size", 14)
            .add(Style::new(STYLE));
        for (at, name) in self.participants.iter().enumerate() {
            let frame = Rectangle::new()
                .set("class", "line")
                .set("x", x(at) - 80)
                .set("y", 8)
                .set("width", 160)
                .set("height", 32)
                .set("rx", 6);
            let title = Text::new(name).set("x", x(at)).set("y", 29);
            let life = Line::new()
                .set("class", "soft")
                .set("stroke-dasharray", "4 4")
                .set("x1", x(at))
                .set("x2", x(at))
                .set("y1", 40)
                .set("y2", height - 10);
            document = document
                .add(frame)
                .add(title.set("text-anchor", "middle"))
                .add(life);
        }
        for (at, (from, to, text)) in self.messages.iter().enumerate() {
            let y = TOP + (at + 1) * STEP - 10;
            let (start, end) = (x(*from), x(*to));
            let direction: i64 = if end < start { -1 } else { 1 };
            let (arrow, label_x) = if start == end {
                let data = Data::new().move_to((start, y - 8));
                let data = data.line_by((36, 0)).line_by((0, 14)).line_by((-34, 0));
                (
                    data.line_by((7, -4)).move_by((-7, 4)).line_by((7, 4)),
                    start - 10,
                )
            } else {
                let data = Data::new().move_to((start, y)).line_to((end, y));
                let data = data.line_by((-8 * direction, -4)).move_to((end, y));
                (
                    data.line_by((-8 * direction, 4)),
                    usize::midpoint(start, end),
                )
            };
            let anchor = if start == end { "end" } else { "middle" };
            let label = Text::new(text)
                .set("x", label_x)
                .set("y", y - if start == end { 0 } else { 8 })
                .set("text-anchor", anchor)
                .set("font-size", 12);
            document = document
                .add(Path::new().set("class", "line").set("d", arrow))
                .add(label);
        }
        format!("{document}\n")
    }
}
