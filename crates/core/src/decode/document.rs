//! A TOML text as a tree with spans.
//!
//! `toml_parser` reads the grammar: TOML 1.1 (toml.io/en/v1.1.0), a superset of TOML 1.0. `Cargo.toml`
//! and `toml_edit` are read by the same crate, so that one text means the same everywhere. This module
//! builds the tree of `tree.rs`, which enforces the rules about tables that are defined twice.

mod tree;

use std::borrow::Cow;
use std::ops::Range;
use std::slice::Iter;

use toml_parser::decoder::ScalarKind;
use toml_parser::parser::{
    Event, EventKind, RecursionGuard, ValidateWhitespace, parse_document as parse_events,
};
use toml_parser::{Expected, ParseError, Source, Span};

pub(crate) use tree::{Data, Entries, Key, Node};
use tree::{MAX_DEPTH, ParseResult, SyntaxError, add_header, add_value, syntax_error};

/// Uses the messages of the `toml` crate.
impl From<ParseError> for SyntaxError {
    fn from(error: ParseError) -> Self {
        let mut message = error.description().to_owned();
        for (index, expected) in error.expected().unwrap_or_default().iter().enumerate() {
            message += if index == 0 { ", expected " } else { ", " };
            match expected {
                Expected::Literal("\n") => message += "newline",
                Expected::Literal(text) => message += &format!("`{text}`"),
                Expected::Description(text) => message += text,
                _ => message += "something else",
            }
        }
        let span = error.unexpected().or(error.context());
        Self {
            message,
            span: span.map_or(0..0, range),
        }
    }
}

fn range(span: Span) -> Range<usize> {
    span.start()..span.end()
}

/// Reads a whole text, up to the first error.
pub(crate) fn parse(text: &str) -> ParseResult<Entries<'_>> {
    let source = Source::new(text);
    let tokens = source.lex().into_vec();
    let mut events: Vec<Event> = Vec::new();
    let mut error = None;
    let mut receiver = ValidateWhitespace::new(&mut events, source);
    let mut receiver = RecursionGuard::new(&mut receiver, MAX_DEPTH as u32);
    parse_events(&tokens, &mut receiver, &mut error);
    if let Some(error) = error {
        return Err(error.into());
    }
    let mut builder = Builder {
        source,
        events: events.iter(),
    };
    let mut root = Entries::default();
    let mut table = &mut root;
    while let Some(event) = builder.next() {
        match event.kind() {
            EventKind::StdTableOpen => table = builder.header(event, false, &mut root)?,
            EventKind::ArrayTableOpen => table = builder.header(event, true, &mut root)?,
            _ => builder.key_value(event, table, 0)?,
        }
    }
    Ok(root)
}

/// Builds a tree from the events of a text without syntax errors, so that their order is known.
struct Builder<'t, 'e> {
    source: Source<'t>,
    events: Iter<'e, Event>,
}

impl<'t, 'e> Builder<'t, 'e> {
    /// Next event that is not white space or a comment.
    fn next(&mut self) -> Option<&'e Event> {
        self.events.find(|event| {
            !matches!(
                event.kind(),
                EventKind::Whitespace | EventKind::Newline | EventKind::Comment
            )
        })
    }

    /// Next event inside of a construct.
    fn expect(&mut self) -> ParseResult<&'e Event> {
        let end = self.source.input().len();
        self.next()
            .map_or_else(|| syntax_error("unexpected end of the file", end..end), Ok)
    }

    /// "Table" and "Array of Tables": a header. Returns its table, a new one or one that other headers
    /// have mentioned.
    fn header<'a>(
        &mut self,
        open: &Event,
        array: bool,
        root: &'a mut Entries<'t>,
    ) -> ParseResult<&'a mut Entries<'t>> {
        let event = self.expect()?;
        let (path, key, close) = self.key(event)?;
        let span = open.span().start()..close.span().end();

        add_header(root, path, key, span, array)
    }

    /// "Keys": the parts of a key, the last apart, and the event after them.
    fn key(&mut self, first: &'e Event) -> ParseResult<(Vec<Key<'t>>, Key<'t>, &'e Event)> {
        let mut path = Vec::new();
        let mut part = first;
        loop {
            let span = range(part.span());
            let mut text = Cow::Borrowed("");
            let mut error = None;
            if let Some(raw) = self.source.get(part) {
                raw.decode_key(&mut text, &mut error);
            }
            if let Some(error) = error {
                return Err(error.into());
            }
            if path.len() == MAX_DEPTH {
                return syntax_error("key with too many parts, expected 80 at most", span);
            }
            let key = Key { text, span };
            let next = self.expect()?;
            if next.kind() != EventKind::KeySep {
                return Ok((path, key, next));
            }
            path.push(key);
            part = self.expect()?;
        }
    }

    /// "Key/Value Pair". `depth` is the number of values that contain it.
    fn key_value(
        &mut self,
        first: &'e Event,
        table: &mut Entries<'t>,
        depth: usize,
    ) -> ParseResult<()> {
        let (path, key, _) = self.key(first)?;
        let event = self.expect()?;
        let value = self.value(event, depth + path.len())?;
        add_value(table, path, key, value)
    }

    fn value(&mut self, event: &'e Event, depth: usize) -> ParseResult<Node<'t>> {
        let Range { start, mut end } = range(event.span());
        if event.kind() == EventKind::Scalar {
            let data = self.scalar(event)?;
            return Ok(Node {
                span: start..end,
                data,
            });
        }
        if depth >= MAX_DEPTH {
            return syntax_error(
                "values nested too deeply, expected 80 levels at most",
                start..end,
            );
        }
        let inline = event.kind() == EventKind::InlineTableOpen;
        let mut list = Vec::new();
        let mut table = Entries::inline();
        loop {
            let event = self.expect()?;
            match event.kind() {
                EventKind::ArrayClose | EventKind::InlineTableClose => {
                    end = event.span().end();
                    break;
                }
                EventKind::ValueSep => {}
                _ if inline => self.key_value(event, &mut table, depth + 1)?,
                _ => list.push(self.value(event, depth + 1)?),
            }
        }
        let data = if inline {
            Data::Table(table)
        } else {
            Data::List(list)
        };
        Ok(Node {
            span: start..end,
            data,
        })
    }

    fn scalar(&self, event: &Event) -> ParseResult<Data<'t>> {
        let mut text = Cow::Borrowed("");
        let mut error = None;
        let kind = match self.source.get(event) {
            Some(raw) => raw.decode_scalar(&mut text, &mut error),
            None => ScalarKind::String,
        };
        if let Some(error) = error {
            return Err(error.into());
        }
        Ok(match kind {
            ScalarKind::String => Data::String(text),
            ScalarKind::Boolean(boolean) => Data::Boolean(boolean),
            ScalarKind::DateTime => Data::Date,
            ScalarKind::Float => Data::Float(text),
            ScalarKind::Integer(radix) => {
                let radix = radix.value();
                // The crate leaves checking the digits to its users: `1_a`, `0x`.
                let digits = text.trim_start_matches(['+', '-']);
                if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
                    return syntax_error("invalid number, expected digits", range(event.span()));
                }
                Data::Integer {
                    digits: text,
                    radix,
                }
            }
        })
    }
}

#[cfg(test)]
mod tests;
