//! A minimal parser of Rust, which adds a line to a file without searching comments and strings.
//! The lexer is proc-macro2's.

use std::ops::Range;

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// A Rust file's tokens, with positions in its text.
pub struct SourceFile {
    tokens: Vec<TokenTree>,
    /// Length of the prefix that the lexer rejects: a byte-order mark and a `#!` line.
    head: usize,
}

impl SourceFile {
    /// Parses a file; `None` if it is not Rust.
    pub fn parse(text: &str) -> Option<Self> {
        let mut head = if text.starts_with('\u{feff}') {
            '\u{feff}'.len_utf8()
        } else {
            0
        };
        let rest = &text[head..];
        if rest.starts_with("#!") && !rest[2..].trim_start().starts_with('[') {
            head += rest.find('\n').map_or(rest.len(), |newline| newline + 1);
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

    /// Whether a word occurs anywhere except in comments and strings.
    pub fn has_word(&self, word: &str) -> bool {
        contains_word(&self.tokens, word)
    }

    /// Whether an item at the root of the file links a crate: `use name…;` or `extern crate name…;`
    /// without a `cfg`, or with `#[cfg(condition)]`. An item in a module or function, which may be
    /// conditional as a whole, does not count.
    pub fn links_crate(&self, name: &str, condition: &str) -> bool {
        let condition: TokenStream = condition.parse().unwrap_or_default();
        let condition = condition.to_string();
        let is_shadowed = self.shadows_crate(name);
        items(&self.tokens).any(|item| {
            item.attributes
                .iter()
                .all(|attribute| is_unconditional(attribute, &condition))
                && match item.tokens {
                    [first, tree @ ..] if is_word(first, "use") => {
                        !is_shadowed && leads_with(tree, name)
                    }
                    [first, second, third, ..] => {
                        is_word(first, "extern") && is_word(second, "crate") && is_word(third, name)
                    }
                    _ => false,
                }
        })
    }

    /// Whether `name` in a path may be an item of this file instead of the crate: a module, a type,
    /// or another import.
    pub fn shadows_crate(&self, name: &str) -> bool {
        const KEYWORDS: [&str; 6] = ["enum", "mod", "struct", "trait", "type", "union"];
        items(&self.tokens).any(|item| match item.tokens {
            [first, tree @ ..] if is_word(first, "use") => {
                contains_word(tree, name) && (!leads_with(tree, name) || renames_to(tree, name))
            }
            [first, second, third, rest @ ..]
                if is_word(first, "extern") && is_word(second, "crate") =>
            {
                !is_word(third, name) && renames_to(rest, name)
            }
            tokens => (tokens.windows(2)).any(|pair| {
                KEYWORDS.iter().any(|word| is_word(&pair[0], word)) && is_word(&pair[1], name)
            }),
        })
    }

    /// End of the inner attributes and inner doc comments at the top.
    pub fn after_inner_attributes(&self) -> Option<usize> {
        let count = inner_attributes(&self.tokens);
        let bracket = self.tokens[..count].last()?;
        Some(self.head + end(bracket))
    }

    /// Start of the first item, including its attributes, and the item's first word.
    pub fn first_item(&self) -> Option<(usize, String)> {
        let items = &self.tokens[inner_attributes(&self.tokens)..];
        let first = items.first()?;
        Some((self.head + start(first), first.to_string()))
    }

    /// Whether a top-level token begins at a position, outside of comments, strings and braces.
    pub fn has_item_at(&self, position: usize) -> bool {
        self.tokens
            .iter()
            .any(|token| self.head + start(token) == position)
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
                let inside = Vec::from_iter(group.stream());
                let start = match inside[..inner_attributes(&inside)].last() {
                    Some(bracket) => end(bracket),
                    None => group.span_open().byte_range().end,
                };
                Some(self.head + start..self.head + group.span_close().byte_range().start)
            }
            _ => None,
        })
    }
}

/// An item at the root of a file.
struct RustItem<'t> {
    /// Contents of its outer attributes.
    attributes: Vec<&'t Group>,
    /// The item after its attributes and visibility, up to its `;` or `{…}`.
    tokens: &'t [TokenTree],
}

