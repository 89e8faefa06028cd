//! A TOML text as a tree with places. `toml_parser` knows the grammar; what tables, dotted keys
//! and headers mean together (TOML 1.1, "Table") is here.

use std::borrow::Cow;
use std::ops::Range;

use toml_parser::decoder::ScalarKind;
use toml_parser::parser::{
    Event, EventKind, RecursionGuard, ValidateWhitespace, parse_document as grammar,
};
use toml_parser::{ErrorSink as _, Expected, ParseError, Source, Span};

/// How deep values may be nested, and how many parts a dotted key may have.
const DEEPEST: usize = 80;

/// A value and its place.
#[derive(Debug)]
pub(crate) struct Node<'t> {
    pub span: Range<usize>,
    pub data: Data<'t>,
}

/// What a value is. Numbers are kept as their digits, without underscores and prefixes.
#[derive(Debug)]
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
    /// What `[[headers]]` make, which later headers may add to.
    Tables(Vec<Node<'t>>),
    Table(Entries<'t>),
}

/// A key and its place.
#[derive(Debug, Clone)]
pub(crate) struct Key<'t> {
    pub text: Cow<'t, str>,
    pub span: Range<usize>,
}

/// What is in a table, sorted by key, and what may still be added to it.
#[derive(Debug, Default)]
pub(crate) struct Entries<'t> {
    entries: Vec<(Key<'t>, Node<'t>)>,
    /// There is no header or value of its own, only names that lead through it.
    implicit: bool,
    /// A dotted key made it: no header may add to it.
    dotted: bool,
    /// Between braces.
    inline: bool,
}

/// Why a text is not TOML.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SyntaxError {
    pub message: String,
    pub span: Option<Range<usize>>,
}

/// Reads a whole text, or tells of the first thing that is wrong.
pub(crate) fn parse(text: &str) -> Result<Entries<'_>, SyntaxError> {
    let source = Source::new(text);
    let tokens = source.lex().into_vec();
    let mut events = Vec::with_capacity(tokens.len());
    let mut error = None;
    grammar(
        &tokens,
        &mut RecursionGuard::new(
            &mut ValidateWhitespace::new(&mut events, source),
            DEEPEST as u32,
        ),
        &mut error,
    );
    if let Some(error) = error {
        return Err(syntax_error(&error));
    }
    let mut builder = Builder {
        source,
        events: &events,
        error: None,
    };
    let root = builder.document();
    match builder.error {
        Some(error) => Err(syntax_error(&error)),
        None => Ok(root),
    }
}

impl<'t> Entries<'t> {
    fn find(&self, key: &str) -> Result<usize, usize> {
        self.entries
            .binary_search_by(|(other, _)| other.text.as_ref().cmp(key))
    }

    pub fn get(&self, key: &str) -> Option<&(Key<'t>, Node<'t>)> {
        self.find(key).ok().map(|index| &self.entries[index])
    }

    pub fn iter(&self) -> std::slice::Iter<'_, (Key<'t>, Node<'t>)> {
        self.entries.iter()
    }
}

/// `[a.b.c]` or `[[a.b.c]]`.
struct Header<'t> {
    path: Vec<Key<'t>>,
    key: Key<'t>,
    span: Range<usize>,
    array: bool,
}

struct Builder<'e, 't> {
    source: Source<'t>,
    /// What comes next; the grammar has been checked.
    events: &'e [Event],
    /// The first error.
    error: Option<ParseError>,
}

