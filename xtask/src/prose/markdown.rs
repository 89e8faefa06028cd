//! Paragraphs of pages.

use super::text::{Kind, Text};

/// Paragraphs, headings, list items and rows of tables, without blocks of code.
pub fn texts(source: &str) -> Vec<Text> {
    let mut texts: Vec<Text> = Vec::new();
    let mut fence: Option<String> = None;
    let mut is_open = false;
    for (index, line) in source.lines().enumerate() {
        let text = line.trim();
        let marker: String = text
            .chars()
            .take_while(|c| matches!(c, '`' | '~'))
            .collect();
        if let Some(open) = &fence {
            if marker.starts_with(open.as_str()) {
                fence = None;
            }
            continue;
        }
        if marker.len() >= 3 {
            fence = Some(marker);
            is_open = false;
            continue;
        }
        if text.is_empty() {
            is_open = false;
            continue;
        }
        match texts.last_mut() {
            Some(last) if is_open => {
                last.text += "\n";
                last.text += text;
            }
            _ => texts.push(Text {
                kind: Kind::Prose,
                line: index + 1,
                text: text.to_owned(),
            }),
        }
        is_open = true;
    }
    texts
}
