//! Comments that begin with `#`: TOML, shell, Python, CMake, YAML.

use super::text::{Comments, Kind, Text};

/// Comments, and names of test cases, which are the quoted headers of TOML tables.
pub fn toml_texts(source: &str) -> Vec<Text> {
    let mut found = texts(source);
    for (index, line) in source.lines().enumerate() {
        let name = line
            .strip_prefix("[\"")
            .and_then(|rest| rest.split('"').next());
        found.extend(name.map(|name| Text {
            kind: Kind::Prose,
            line: index + 1,
            text: name.to_owned(),
        }));
    }
    found
}

/// Comments, and every other line as prose.
pub fn line_texts(source: &str) -> Vec<Text> {
    let mut found = texts(source);
    for (index, line) in source.lines().enumerate() {
        if !line.trim_start().starts_with('#') {
            found.push(Text {
                kind: Kind::Prose,
                line: index + 1,
                text: line.to_owned(),
            });
        }
    }
    found
}

/// Comments that are alone on their lines; elsewhere `#` may be part of a string.
pub fn texts(source: &str) -> Vec<Text> {
    let mut comments = Comments::new(source);
    let mut start = 0;
    for line in source.split_inclusive('\n') {
        let comment = line.trim_start();
        let is_directive = comment.starts_with("#!") || comment.starts_with("#:");
        if comment.starts_with('#') && !is_directive {
            let indent = line.len() - comment.len();
            comments.line(start + indent, start + line.trim_end().len(), "#");
        }
        start += line.len();
    }
    comments.into_texts()
}
