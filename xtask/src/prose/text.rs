//! Texts of a source file, and findings in them.

use std::fmt;

/// Kind of a [`Text`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Comment of any language, or help text of the command line: begins with its subject.
    Comment,
    /// Paragraph of a page, or a string literal of several words.
    Prose,
    /// Name of anything but a type or a function.
    Name,
    /// Name of a type.
    TypeName,
    /// Name of a function that implements no trait.
    FunctionName,
}

/// A text, and the line on which it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    pub kind: Kind,
    /// From 1.
    pub line: usize,
    pub text: String,
}

/// A violation of a rule.
#[derive(Debug, PartialEq, Eq)]
pub struct Finding {
    pub file: String,
    pub line: usize,
    pub rule: String,
    pub text: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file,
            line,
            rule,
            text,
        } = self;
        write!(f, "{file}:{line}: {rule}: {text}")
    }
}

/// Line of a byte offset, from 1.
pub fn line_of(source: &str, offset: usize) -> usize {
    source[..offset].matches('\n').count() + 1
}

/// Comments, each with the byte range of its text in the source, joined where only white space of
/// one line break separates two that stand alone on their lines.
pub struct Comments<'s> {
    source: &'s str,
    texts: Vec<Text>,
    /// Marker and end of the last comment, if the next one may continue it.
    last: Option<(&'s str, usize)>,
}

impl<'s> Comments<'s> {
    pub fn new(source: &'s str) -> Self {
        Self {
            source,
            texts: Vec::new(),
            last: None,
        }
    }

    /// Adds the line comment `start..end`, which begins with `marker`.
    pub fn line(&mut self, start: usize, end: usize, marker: &'s str) {
        let text = self.source[start..end].trim_start_matches(marker).trim();
        let before = &self.source[..start];
        let indent = before.rsplit('\n').next().unwrap_or_default();
        let alone = indent.trim().is_empty();
        let continues = self.last.is_some_and(|(last_marker, last_end)| {
            let between = &self.source[last_end..start];
            last_marker == marker && between.trim().is_empty() && between.matches('\n').count() < 2
        });
        match self.texts.last_mut() {
            Some(last) if alone && continues => {
                last.text += "\n";
                last.text += text;
            }
            _ => self.add(start, text),
        }
        self.last = alone.then_some((marker, end));
    }

    /// Adds a comment with a closing marker.
    pub fn block(&mut self, start: usize, text: &str) {
        let lines = text
            .lines()
            .map(|line| line.trim().trim_start_matches('*').trim());
        let text = lines.collect::<Vec<_>>().join("\n");
        self.add(start, text.trim());
        self.last = None;
    }

    fn add(&mut self, start: usize, text: &str) {
        self.texts.push(Text {
            kind: Kind::Comment,
            line: line_of(self.source, start),
            text: text.to_owned(),
        });
    }

    pub fn into_texts(self) -> Vec<Text> {
        self.texts
    }
}
