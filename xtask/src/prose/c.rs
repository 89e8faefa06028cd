//! Comments, strings and identifiers of C, C++, CUDA and preprocessed assembly.

use super::text::{Comments, Kind, Text, line_of};

/// Reads a source. Lines that are no C, such as assembly, only need to have its comments and strings.
pub fn texts(source: &str) -> Vec<Text> {
    let mut comments = Comments::new(source);
    let mut others = Vec::new();
    let bytes = source.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &source[at..];
        let length = if rest.starts_with("/*") {
            let length = rest.find("*/").map_or(rest.len(), |end| end + 2);
            comments.block(at, rest[2..length].trim_end_matches("*/"));
            length
        } else if rest.starts_with("//") {
            let length = rest.find('\n').unwrap_or(rest.len());
            let marker = ["//!", "///"].into_iter().find(|doc| rest.starts_with(doc));
            comments.line(at, at + length, marker.unwrap_or("//"));
            length
        } else if bytes[at] == b'"' {
            let length = string_length(rest);
            let text = rest[1..length].trim_end_matches('"').to_owned();
            others.push((Kind::Prose, at, text));
            length
        } else if bytes[at] == b'\'' {
            // A character, or an apostrophe in a line of a preprocessor message.
            match rest[1..].find('\'') {
                Some(end) if end <= 4 => end + 2,
                _ => 1,
            }
        } else if bytes[at].is_ascii_alphabetic() || bytes[at] == b'_' {
            let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            others.push((Kind::Name, at, rest[..length].to_owned()));
            length
        } else {
            rest.chars().next().map_or(1, char::len_utf8)
        };
        at += length;
    }
    let others = others.into_iter().map(|(kind, start, text)| Text {
        kind,
        line: line_of(source, start),
        text,
    });
    comments.into_texts().into_iter().chain(others).collect()
}

/// Length of the string literal at the start of `text`, with its quotes; at most to the line's end.
fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '\n' if !escaped => return at,
            '"' if !escaped => return at + 1,
            _ => escaped = c == '\\' && !escaped,
        }
    }
    text.len()
}
