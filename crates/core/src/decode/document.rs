//! A TOML text as a tree with places, read in one pass. Quoted headings are those of the
//! specification, TOML 1.1 (toml.io/en/v1.1.0), of which every TOML 1.0 text is one too.
//!
//! No library does this: whoever builds with gpustub compiles what reads its manifest.

mod scalar;

use std::borrow::Cow;
use std::ops::Range;

/// How deep values may be nested, each part of a dotted key counted, and how many parts a header
/// may have: neither reading nor dropping a tree may run out of stack, whatever the text.
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
    pub message: &'static str,
    pub span: Range<usize>,
}

type Read<T> = Result<T, SyntaxError>;

/// Reads a whole text, or tells of the first thing that is wrong.
pub(crate) fn parse(text: &str) -> Read<Entries<'_>> {
    let mut reader = Reader { text, at: 0 };
    if text.starts_with('\u{feff}') {
        reader.at = '\u{feff}'.len_utf8();
    }
    let mut root = Entries::default();
    let mut table = &mut root;
    loop {
        reader.lines(true)?;
        match reader.peek() {
            None => return Ok(root),
            Some(b'[') => table = reader.header(&mut root)?,
            Some(_) => reader.key_value(table, 0)?,
        }
        reader.line_end()?;
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

struct Reader<'t> {
    text: &'t str,
    /// The next byte.
    at: usize,
}

impl<'t> Reader<'t> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Passes over a byte if it is the next one.
    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// An error before the next character.
    fn wrong_here<T>(&self, message: &'static str) -> Read<T> {
        wrong(message, self.at..self.at)
    }

    /// An error that is the next character.
    fn wrong_character<T>(&self, message: &'static str) -> Read<T> {
        let next = self.text[self.at..].chars().next();
        wrong(message, self.at..self.at + next.map_or(0, char::len_utf8))
    }

    /// "Spec": white space.
    fn spaces(&mut self) {
        while let Some(b' ' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    /// "Spec": a newline, which is LF or CRLF.
    fn newline(&mut self) -> Read<()> {
        self.take(b'\r');
        match self.take(b'\n') {
            true => Ok(()),
            false => self.wrong_here("carriage return without a newline, expected newline"),
        }
    }

    /// "Comment".
    fn comment(&mut self) -> Read<()> {
        loop {
            match self.peek() {
                None | Some(b'\n' | b'\r') => return Ok(()),
                Some(byte) if is_control(byte) => {
                    return self.wrong_character("control character in a comment, expected text");
                }
                Some(_) => self.at += 1,
            }
        }
    }

    /// White space and newlines, and comments if they may stand here.
    fn lines(&mut self, comments: bool) -> Read<()> {
        loop {
            match self.peek() {
                Some(b' ' | b'\t') => self.at += 1,
                Some(b'\n' | b'\r') => self.newline()?,
                Some(b'#') if comments => self.comment()?,
                _ => return Ok(()),
            }
        }
    }

    /// What may follow a header or a value: "there must be a newline (or EOF)".
    fn line_end(&mut self) -> Read<()> {
        self.spaces();
        match self.peek() {
            Some(b'#') => self.comment(),
            None | Some(b'\n' | b'\r') => Ok(()),
            Some(_) => self.wrong_here("unexpected text, expected newline or `#`"),
        }
    }

    /// "Table" and "Array of Tables": a header. The table that it opens is a new one, or one that
    /// other headers led through.
    fn header<'a>(&mut self, root: &'a mut Entries<'t>) -> Read<&'a mut Entries<'t>> {
        let start = self.at;
        self.at += 1;
        let array = self.take(b'[');
        let (path, key) = self.key()?;
        if !self.take(b']') {
            let message = match array {
                true => "unclosed table, expected `]]`",
                false => "unclosed table, expected `]`",
            };
            return self.wrong_here(message);
        }
        if array && !self.take(b']') {
            return self.wrong_here("unclosed table, expected `]]` without a space");
        }
        let span = start..self.at;

        let parent = descend(root, path, false)?;
        let index = match parent.find(&key.text) {
            Ok(index) => index,
            Err(index) => {
                let data = match array {
                    true => Data::Tables(Vec::new()),
                    false => Data::Table(Entries {
                        implicit: true,
                        ..Entries::default()
                    }),
                };
                let span = span.clone();
                let entry = (key.clone(), Node { span, data });
                parent.entries.insert(index, entry);
                index
            }
        };
        let (old_key, old) = &mut parent.entries[index];
        match &mut old.data {
            Data::Tables(tables) if array => {
                let data = Data::Table(Entries::default());
                tables.push(Node { span, data });
                if let Some(Data::Table(table)) = tables.last_mut().map(|node| &mut node.data) {
                    return Ok(table);
                }
            }
            Data::Table(table) if !array && table.implicit && !table.dotted => {
                *old_key = key;
                old.span = span;
                table.implicit = false;
                return Ok(table);
            }
            _ => {}
        }
        wrong("duplicate key", key.span)
    }

    /// "Keys": the parts of a key, the last apart, and the white space after them.
    fn key(&mut self) -> Read<(Vec<Key<'t>>, Key<'t>)> {
        let mut path = Vec::new();
        loop {
            self.spaces();
            let key = self.simple_key()?;
            self.spaces();
            if !self.take(b'.') {
                return Ok((path, key));
            }
            if path.len() + 1 == DEEPEST {
                return wrong("a key of too many parts, expected 80 at most", key.span);
            }
            path.push(key);
        }
    }

    fn simple_key(&mut self) -> Read<Key<'t>> {
        let start = self.at;
        if let Some(quote @ (b'"' | b'\'')) = self.peek() {
            if self.quotes(quote) >= 3 {
                let message = "a key in triple quotes, expected one quote on each side";
                return wrong(message, start..start + 3);
            }
            let text = self.string(quote)?;
            let span = start..self.at;
            return Ok(Key { text, span });
        }
        while let Some(b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-') = self.peek() {
            self.at += 1;
        }
        match self.peek() {
            // What may follow a key here or there; the caller sees to it.
            None
            | Some(b' ' | b'\t' | b'\r' | b'\n' | b'#' | b'.' | b',' | b'=')
            | Some(b'[' | b']' | b'{' | b'}' | b'"' | b'\'') => {}
            Some(_) => {
                return self.wrong_character(
                    "invalid key, expected letters, digits, `-`, `_`, or quotes around it",
                );
            }
        }
        if self.at == start {
            return self.wrong_here("missing key, expected letters, digits, `-`, `_` or a quote");
        }
        let span = start..self.at;
        let text = Cow::Borrowed(&self.text[span.clone()]);
        Ok(Key { text, span })
    }

    /// "Key/Value Pair". `depth`: how many values are open around it.
    fn key_value(&mut self, table: &mut Entries<'t>, depth: usize) -> Read<()> {
        let (path, key) = self.key()?;
        if !self.take(b'=') {
            return self.wrong_here("key with no value, expected `=`");
        }
        self.spaces();
        let value = self.value(depth + path.len())?;
        let dotted = !path.is_empty();
        let table = descend(table, path, dotted)?;
        match table.find(&key.text) {
            // "Table": dotted keys cannot add to a table that has a header or braces of its own.
            Err(index) if table.implicit || !dotted => {
                table.entries.insert(index, (key, value));
                Ok(())
            }
            _ => wrong("duplicate key", key.span),
        }
    }

    fn value(&mut self, depth: usize) -> Read<Node<'t>> {
        let start = self.at;
        let data = match self.peek() {
            Some(quote @ (b'"' | b'\'')) => Data::String(self.string(quote)?),
            Some(b'[' | b'{') if depth >= DEEPEST => {
                return self
                    .wrong_character("values nested too deeply, expected 80 levels at most");
            }
            Some(b'[') => Data::List(self.list(depth + 1)?),
            Some(b'{') => Data::Table(self.inline_table(depth + 1)?),
            _ => self.bare()?,
        };
        let span = start..self.at;
        Ok(Node { span, data })
    }

    /// "Array".
    fn list(&mut self, depth: usize) -> Read<Vec<Node<'t>>> {
        let open = self.at..self.at + 1;
        self.at += 1;
        let mut list = Vec::new();
        loop {
            self.lines(true)?;
            if self.take(b']') {
                return Ok(list);
            }
            if self.peek().is_none() {
                return wrong("unclosed list, expected `]`", open);
            }
            list.push(self.value(depth)?);
            self.lines(true)?;
            if !self.take(b',') && !matches!(self.peek(), None | Some(b']')) {
                return self.wrong_here("unclosed list, expected `,` or `]`");
            }
        }
    }

    /// "Inline Table".
    fn inline_table(&mut self, depth: usize) -> Read<Entries<'t>> {
        let open = self.at..self.at + 1;
        self.at += 1;
        let mut table = Entries {
            inline: true,
            ..Entries::default()
        };
        loop {
            self.lines(true)?;
            if self.take(b'}') {
                return Ok(table);
            }
            if self.peek().is_none() {
                return wrong("unclosed inline table, expected `}`", open);
            }
            self.key_value(&mut table, depth)?;
            self.lines(true)?;
            if !self.take(b',') && !matches!(self.peek(), None | Some(b'}')) {
                return self.wrong_here("unclosed inline table, expected `,` or `}`");
            }
        }
    }
}

