//! The grammar: white space, comments, keys, headers and values.

use std::borrow::Cow;

use super::tree::{
    Data, Entries, Key, MAX_DEPTH, Node, ParseResult, add_header, add_value, syntax_error,
};

/// Reads a text in one pass.
pub(super) struct Reader<'t> {
    pub(super) text: &'t str,
    /// Offset of the next byte.
    pub(super) position: usize,
}

/// Reads a whole text, up to the first error.
pub(crate) fn parse(text: &str) -> ParseResult<Entries<'_>> {
    let mut reader = Reader { text, position: 0 };
    if text.starts_with("\u{feff}") {
        reader.position = "\u{feff}".len();
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

impl<'t> Reader<'t> {
    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.position).copied()
    }

    /// Skips a byte if it is the next one.
    fn accept(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.position += usize::from(is_next);
        is_next
    }

    /// An error before the next character.
    pub(super) fn error_here<T>(&self, message: &'static str) -> ParseResult<T> {
        syntax_error(message, self.position..self.position)
    }

    /// An error of the next character.
    pub(super) fn error_in_character<T>(&self, message: &'static str) -> ParseResult<T> {
        let next = self.text[self.position..].chars().next();
        let end = self.position + next.map_or(0, char::len_utf8);
        syntax_error(message, self.position..end)
    }

    /// "Spec": white space.
    pub(super) fn spaces(&mut self) {
        while let Some(b' ' | b'\t') = self.peek() {
            self.position += 1;
        }
    }

    /// "Spec": a newline, which is LF or CRLF.
    pub(super) fn newline(&mut self) -> ParseResult<()> {
        self.accept(b'\r');
        if self.accept(b'\n') {
            return Ok(());
        }
        self.error_here("carriage return without a newline, expected newline")
    }

    /// "Comment".
    fn comment(&mut self) -> ParseResult<()> {
        loop {
            match self.peek() {
                None | Some(b'\n' | b'\r') => return Ok(()),
                Some(byte) if is_control(byte) => {
                    return self
                        .error_in_character("control character in a comment, expected text");
                }
                Some(_) => self.position += 1,
            }
        }
    }

    /// White space and newlines, and comments if they are allowed.
    pub(super) fn lines(&mut self, comments: bool) -> ParseResult<()> {
        loop {
            match self.peek() {
                Some(b' ' | b'\t') => self.position += 1,
                Some(b'\n' | b'\r') => self.newline()?,
                Some(b'#') if comments => self.comment()?,
                _ => return Ok(()),
            }
        }
    }

    /// End of a header or a value: "there must be a newline (or EOF)".
    fn line_end(&mut self) -> ParseResult<()> {
        self.spaces();
        match self.peek() {
            Some(b'#') => self.comment(),
            None | Some(b'\n' | b'\r') => Ok(()),
            Some(_) => self.error_here("unexpected text, expected newline or `#`"),
        }
    }

    /// "Table" and "Array of Tables": a header. Returns its table, a new one or one that other headers
    /// have mentioned.
    fn header<'a>(&mut self, root: &'a mut Entries<'t>) -> ParseResult<&'a mut Entries<'t>> {
        let start = self.position;
        self.position += 1;
        let is_array = self.accept(b'[');
        let (path, key) = self.key()?;
        if !self.accept(b']') {
            return self.error_here(if is_array {
                "unclosed table, expected `]]`"
            } else {
                "unclosed table, expected `]`"
            });
        }
        if is_array && !self.accept(b']') {
            return self.error_here("unclosed table, expected `]]` without a space");
        }
        add_header(root, path, key, start..self.position, is_array)
    }

    /// "Keys": the parts of a key, the last apart, and the white space after them.
    fn key(&mut self) -> ParseResult<(Vec<Key<'t>>, Key<'t>)> {
        let mut path = Vec::new();
        loop {
            self.spaces();
            let key = self.simple_key()?;
            self.spaces();
            if !self.accept(b'.') {
                return Ok((path, key));
            }
            if path.len() + 1 == MAX_DEPTH {
                return syntax_error("key with too many parts, expected 80 at most", key.span);
            }
            path.push(key);
        }
    }

    fn simple_key(&mut self) -> ParseResult<Key<'t>> {
        let start = self.position;
        if let Some(quote @ (b'"' | b'\'')) = self.peek() {
            if self.quotes(quote) >= 3 {
                let message = "key in triple quotes, expected one quote on each side";
                return syntax_error(message, start..start + 3);
            }
            let text = self.string(quote)?;
            let span = start..self.position;
            return Ok(Key { text, span });
        }
        while let Some(b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-') = self.peek() {
            self.position += 1;
        }
        match self.peek() {
            // May follow a key in some context; the caller checks it.
            None
            | Some(b' ' | b'\t' | b'\r' | b'\n' | b'#' | b'.' | b',' | b'=')
            | Some(b'[' | b']' | b'{' | b'}' | b'"' | b'\'') => {}
            Some(_) => {
                return self.error_in_character(
                    "invalid key, expected letters, digits, `-`, `_`, or quotes around it",
                );
            }
        }
        if self.position == start {
            return self.error_here("missing key, expected letters, digits, `-`, `_` or a quote");
        }
        let span = start..self.position;
        let text = Cow::Borrowed(&self.text[span.clone()]);
        Ok(Key { text, span })
    }

    /// "Key/Value Pair". `depth` is the number of values that contain it.
    fn key_value(&mut self, table: &mut Entries<'t>, depth: usize) -> ParseResult<()> {
        let (path, key) = self.key()?;
        if !self.accept(b'=') {
            return self.error_here("key with no value, expected `=`");
        }
        self.spaces();
        let value = self.value(depth + path.len())?;
        add_value(table, path, key, value)
    }

    fn value(&mut self, depth: usize) -> ParseResult<Node<'t>> {
        let start = self.position;
        let data = match self.peek() {
            Some(quote @ (b'"' | b'\'')) => Data::String(self.string(quote)?),
            Some(b'[' | b'{') if depth >= MAX_DEPTH => {
                return self
                    .error_in_character("values nested too deeply, expected 80 levels at most");
            }
            Some(b'[') => Data::List(self.list(depth + 1)?),
            Some(b'{') => Data::Table(self.inline_table(depth + 1)?),
            _ => self.bare()?,
        };
        let span = start..self.position;
        Ok(Node { span, data })
    }

    /// "Array".
    fn list(&mut self, depth: usize) -> ParseResult<Vec<Node<'t>>> {
        let open = self.position..self.position + 1;
        self.position += 1;
        let mut list = Vec::new();
        loop {
            self.lines(true)?;
            if self.accept(b']') {
                return Ok(list);
            }
            if self.peek().is_none() {
                return syntax_error("unclosed list, expected `]`", open);
            }
            list.push(self.value(depth)?);
            self.lines(true)?;
            if !self.accept(b',') && !matches!(self.peek(), None | Some(b']')) {
                return self.error_here("unclosed list, expected `,` or `]`");
            }
        }
    }

    /// "Inline Table".
    fn inline_table(&mut self, depth: usize) -> ParseResult<Entries<'t>> {
        let open = self.position..self.position + 1;
        self.position += 1;
        let mut table = Entries::inline();
        loop {
            self.lines(true)?;
            if self.accept(b'}') {
                return Ok(table);
            }
            if self.peek().is_none() {
                return syntax_error("unclosed inline table, expected `}`", open);
            }
            self.key_value(&mut table, depth)?;
            self.lines(true)?;
            if !self.accept(b',') && !matches!(self.peek(), None | Some(b'}')) {
                return self.error_here("unclosed inline table, expected `,` or `}`");
            }
        }
    }
}

/// "Comment", "String": characters that no text contains.
pub(super) fn is_control(byte: u8) -> bool {
    byte.is_ascii_control() && byte != b'\t'
}
