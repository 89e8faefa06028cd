//! Graphs as text: `B*:shared; A*:shared->B; exe:bin->A opens p1,p2`.

use std::fmt::Write;
use std::ops::Range;

use super::graph::{Graph, Link, Node, NodeForm, NodeKind, Open};
use crate::diag::{Diagnostic, INVALID_GRAPH, Origin};
use crate::gpu_arch::Arch;
use crate::manifest::Cudart;
use crate::suggest::nearest;

const FORMS: [(&str, NodeKind, NodeForm); 7] = [
    ("static", NodeKind::Plain, NodeForm::Static),
    ("object", NodeKind::Plain, NodeForm::Object),
    ("shared", NodeKind::Plain, NodeForm::Shared),
    ("bin", NodeKind::Plain, NodeForm::Bin),
    ("plugin", NodeKind::Plain, NodeForm::Plugin),
    ("cdylib", NodeKind::Plain, NodeForm::Cdylib),
    ("interface", NodeKind::Interface, NodeForm::Static),
];

const CUDARTS: [Cudart; 3] = [Cudart::Shared, Cudart::Static, Cudart::None];

const MARKS: [&str; 9] = [
    "opens",
    "archs",
    "cudart",
    "symbols",
    "version-of",
    "sees",
    "prelinked",
    "closed",
    "host",
];

const STATEMENT: &str = "write NAME:FORM, with `*` behind the name for relocatable code, such as \
                         `A*:shared->B`";

impl Graph {
    /// Reads a graph. Statements end with `;` or the line; `#` starts a comment:
    ///
    /// ```text
    /// NAME[*]:FORM [-> [-]NAME, …] [opens NAME[:final], …] [MARK …]
    /// ```
    ///
    /// Libraries are opened in this order. `*` is relocatable device code, a form one of `static object shared bin plugin cdylib
    /// interface`, `-` before a name a private link. Marks: `closed`, `host`, `prelinked` (or
    /// `prelinked=A+B`), `archs=sm_80+sm_90`, `cudart=static`, `symbols=f+g`, `version-of=NAME`,
    /// `sees=A+B` (`sees=` for none).
    pub fn parse(file: &str, text: &str) -> (Self, Vec<Diagnostic>) {
        let mut reader = Reader {
            file,
            tokens: tokens(text),
            next: 0,
        };
        let (mut graph, mut diagnostics) = (Self::default(), Vec::new());
        while reader.next < reader.tokens.len() {
            match reader.statement() {
                Ok(node) => graph.nodes.extend(node),
                Err(error) => {
                    diagnostics.push(*error);
                    reader.skip_statement();
                }
            }
        }
        (graph, diagnostics)
    }

    /// The graph in this notation, a statement a line.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for node in &self.nodes {
            let form = FORMS
                .iter()
                .find(|(_, kind, form)| {
                    *form == node.form
                        && (*kind == NodeKind::Interface) == (node.kind == NodeKind::Interface)
                })
                .map_or("interface", |(word, ..)| word);
            let star = if node.kind == NodeKind::Rdc { "*" } else { "" };
            let _ = write!(text, "{}{star}:{form}", node.name);
            let links = node.links.iter().map(|link| {
                let prefix = if link.private { "-" } else { "" };
                format!("{prefix}{}", link.to)
            });
            list(&mut text, " -> ", links, ",");
            let opens = node.opens.iter().map(|open| {
                let suffix = if open.r#final { ":final" } else { "" };
                format!("{}{suffix}", open.to)
            });
            list(&mut text, " opens ", opens, ",");
            if node.closed {
                text.push_str(" closed");
            }
            if node.host {
                text.push_str(" host");
            }
            if let Some(inputs) = &node.prelinked {
                text.push_str(" prelinked");
                list(&mut text, "=", inputs.iter().cloned(), "+");
            }
            list(
                &mut text,
                " archs=",
                node.archs.iter().map(Arch::to_string),
                "+",
            );
            if let Some(cudart) = node.cudart {
                let _ = write!(text, " cudart={}", cudart.word());
            }
            list(&mut text, " symbols=", node.symbols.iter().cloned(), "+");
            list(
                &mut text,
                " version-of=",
                node.version_of.iter().cloned(),
                "+",
            );
            if let Some(visible) = &node.visible {
                let _ = write!(text, " sees={}", visible.join("+"));
            }
            text.push('\n');
        }
        text
    }
}

fn list(text: &mut String, head: &str, words: impl Iterator<Item = String>, separator: &str) {
    for (index, word) in words.enumerate() {
        text.push_str(if index == 0 { head } else { separator });
        text.push_str(&word);
    }
}

