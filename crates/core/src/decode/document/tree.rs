//! The tree of a text, and the rules about tables that are defined twice.

use std::borrow::Cow;
use std::ops::Range;

use crate::by_name::search;

/// Maximum depth of nested values, each part of a dotted key counted, and of the parts of a header:
/// neither reading nor dropping a tree may exhaust the stack, whatever the text.
pub(super) const MAX_DEPTH: usize = 80;

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
    pub message: &'static str,
    pub span: Range<usize>,
}

pub(super) fn syntax_error<T>(message: &'static str, span: Range<usize>) -> ParseResult<T> {
    Err(SyntaxError { message, span })
}

pub(super) type ParseResult<T> = Result<T, SyntaxError>;

impl<'t> Entries<'t> {
    /// A table between braces, still empty.
    pub(super) fn inline() -> Self {
        Self {
            inline: true,
            ..Self::default()
        }
    }

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

/// "Table" and "Array of Tables": adds a header. Returns its table, a new one or one that other headers have
/// mentioned.
pub(super) fn add_header<'a, 't>(
    root: &'a mut Entries<'t>,
    path: Vec<Key<'t>>,
    key: Key<'t>,
    span: Range<usize>,
    is_array: bool,
) -> ParseResult<&'a mut Entries<'t>> {
    let parent = descend(root, path, false)?;
    let index = match parent.find(&key.text) {
        Ok(index) => index,
        Err(index) => {
            let data = if is_array {
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
        Data::Tables(tables) if is_array => {
            let data = Data::Table(Entries::default());
            tables.push(Node { span, data });
            if let Some(Data::Table(table)) = tables.last_mut().map(|node| &mut node.data) {
                return Ok(table);
            }
        }
        Data::Table(table) if !is_array && table.implicit && !table.dotted => {
            *entry_key = key;
            node.span = span;
            table.implicit = false;
            return Ok(table);
        }
        _ => {}
    }
    syntax_error("duplicate key", key.span)
}

/// "Key/Value Pair": adds a value.
pub(super) fn add_value<'t>(
    table: &mut Entries<'t>,
    path: Vec<Key<'t>>,
    key: Key<'t>,
    value: Node<'t>,
) -> ParseResult<()> {
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
