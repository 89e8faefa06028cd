//! Tokens of LLVM's textual form.

/// A token. Names keep their sign and their quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token<'t> {
    /// `@name`: a function, variable or alias.
    Global(&'t str),
    /// `%name`: a value of a function, or a type.
    Local(&'t str),
    /// `$name`: a COMDAT.
    Comdat(&'t str),
    /// `#3`: a group of attributes.
    Attributes(u32),
    /// `!3`: a node of metadata.
    Node(u32),
    /// A keyword, number, string in quotes, or kind of metadata (`!dbg`).
    Word(&'t str),
    /// Another character.
    Sign(u8),
}

/// A token with its range in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spanned<'t> {
    pub token: Token<'t>,
    pub start: usize,
    pub end: usize,
}

/// The tokens of a text, without its comments.
#[derive(Debug, Clone)]
pub struct Lexer<'t> {
    text: &'t str,
    position: usize,
}

impl<'t> Lexer<'t> {
    pub fn new(text: &'t str) -> Self {
        Self { text, position: 0 }
    }

    /// The next token, which stays.
    pub fn peek(&self) -> Option<Token<'t>> {
        self.clone().next().map(|spanned| spanned.token)
    }

    /// Consumes the next token if it is this word.
    pub fn accept(&mut self, word: &str) -> bool {
        self.accept_token(Token::Word(word))
    }

    /// Consumes the next token if it is this one.
    pub fn accept_token(&mut self, token: Token<'_>) -> bool {
        let is_next = self.peek() == Some(token);
        if is_next {
            self.next();
        }
        is_next
    }

    /// End of the tokens that were read.
    pub fn offset(&self) -> usize {
        self.position
    }

    /// Consumes tokens up to the bracket that closes the one just read.
    pub fn skip_brackets(&mut self) -> Option<()> {
        let mut depth = 1;
        for spanned in self.by_ref() {
            match spanned.token {
                Token::Sign(b'(' | b'[' | b'{' | b'<') => depth += 1,
                Token::Sign(b')' | b']' | b'}' | b'>') => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return Some(());
            }
        }
        None
    }

    /// Consumes a type.
    pub fn skip_type(&mut self) -> Option<()> {
        match self.next()?.token {
            Token::Sign(b'[' | b'{' | b'<') => self.skip_brackets()?,
            Token::Local(_) | Token::Word(_) => {}
            _ => return None,
        }
        loop {
            match self.peek() {
                Some(Token::Sign(b'*')) => {
                    self.next();
                }
                // Parameters of a function type, or of a target's type.
                Some(Token::Sign(b'(')) => {
                    self.next();
                    self.skip_brackets()?;
                }
                Some(Token::Word("addrspace")) => {
                    self.next();
                }
                _ => return Some(()),
            }
        }
    }

    fn rest(&self) -> &'t [u8] {
        &self.text.as_bytes()[self.position..]
    }

    /// Length of a name, which may be in quotes, at an offset.
    fn name_length(&self, offset: usize) -> usize {
        let rest = &self.rest()[offset..];
        match rest.first() {
            Some(b'"') => quoted_length(rest),
            _ => rest.iter().take_while(|byte| is_in_word(**byte)).count(),
        }
    }
}

/// Length of a string with its quotes: characters that need an escape are written as numbers (LangRef, "Identifiers").
fn quoted_length(rest: &[u8]) -> usize {
    let closing = rest.iter().skip(1).position(|byte| *byte == b'"');
    closing.map_or(rest.len(), |length| length + 2)
}

fn is_in_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'$' | b'\\')
}

impl<'t> Iterator for Lexer<'t> {
    type Item = Spanned<'t>;

    fn next(&mut self) -> Option<Spanned<'t>> {
        loop {
            let rest = self.rest();
            match rest.first()? {
                b';' => {
                    let line = rest.iter().position(|byte| *byte == b'\n');
                    self.position += line.unwrap_or(rest.len());
                }
                byte if byte.is_ascii_whitespace() => self.position += 1,
                _ => break,
            }
        }
        let rest = self.rest();
        let first = *rest.first()?;
        let length = match first {
            b'@' | b'%' | b'$' | b'#' => 1 + self.name_length(1),
            // A string of metadata is one of its own.
            b'!' if rest.get(1) != Some(&b'"') => 1 + self.name_length(1),
            b'"' => quoted_length(rest),
            _ if is_in_word(first) => self.name_length(0),
            // The other bytes of a character.
            _ => 1 + rest[1..].iter().take_while(|b| **b & 0xC0 == 0x80).count(),
        };
        let start = self.position;
        self.position += length;
        let text = &self.text[start..self.position];
        let number = || text[1..].parse().ok();
        let token = match first {
            _ if length == 1 && !is_in_word(first) => Token::Sign(first),
            b'@' => Token::Global(text),
            b'%' => Token::Local(text),
            b'$' => Token::Comdat(text),
            b'#' => number().map_or(Token::Word(text), Token::Attributes),
            b'!' => number().map_or(Token::Word(text), Token::Node),
            _ => Token::Word(text),
        };
        Some(Spanned {
            token,
            start,
            end: self.position,
        })
    }
}