#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(Clone, Copy, PartialEq, Eq)]
enum Token<'t> {
    Word(&'t str),
    Arrow,
    Sign(char),
    /// `;` or the end of a line.
    End,
    /// A character that no graph contains.
    Other(char),
}

/// Letters, digits and the punctuation of package names, target names and mangled symbols.
fn in_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '.' | '@' | '/' | '$' | '-')
}

fn tokens(text: &str) -> Vec<(Token<'_>, Range<usize>)> {
    let mut tokens: Vec<(Token<'_>, Range<usize>)> = Vec::new();
    let mut start = 0;
    while let Some(c) = text[start..].chars().next() {
        let rest = &text[start..];
        let mut length = c.len_utf8();
        let token = match c {
            '\n' | ';' => Some(Token::End),
            '#' => {
                length = rest.find('\n').unwrap_or(rest.len());
                None
            }
            _ if rest.starts_with("->") => {
                length = 2;
                Some(Token::Arrow)
            }
            '*' | ':' | ',' | '=' | '+' | '-' => Some(Token::Sign(c)),
            _ if in_word(c) => {
                length = rest.find(|c| !in_word(c)).unwrap_or(rest.len());
                // The `-` of an arrow does not belong to the name before it.
                if rest[length..].starts_with('>') && rest[..length].ends_with('-') {
                    length -= 1;
                }
                Some(Token::Word(&rest[..length]))
            }
            _ if c.is_whitespace() || c == '\u{feff}' => None,
            _ => Some(Token::Other(c)),
        };
        // A line that ends in the middle of a list continues in the next one.
        let continues = matches!(
            tokens.last(),
            Some((Token::Arrow | Token::Sign(',' | '+'), _))
        );
        if let Some(token) = token.filter(|_| !(c == '\n' && continues)) {
            tokens.push((token, start..start + length));
        }
        start += length;
    }
    tokens.push((Token::End, text.len()..text.len()));
    tokens
}

struct Reader<'t> {
    file: &'t str,
    tokens: Vec<(Token<'t>, Range<usize>)>,
    next: usize,
}

type ParseResult<T> = Result<T, Box<Diagnostic>>;

impl<'t> Reader<'t> {
    /// Next token; after the last one, an end.
    fn peek(&self) -> (Token<'t>, Range<usize>) {
        match self.tokens.get(self.next).or(self.tokens.last()) {
            Some(token) => token.clone(),
            None => (Token::End, 0..0),
        }
    }

    fn accept(&mut self, token: Token<'_>) -> bool {
        let accepted = self.next < self.tokens.len() && self.peek().0 == token;
        self.next += usize::from(accepted);
        accepted
    }

    fn skip_statement(&mut self) {
        while self.next < self.tokens.len() && self.peek().0 != Token::End {
            self.next += 1;
        }
        self.next += 1;
    }

    fn error<T>(
        &self,
        span: Range<usize>,
        message: String,
        help: impl Into<String>,
    ) -> ParseResult<T> {
        let error = Diagnostic::error(&INVALID_GRAPH, message).with_origin(self.file, span);
        Err(Box::new(error.help(help)))
    }

    /// Reports a token that is not valid here.
    fn unexpected_token<T>(&self, expected: &str, help: &str) -> ParseResult<T> {
        let (token, span) = self.peek();
        let description = match token {
            Token::Word(word) => format!("`{}`", word.chars().take(60).collect::<String>()),
            Token::Arrow => "`->`".to_owned(),
            Token::Sign(c) | Token::Other(c) => format!("`{}`", c.escape_debug()),
            Token::End => "the end of the statement".to_owned(),
        };
        let message = format!("expected {expected}, found {description}");
        self.error(span, message, help)
    }

    fn word(&mut self, expected: &str) -> ParseResult<(&'t str, Range<usize>)> {
        let (Token::Word(word), span) = self.peek() else {
            return self.unexpected_token(expected, STATEMENT);
        };
        self.next += 1;
        Ok((word, span))
    }

    /// Reports a word that is not among the known ones.
    fn unknown_word<T>(
        &self,
        word: &str,
        span: Range<usize>,
        kind: &str,
        known: &[&str],
    ) -> ParseResult<T> {
        let help = match nearest(word, known.iter().copied()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("known are {}", known.join(", ")),
        };
        let word: String = word.chars().take(60).collect();
        self.error(span, format!("unknown {kind} `{word}`"), help)
    }

    /// A node; `None` for an empty statement.
    fn statement(&mut self) -> ParseResult<Option<Node>> {
        if self.accept(Token::End) {
            return Ok(None);
        }
        let (name, name_span) = self.word("a name")?;
        let is_rdc = self.accept(Token::Sign('*'));
        if !self.accept(Token::Sign(':')) {
            return self.unexpected_token("`:` and a form", STATEMENT);
        }
        let (word, form_span) = self.word("a form")?;
        let Some((_, kind, form)) = FORMS.iter().find(|(known, ..)| *known == word) else {
            return self.unknown_word(word, form_span, "form", &FORMS.map(|(word, ..)| word));
        };
        if is_rdc && *kind == NodeKind::Interface {
            let message = format!("`{name}` has only headers, which are not relocatable code");
            let help = "leave the `*` out: those who include them have it";
            return self.error(form_span, message, help);
        }
        let kind = if is_rdc { NodeKind::Rdc } else { *kind };
        let mut node = Node::new(name, kind, *form);
        node.origin = Some(Origin::new(self.file, name_span));
        if self.accept(Token::Arrow) {
            node.links = self.links()?;
        }
        while !self.accept(Token::End) {
            self.mark(&mut node)?;
        }
        Ok(Some(node))
    }

    fn links(&mut self) -> ParseResult<Vec<Link>> {
        let mut links = Vec::new();
        loop {
            let private = self.accept(Token::Sign('-'));
            let (to, _) = self.word("the name of a library")?;
            links.push(Link {
                to: to.to_owned(),
                private,
            });
            if !self.accept(Token::Sign(',')) {
                return Ok(links);
            }
        }
    }

    fn opens(&mut self) -> ParseResult<Vec<Open>> {
        let mut opens = Vec::new();
        loop {
            let (to, _) = self.word("the name of a plugin")?;
            let r#final = self.accept(Token::Sign(':'));
            if r#final && !self.accept(Token::Word("final")) {
                let help = "write NAME:final to open the final of a library";
                return self.unexpected_token("`final`", help);
            }
            opens.push(Open {
                to: to.to_owned(),
                r#final,
            });
            if !self.accept(Token::Sign(',')) {
                return Ok(opens);
            }
        }
    }

    /// Values after `=`, separated by `+`; none if nothing follows.
    fn values(&mut self) -> ParseResult<Vec<(&'t str, Range<usize>)>> {
        let mut values = Vec::new();
        if !matches!(self.peek().0, Token::Word(_)) {
            return Ok(values);
        }
        loop {
            values.push(self.word("a value")?);
            if !self.accept(Token::Sign('+')) {
                return Ok(values);
            }
        }
    }

    fn mark(&mut self, node: &mut Node) -> ParseResult<()> {
        let (mark, span) = self.word("a mark or the end of the statement")?;
        if !MARKS.contains(&mark) {
            return self.unknown_word(mark, span, "mark", &MARKS);
        }
        if mark == "opens" {
            node.opens.extend(self.opens()?);
            return Ok(());
        }
        let is_assigned = self.accept(Token::Sign('='));
        let values = if is_assigned {
            self.values()?
        } else {
            Vec::new()
        };
        match (mark, values.as_slice()) {
            ("closed", []) if !is_assigned => node.closed = true,
            ("host", []) if !is_assigned => node.host = true,
            ("prelinked", _) if is_assigned != values.is_empty() => {
                node.prelinked = Some(names(&values));
            }
            ("sees", _) if is_assigned => node.visible = Some(names(&values)),
            ("symbols", [_, ..]) => node.symbols = names(&values),
            ("version-of", [(name, _)]) => node.version_of = Some((*name).to_owned()),
            ("archs", [_, ..]) => {
                for (word, span) in &values {
                    let Some(arch) = Arch::parse(word) else {
                        let message = format!("`archs` takes {}", Arch::TAKES);
                        return self.error(span.clone(), message, "several: archs=sm_80+sm_90");
                    };
                    node.archs.push(arch);
                }
            }
            ("cudart", [(word, span)]) => {
                let Some(cudart) = CUDARTS.iter().find(|cudart| cudart.word() == *word) else {
                    let known = CUDARTS.map(Cudart::word);
                    return self.unknown_word(word, span.clone(), "runtime", &known);
                };
                node.cudart = Some(*cudart);
            }
            _ => {
                let message = format!("`{mark}` is not written so");
                let help = "marks are closed, host, prelinked, prelinked=A+B, archs=sm_80+sm_90, \
                            cudart=static, symbols=f+g, version-of=NAME, sees=A+B";
                return self.error(span, message, help);
            }
        }
        Ok(())
    }
}

fn names(values: &[(&str, Range<usize>)]) -> Vec<String> {
    values.iter().map(|(name, _)| (*name).to_owned()).collect()
}