impl<'e, 't> Builder<'e, 't> {
    /// The next event that is not white space or a comment.
    fn next(&mut self) -> Option<&'e Event> {
        while let [event, rest @ ..] = self.events {
            self.events = rest;
            match event.kind() {
                EventKind::Whitespace | EventKind::Comment | EventKind::Newline => {}
                _ => return Some(event),
            }
        }
        None
    }

    fn fail(&mut self, what: impl Into<Cow<'static, str>>, place: &Range<usize>) {
        let span = Span::new_unchecked(place.start, place.end);
        self.error
            .report_error(ParseError::new(what).with_unexpected(span));
    }

    fn document(&mut self) -> Entries<'t> {
        let mut root = Entries::default();
        let mut header = None;
        let mut table = Entries::default();
        while let Some(event) = self.next() {
            match event.kind() {
                EventKind::StdTableOpen | EventKind::ArrayTableOpen => {
                    self.attach(&mut root, header, table);
                    header = self.header(event);
                    table = match &header {
                        Some(header) => self.start(&mut root, header),
                        None => Entries::default(),
                    };
                }
                EventKind::SimpleKey => self.key_value(event, &mut table),
                _ => {}
            }
        }
        self.attach(&mut root, header, table);
        root
    }

    /// The parts of a key; the last is apart. `None` if there are too many.
    fn key(&mut self, first: &Event) -> Option<(Vec<Key<'t>>, Key<'t>)> {
        let mut path = Vec::new();
        let mut key = self.simple_key(first);
        loop {
            let here = self.events;
            if self.next().map(Event::kind) != Some(EventKind::KeySep) {
                self.events = here;
                break;
            }
            let Some(event) = self.next() else { break };
            path.push(key);
            key = self.simple_key(event);
        }
        if path.len() >= DEEPEST {
            self.error.report_error(ParseError::new("recursion limit"));
            return None;
        }
        Some((path, key))
    }

    fn simple_key(&mut self, event: &Event) -> Key<'t> {
        let mut text = Cow::Borrowed("");
        if let Some(raw) = self.source.get(event) {
            raw.decode_key(&mut text, &mut self.error);
        }
        Key {
            text,
            span: range(event),
        }
    }

    /// `key = value`.
    fn key_value(&mut self, first: &Event, table: &mut Entries<'t>) {
        let Some((path, key)) = self.key(first) else {
            self.events = &[];
            return;
        };
        self.next(); // the `=`
        let Some(event) = self.next() else { return };
        let value = self.value(event);
        let dotted = !path.is_empty();
        let Some(table) = self.descend(table, &path, dotted) else {
            return;
        };
        match table.find(&key.text) {
            // "using dotted keys to redefine tables already defined in [table] form is not allowed"
            _ if dotted && !table.implicit => self.fail("duplicate key", &key.span),
            Ok(_) => self.fail("duplicate key", &key.span),
            Err(index) => table.entries.insert(index, (key, value)),
        }
    }

    fn value(&mut self, event: &Event) -> Node<'t> {
        let mut span = range(event);
        let data = match event.kind() {
            EventKind::ArrayOpen => {
                let mut list = Vec::new();
                while let Some(event) = self.next() {
                    span.end = range(event).end;
                    match event.kind() {
                        EventKind::ArrayClose => break,
                        EventKind::ValueSep => {}
                        _ => list.push(self.value(event)),
                    }
                }
                Data::List(list)
            }
            EventKind::InlineTableOpen => {
                let mut table = Entries {
                    inline: true,
                    ..Entries::default()
                };
                while let Some(event) = self.next() {
                    span.end = range(event).end;
                    match event.kind() {
                        EventKind::InlineTableClose => break,
                        EventKind::SimpleKey => self.key_value(event, &mut table),
                        _ => {}
                    }
                }
                Data::Table(table)
            }
            _ => self.scalar(event),
        };
        Node { span, data }
    }

    fn scalar(&mut self, event: &Event) -> Data<'t> {
        let Some(raw) = self.source.get(event) else {
            return Data::Boolean(false);
        };
        let mut text = Cow::Borrowed("");
        match raw.decode_scalar(&mut text, &mut self.error) {
            ScalarKind::String => Data::String(text),
            ScalarKind::Boolean(truth) => Data::Boolean(truth),
            ScalarKind::DateTime => Data::Date,
            ScalarKind::Float => Data::Float(text),
            ScalarKind::Integer(radix) => Data::Integer {
                digits: text,
                radix: radix.value(),
            },
        }
    }

    fn header(&mut self, open: &Event) -> Option<Header<'t>> {
        let first = self.next()?;
        let (path, key) = self.key(first)?;
        let close = self.next()?;
        Some(Header {
            path,
            key,
            span: range(open).start..range(close).end,
            array: open.kind() == EventKind::ArrayTableOpen,
        })
    }

    /// The table that a header opens: a new one, or one that other headers led through.
    fn start(&mut self, root: &mut Entries<'t>, header: &Header<'t>) -> Entries<'t> {
        let new = Entries::default();
        if header.array {
            return new;
        }
        let Some(parent) = self.descend(root, &header.path, false) else {
            return new;
        };
        let Ok(index) = parent.find(&header.key.text) else {
            return new;
        };
        match parent.entries.remove(index).1.data {
            Data::Table(table) if table.implicit && !table.dotted => Entries {
                implicit: false,
                ..table
            },
            _ => {
                self.fail("duplicate key", &header.key.span);
                new
            }
        }
    }

    /// Puts a table that has been read to where its header says.
    fn attach(&mut self, root: &mut Entries<'t>, header: Option<Header<'t>>, table: Entries<'t>) {
        let Some(header) = header else {
            *root = table;
            return;
        };
        let Some(parent) = self.descend(root, &header.path, false) else {
            return;
        };
        let node = Node {
            span: header.span.clone(),
            data: Data::Table(table),
        };
        match parent.find(&header.key.text) {
            Ok(index) => match &mut parent.entries[index].1.data {
                Data::Tables(tables) if header.array => tables.push(node),
                _ => self.fail("duplicate key", &header.key.span),
            },
            Err(index) => {
                let node = match header.array {
                    true => Node {
                        span: header.span,
                        data: Data::Tables(vec![node]),
                    },
                    false => node,
                };
                parent.entries.insert(index, (header.key, node));
            }
        }
    }

    /// The table that `path` leads to; what is not there is made. `dotted`: the path is of a
    /// dotted key, else of a header.
    fn descend<'a>(
        &mut self,
        mut table: &'a mut Entries<'t>,
        path: &[Key<'t>],
        dotted: bool,
    ) -> Option<&'a mut Entries<'t>> {
        let inline = table.inline;
        for key in path {
            let index = table.find(&key.text).unwrap_or_else(|index| {
                let made = Entries {
                    entries: Vec::new(),
                    implicit: true,
                    dotted,
                    inline,
                };
                let node = Node {
                    span: key.span.clone(),
                    data: Data::Table(made),
                };
                table.entries.insert(index, (key.clone(), node));
                index
            });
            let wrong = match &mut table.entries[index].1.data {
                Data::Tables(tables) => match &mut tables.last_mut()?.data {
                    Data::Table(last) => {
                        table = last;
                        continue;
                    }
                    _ => return None,
                },
                Data::Table(inner) if inner.inline && !inline => "inline table",
                Data::Table(inner) if dotted && !inner.implicit => {
                    self.fail("duplicate key", &key.span);
                    return None;
                }
                Data::Table(inner) => {
                    inner.dotted |= dotted;
                    table = inner;
                    continue;
                }
                Data::String(_) => "string",
                Data::Integer { .. } => "integer",
                Data::Float(_) => "float",
                Data::Boolean(_) => "boolean",
                Data::Date => "datetime",
                Data::List(_) => "array",
            };
            let message = format!("cannot extend value of type {wrong} with a dotted key");
            self.fail(message, &key.span);
            return None;
        }
        Some(table)
    }
}

fn range(event: &Event) -> Range<usize> {
    event.span().start()..event.span().end()
}

fn syntax_error(error: &ParseError) -> SyntaxError {
    let mut message = error.description().to_owned();
    for (index, expected) in error.expected().unwrap_or_default().iter().enumerate() {
        message.push_str(if index == 0 { ", expected " } else { ", " });
        match expected {
            Expected::Literal("\n") => message.push_str("newline"),
            Expected::Literal("`") => message.push_str("'`'"),
            Expected::Literal(text) => message.push_str(&format!("`{text}`")),
            Expected::Description(text) => message.push_str(text),
            _ => message.push_str("etc"),
        }
    }
    if error.expected().is_some_and(<[_]>::is_empty) {
        message.push_str(", expected nothing");
    }
    SyntaxError {
        message,
        span: error.unexpected().map(|span| span.start()..span.end()),
    }
}

#[cfg(test)]
mod tests;