fn wrong<T>(message: &'static str, span: Range<usize>) -> Read<T> {
    Err(SyntaxError { message, span })
}

/// "Comment", "String": what no text may contain as it is.
fn is_control(byte: u8) -> bool {
    byte.is_ascii_control() && byte != b'\t'
}

/// The table that `path` leads to; what is not there is made. `dotted`: the path is of a dotted
/// key, else of a header.
fn descend<'a, 't>(
    mut table: &'a mut Entries<'t>,
    path: Vec<Key<'t>>,
    dotted: bool,
) -> Read<&'a mut Entries<'t>> {
    let inline = table.inline;
    for key in path {
        let span = key.span.clone();
        let index = match table.find(&key.text) {
            Ok(index) => index,
            Err(index) => {
                let data = Data::Table(Entries {
                    entries: Vec::new(),
                    implicit: true,
                    dotted,
                    inline,
                });
                let node = Node {
                    span: span.clone(),
                    data,
                };
                table.entries.insert(index, (key, node));
                index
            }
        };
        table = match &mut table.entries[index].1.data {
            // "any reference to an array of tables points to the most recently defined element"
            Data::Tables(tables) => match tables.last_mut().map(|last| &mut last.data) {
                Some(Data::Table(last)) => last,
                _ => return wrong("duplicate key", span),
            },
            Data::Table(inner) if inner.inline && !inline => {
                return wrong(
                    "cannot add to an inline table, expected it in its braces",
                    span,
                );
            }
            Data::Table(inner) if dotted && !inner.implicit => {
                return wrong("duplicate key", span);
            }
            Data::Table(inner) => {
                inner.dotted |= dotted;
                inner
            }
            Data::List(_) => return wrong("cannot add keys to a list, expected a table", span),
            _ => return wrong("cannot add keys to a value, expected a table", span),
        };
    }
    Ok(table)
}

#[cfg(test)]
mod tests;
