//! A minimal parser of Rust, which adds a line to a file without searching comments and strings.
//! The lexer is proc-macro2's.

use std::ops::Range;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// A Rust file's tokens, with positions in its text.
pub struct File {
    tokens: Vec<TokenTree>,
    /// Length of the prefix that the lexer rejects: a byte-order mark and a `#!` line.
    head: usize,
}

impl File {
    /// Parses a file; `None` if it is not Rust.
    pub fn parse(text: &str) -> Option<Self> {
        let mut head = if text.starts_with('\u{feff}') {
            '\u{feff}'.len_utf8()
        } else {
            0
        };
        let rest = &text[head..];
        if rest.starts_with("#!") && !rest[2..].trim_start().starts_with('[') {
            head += rest.find('\n').map_or(rest.len(), |at| at + 1);
        }
        let tokens: TokenStream = text[head..].parse().ok()?;
        Some(Self {
            tokens: tokens.into_iter().collect(),
            head,
        })
    }

    /// Start of the text after the prefix.
    pub fn head(&self) -> usize {
        self.head
    }

    /// Whether `name` is used as a crate anywhere: `name::x`, `use name`, `extern crate name`.
    pub fn mentions_crate(&self, name: &str) -> bool {
        mentions(&self.tokens, name)
    }

    /// End of the inner attributes and inner doc comments at the top.
    pub fn after_inner_attributes(&self) -> Option<usize> {
        let count = inner_attributes(&self.tokens);
        count
            .checked_sub(1)
            .map(|last| self.head + end(&self.tokens[last]))
    }

    /// Start of the first item, including its attributes, and the item's first word.
    pub fn first_item(&self) -> Option<(usize, String)> {
        let items = &self.tokens[inner_attributes(&self.tokens)..];
        let first = items.first()?;
        Some((self.head + start(first), first.to_string()))
    }

    /// Whether a top-level token begins at a position, outside of comments, strings and braces.
    pub fn has_item_at(&self, at: usize) -> bool {
        let mut tokens = self.tokens.iter();
        tokens.any(|token| self.head + start(token) == at)
    }

    /// Body of the only `fn main`: from the position after its `{` and inner attributes to the
    /// position of its `}`.
    pub fn main_body(&self) -> Option<Range<usize>> {
        let mut mains = (self.tokens.windows(2).enumerate())
            .filter(|(_, pair)| is_word(&pair[0], "fn") && is_word(&pair[1], "main"));
        let (main, _) = mains.next()?;
        // Several, each under a `cfg`: the active one is unknown.
        if mains.next().is_some() {
            return None;
        }
        self.tokens[main..].iter().find_map(|token| match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                let inside: Vec<TokenTree> = group.stream().into_iter().collect();
                let from = match inner_attributes(&inside).checked_sub(1) {
                    Some(last) => end(&inside[last]),
                    None => group.span_open().byte_range().end,
                };
                Some(self.head + from..self.head + group.span_close().byte_range().start)
            }
            _ => None,
        })
    }
}

fn mentions(tokens: &[TokenTree], name: &str) -> bool {
    tokens.iter().enumerate().any(|(at, token)| match token {
        TokenTree::Group(group) => mentions(&group.stream().into_iter().collect::<Vec<_>>(), name),
        _ if is_word(token, name) => {
            let next = |n: usize| tokens.get(at + n).is_some_and(|t| is_punct(t, ':'));
            // A path that begins with the name, optionally after a leading `::`.
            let colons =
                at >= 2 && is_punct(&tokens[at - 1], ':') && is_punct(&tokens[at - 2], ':');
            let tail = colons && at >= 3 && matches!(&tokens[at - 3], TokenTree::Ident(_));
            let word = at.checked_sub(1).map(|before| &tokens[before]);
            (next(1) && next(2) && !tail)
                || word.is_some_and(|word| is_word(word, "use") || is_word(word, "crate"))
        }
        _ => false,
    })
}

/// Number of leading tokens that are inner attributes: `#`, `!`, `[…]`.
fn inner_attributes(tokens: &[TokenTree]) -> usize {
    let is_one = |three: &[TokenTree]| {
        is_punct(&three[0], '#')
            && is_punct(&three[1], '!')
            && matches!(&three[2], TokenTree::Group(g) if g.delimiter() == Delimiter::Bracket)
    };
    3 * tokens
        .chunks_exact(3)
        .take_while(|three| is_one(three))
        .count()
}

fn is_word(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident == word)
}

fn is_punct(token: &TokenTree, sign: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == sign)
}

fn start(token: &TokenTree) -> usize {
    token.span().byte_range().start
}

fn end(token: &TokenTree) -> usize {
    token.span().byte_range().end
}
