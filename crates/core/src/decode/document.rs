//! A TOML text as a tree with spans.
//!
//! `toml_parser` reads the grammar: TOML 1.1 (toml.io/en/v1.1.0), a superset of TOML 1.0. `Cargo.toml`
//! and `toml_edit` are read by the same crate, so that one text means the same everywhere. This module
//! builds the tree, and enforces the rules about tables that are defined twice.

use std::borrow::Cow;
use std::ops::Range;
use std::slice::Iter;

use toml_parser::decoder::ScalarKind;
use toml_parser::parser::{
    Event, EventKind, RecursionGuard, ValidateWhitespace, parse_document as parse_events,
};
use toml_parser::{Expected, ParseError, Source, Span};

use crate::by_name::search;

/// Maximum depth of nested values, each part of a dotted key counted, and of the parts of a header:
/// neither reading nor dropping a tree may exhaust the stack, whatever the text.
const MAX_DEPTH: usize = 80;

/// A value and its span.
#[cfg_attr(test, derive(Debug))]
pub(crate) struct Node<'t> {
    pub span: Range<usize>,
    pub data: Data<'t>,
}

/// A value. Numbers are kept as their digits, without underscores and prefixes.
#[cfg_attr(test, derive(Debug))]
pub(crate) enum Data<'t> {
    String(Cow<'t, str>),
    Integer {
        digits: Cow<'t, str>,
        radix: u32,
    },
    Float(Cow<'t, str>),
    Boolean(bool),
    Date,
    List(Vec<Node<'t>>),
    /// An array of tables, which later `[[headers]]` may extend.
    Tables(Vec<Node<'t>>),
    Table(Entries<'t>),
}

/// A key and its span.
#[derive(Clone)]
#[cfg_attr(test, derive(Debug))]
pub(crate) struct Key<'t> {
    pub text: Cow<'t, str>,
    pub span: Range<usize>,
}

/// Keys and values of a table, and the ways in which the text may extend it.
#[derive(Default)]
#[cfg_attr(test, derive(Debug))]
pub(crate) struct Entries<'t> {
    /// In the order of the text.
    entries: Vec<(Key<'t>, Node<'t>)>,
    /// Positions of the entries, sorted by key. Entries themselves are not moved: in a table of
    /// 20,000 keys that would be most of the work.
    sorted: Vec<usize>,
    /// The table has no header or value of its own, only longer names that contain it.
    implicit: bool,
    /// Defined by a dotted key: no header may extend it.
    dotted: bool,
    /// Written between braces.
    inline: bool,
}

/// The first violation of TOML in a text.
#[cfg_attr(test, derive(Debug))]
pub(crate) struct SyntaxError {
    pub message: String,
    pub span: Range<usize>,
}

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

fn syntax_error<T>(message: &str, span: Range<usize>) -> ParseResult<T> {
    Err(SyntaxError {
        message: message.to_owned(),
        span,
    })
}

type ParseResult<T> = Result<T, SyntaxError>;

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

impl<'t> Entries<'t> {
    /// Position of the key's entry, or its insertion point in `sorted`.
    fn find(&self, key: &str) -> Result<usize, usize> {
        search(
            self.sorted.len(),
            &|index| self.entries[self.sorted[index]].0.text.as_ref(),
            key,
        )
        .map(|index| self.sorted[index])
    }

    /// Adds an entry whose insertion point `find` has returned. Returns its position.
    fn insert(&mut self, index: usize, key: Key<'t>, value: Node<'t>) -> usize {
        let position = self.entries.len();
        self.sorted.insert(index, position);
        self.entries.push((key, value));
        position
    }

    pub fn get(&self, key: &str) -> Option<&(Key<'t>, Node<'t>)> {
        self.find(key).ok().map(|index| &self.entries[index])
    }

    /// The entries, sorted by key.
    pub fn iter(&self) -> impl Iterator<Item = &(Key<'t>, Node<'t>)> {
        self.sorted.iter().map(|&index| &self.entries[index])
    }
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

        let parent = descend(root, path, false)?;
        let index = match parent.find(&key.text) {
            Ok(index) => index,
            Err(index) => {
                let data = if array {
                    Data::Tables(Vec::new())
                } else {
                    Data::Table(Entries {
                        implicit: true,
                        ..Entries::default()
                    })
                };
                let span = span.clone();
                parent.insert(index, key.clone(), Node { span, data })
            }
        };
        let (entry_key, node) = &mut parent.entries[index];
        match &mut node.data {
            Data::Tables(tables) if array => {
                let data = Data::Table(Entries::default());
                tables.push(Node { span, data });
                if let Some(Data::Table(table)) = tables.last_mut().map(|node| &mut node.data) {
                    return Ok(table);
                }
            }
            Data::Table(table) if !array && table.implicit && !table.dotted => {
                *entry_key = key;
                node.span = span;
                table.implicit = false;
                return Ok(table);
            }
            _ => {}
        }
        syntax_error("duplicate key", key.span)
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
        let dotted = !path.is_empty();
        let table = descend(table, path, dotted)?;
        match table.find(&key.text) {
            // "Table": dotted keys cannot extend a table that has a header or braces of its own.
            Err(index) if table.implicit || !dotted => {
                table.insert(index, key, value);
                Ok(())
            }
            _ => syntax_error("duplicate key", key.span),
        }
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
        let mut table = Entries {
            inline,
            ..Entries::default()
        };
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

/// Table at `path`, creating missing tables on the way. `dotted`: the path is that of a dotted key,
/// else of a header.
fn descend<'a, 't>(
    mut table: &'a mut Entries<'t>,
    path: Vec<Key<'t>>,
    dotted: bool,
) -> ParseResult<&'a mut Entries<'t>> {
    let inline = table.inline;
    for key in path {
        let span = key.span.clone();
        let index = match table.find(&key.text) {
            Ok(index) => index,
            Err(index) => {
                let data = Data::Table(Entries {
                    implicit: true,
                    dotted,
                    inline,
                    ..Entries::default()
                });
                let node = Node {
                    span: span.clone(),
                    data,
                };
                table.insert(index, key, node)
            }
        };
        table = match &mut table.entries[index].1.data {
            // "any reference to an array of tables points to the most recently defined element"
            Data::Tables(tables) => match tables.last_mut().map(|node| &mut node.data) {
                Some(Data::Table(latest)) => latest,
                _ => return syntax_error("duplicate key", span),
            },
            Data::Table(inner) if inner.inline && !inline => {
                return syntax_error(
                    "cannot add to an inline table, expected it in its braces",
                    span,
                );
            }
            Data::Table(inner) if dotted && !inner.implicit => {
                return syntax_error("duplicate key", span);
            }
            Data::Table(inner) => {
                inner.dotted |= dotted;
                inner
            }
            Data::List(_) => {
                return syntax_error("cannot add keys to a list, expected a table", span);
            }
            _ => return syntax_error("cannot add keys to a value, expected a table", span),
        };
    }
    Ok(table)
}

#[cfg(test)]
mod tests;