/// Items of a file. What follows the braces of an item up to a `;` is returned as a further item,
/// which begins with neither `use` nor `extern`.
fn items(tokens: &[TokenTree]) -> impl Iterator<Item = RustItem<'_>> {
    let mut rest = &tokens[inner_attributes(tokens)..];
    std::iter::from_fn(move || {
        let mut attributes = Vec::new();
        while let [hash, TokenTree::Group(group), after @ ..] = rest {
            if !is_punct(hash, '#') || group.delimiter() != Delimiter::Bracket {
                break;
            }
            attributes.push(group);
            rest = after;
        }
        if let [first, after @ ..] = rest
            && is_word(first, "pub")
        {
            rest = match after {
                [TokenTree::Group(group), after @ ..]
                    if group.delimiter() == Delimiter::Parenthesis =>
                {
                    after
                }
                _ => after,
            };
        }
        let is_import = rest.first().is_some_and(|first| is_word(first, "use"));
        let last = rest.iter().position(|token| match token {
            TokenTree::Group(group) => !is_import && group.delimiter() == Delimiter::Brace,
            _ => is_punct(token, ';'),
        });
        let length = last.map_or(rest.len(), |index| index + 1);
        let (tokens, after) = rest.split_at(length);
        rest = after;
        (length > 0).then_some(RustItem { attributes, tokens })
    })
}

/// Whether an attribute of an item leaves it in the crate: lint levels and documentation do, and a
/// `cfg` with the expected condition. Macros and `cfg_attr` may not.
fn is_unconditional(attribute: &Group, condition: &str) -> bool {
    const INERT: [&str; 7] = [
        "allow",
        "deny",
        "doc",
        "expect",
        "forbid",
        "macro_use",
        "warn",
    ];
    let tokens = Vec::from_iter(attribute.stream());
    match tokens.as_slice() {
        [first, TokenTree::Group(group)] if is_word(first, "cfg") => {
            group.stream().to_string() == condition
        }
        [first, ..] => INERT.iter().any(|word| is_word(first, word)),
        [] => false,
    }
}

/// Whether the tree of a `use` item, or one in its braces, begins with `name` or `::name`.
fn leads_with(tree: &[TokenTree], name: &str) -> bool {
    let tree = match tree {
        [first, second, rest @ ..] if is_punct(first, ':') && is_punct(second, ':') => rest,
        _ => tree,
    };
    match tree.first() {
        Some(TokenTree::Group(group)) => Vec::from_iter(group.stream())
            .split(|token| is_punct(token, ','))
            .any(|tree| leads_with(tree, name)),
        Some(first) => is_word(first, name),
        None => false,
    }
}

/// Whether tokens contain a word, at any depth.
fn contains_word(tokens: &[TokenTree], name: &str) -> bool {
    tokens.iter().any(|token| match token {
        TokenTree::Group(group) => contains_word(&Vec::from_iter(group.stream()), name),
        _ => is_word(token, name),
    })
}

/// Whether tokens contain `as name`, at any depth.
fn renames_to(tokens: &[TokenTree], name: &str) -> bool {
    tokens
        .windows(2)
        .any(|pair| is_word(&pair[0], "as") && is_word(&pair[1], name))
        || tokens.iter().any(|token| match token {
            TokenTree::Group(group) => renames_to(&Vec::from_iter(group.stream()), name),
            _ => false,
        })
}

/// Whether tokens use `name` as a crate, at any depth.
fn mentions(tokens: &[TokenTree], name: &str) -> bool {
    tokens.iter().enumerate().any(|(index, token)| match token {
        TokenTree::Group(group) => mentions(&Vec::from_iter(group.stream()), name),
        _ => is_word(token, name) && is_crate(&tokens[..index], &tokens[index + 1..]),
    })
}

/// Whether a name is that of a crate, by the tokens before and after it: `name::x`, `use name`,
/// `extern crate name`.
fn is_crate(before: &[TokenTree], after: &[TokenTree]) -> bool {
    // A path may have a leading `::`.
    let (previous, has_colons) = match before {
        [before @ .., first, second] if is_punct(first, ':') && is_punct(second, ':') => {
            (before.last(), true)
        }
        _ => (before.last(), false),
    };
    match previous {
        Some(token) if is_word(token, "use") => true,
        Some(TokenTree::Ident(_)) if has_colons => false,
        Some(token) if is_word(token, "crate") => true,
        _ => matches!(after, [first, second, ..] if is_punct(first, ':') && is_punct(second, ':')),
    }
}

/// Number of leading tokens that are inner attributes: `#`, `!`, `[…]`.
fn inner_attributes(tokens: &[TokenTree]) -> usize {
    let attributes = tokens.chunks_exact(3).take_while(|tokens| {
        is_punct(&tokens[0], '#')
            && is_punct(&tokens[1], '!')
            && matches!(&tokens[2], TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket)
    });
    3 * attributes.count()
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
