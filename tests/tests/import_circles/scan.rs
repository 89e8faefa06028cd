//! Reader of one source file: its modules, imports, items and paths.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};

/// A path as written: `crate::a::b`, `super::c`, `child::d`.
pub type Path = Vec<String>;

/// A module declared by `mod name;`.
#[derive(Debug)]
pub struct Declaration {
    pub name: String,
    /// The value of `#[path = "…"]`.
    pub path: Option<String>,
}

/// Contents of a module, without what is compiled for its unit tests only.
#[derive(Debug, Default)]
pub struct Contents {
    pub declarations: Vec<Declaration>,
    /// Modules with their contents in the same file.
    pub inline: Vec<(String, Contents)>,
    /// Imports by the name that they bind.
    pub imports: BTreeMap<String, Path>,
    /// Paths before `::*`.
    pub globs: Vec<Path>,
    /// Names of the items that the module defines.
    pub items: BTreeSet<String>,
    /// Names of `macro_rules!`.
    pub macros: BTreeSet<String>,
    /// Paths of two and more segments outside of imports.
    pub paths: BTreeSet<Path>,
    /// All identifiers outside of imports.
    pub identifiers: BTreeSet<String>,
}

/// Reads the tokens of a module.
pub fn read(tokens: TokenStream) -> Contents {
    let mut contents = Contents::default();
    read_into(&mut contents, tokens, true);
    contents
}

const ITEMS: [&str; 8] = [
    "fn", "struct", "enum", "union", "trait", "type", "const", "static",
];

/// Reads tokens of a module (`top`), or of a group inside it.
fn read_into(contents: &mut Contents, tokens: TokenStream, top: bool) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    let mut path_attribute = None;
    while at < tokens.len() {
        if let Some(attribute) = attribute(&tokens[at..]) {
            if is_for_tests(attribute) {
                at = end_of_item(&tokens, at);
                continue;
            }
            path_attribute = path_of(attribute).or(path_attribute);
            read_into(contents, attribute.stream(), false);
            at += 2;
            continue;
        }
        match &tokens[at] {
            TokenTree::Ident(word) if *word == "pub" => {}
            TokenTree::Ident(word) if *word == "use" => {
                let end = position(&tokens, at, ';');
                let mut prefix = Vec::new();
                import(contents, &tokens[at + 1..end], &mut prefix);
                at = end;
            }
            TokenTree::Ident(word) if *word == "mod" && top => {
                let name = tokens.get(at + 1).map(ToString::to_string);
                let name = name.unwrap_or_default();
                match tokens.get(at + 2) {
                    Some(TokenTree::Group(body)) => {
                        contents.inline.push((name, read(body.stream())));
                    }
                    _ => contents.declarations.push(Declaration {
                        name,
                        path: path_attribute.take(),
                    }),
                }
                at += 2;
            }
            TokenTree::Ident(word) => {
                let is_item = top && ITEMS.iter().any(|item| word == item);
                if let Some(TokenTree::Ident(name)) = tokens.get(at + 1).filter(|_| is_item) {
                    contents.items.insert(name.to_string());
                }
                if *word == "macro_rules" {
                    let name = tokens.get(at + 2).map(ToString::to_string);
                    contents.macros.extend(name);
                }
                at = path(contents, &tokens, at, word);
            }
            TokenTree::Group(group) => read_into(contents, group.stream(), false),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
        at += 1;
    }
}

/// Records the path that begins at `at`; returns the position of its last token.
fn path(contents: &mut Contents, tokens: &[TokenTree], at: usize, first: &Ident) -> usize {
    contents.identifiers.insert(first.to_string());
    let mut path = vec![first.to_string()];
    let mut last = at;
    while let [colon, second, TokenTree::Ident(next), ..] = &tokens[last + 1..] {
        if !is_sign(colon, ':') || !is_sign(second, ':') {
            break;
        }
        contents.identifiers.insert(next.to_string());
        path.push(next.to_string());
        last += 3;
    }
    let is_continued = at > 0 && (is_sign(&tokens[at - 1], '.') || is_sign(&tokens[at - 1], ':'));
    // `name: crate::Type` continues nothing, `::name` does.
    let is_continued = is_continued
        && (is_sign(&tokens[at - 1], '.') || (at > 1 && is_sign(&tokens[at - 2], ':')));
    let is_macro = tokens
        .get(last + 1)
        .is_some_and(|token| is_sign(token, '!'));
    if !is_continued && (path.len() > 1 || is_macro) {
        contents.paths.insert(path);
    }
    last
}

/// Records a tree of imports.
fn import(contents: &mut Contents, tokens: &[TokenTree], prefix: &mut Path) {
    let length = prefix.len();
    let mut at = 0;
    while at < tokens.len() {
        match &tokens[at] {
            TokenTree::Group(group) => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                for part in inner.split(|token| is_sign(token, ',')) {
                    import(contents, part, prefix);
                }
                prefix.truncate(length);
                return;
            }
            TokenTree::Punct(sign) if sign.as_char() == '*' => {
                contents.globs.push(prefix.clone());
                prefix.truncate(length);
                return;
            }
            TokenTree::Ident(word) if *word == "as" => break,
            TokenTree::Ident(word) => prefix.push(word.to_string()),
            _ => {}
        }
        at += 1;
    }
    if prefix.len() > 1 && prefix.last().is_some_and(|last| last == "self") {
        prefix.pop();
    }
    let name = match tokens.get(at + 1) {
        Some(alias) => alias.to_string(),
        None => prefix.last().cloned().unwrap_or_default(),
    };
    if prefix.len() > 1 || name != prefix.concat() {
        let path = prefix.clone();
        // `use x::y as _` binds nothing, and several may.
        let name = if name == "_" { path.join("::") } else { name };
        contents.imports.insert(name, path);
    }
    prefix.truncate(length);
}

fn attribute(tokens: &[TokenTree]) -> Option<&Group> {
    match tokens {
        [sign, TokenTree::Group(group), ..] if is_sign(sign, '#') => Some(group),
        _ => None,
    }
}

/// `#[cfg(test)]`, also inside `all(…)`.
fn is_for_tests(attribute: &Group) -> bool {
    let text = attribute.stream().to_string().replace(' ', "");
    text == "cfg(test)" || text.starts_with("cfg(all(test,") || text == "test"
}

fn path_of(attribute: &Group) -> Option<String> {
    let text = attribute.stream().to_string();
    let value = text.strip_prefix("path = \"")?.strip_suffix('"')?;
    Some(value.to_owned())
}

/// The position behind the item, or expression, that begins at `at` with attributes.
fn end_of_item(tokens: &[TokenTree], mut at: usize) -> usize {
    while attribute(&tokens[at..]).is_some() {
        at += 2;
    }
    while let Some(token) = tokens.get(at) {
        at += 1;
        let is_body =
            matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace);
        if is_body || is_sign(token, ';') || is_sign(token, ',') {
            break;
        }
    }
    at
}

fn position(tokens: &[TokenTree], from: usize, sign: char) -> usize {
    let found = tokens[from..].iter().position(|token| is_sign(token, sign));
    found.map_or(tokens.len(), |found| from + found)
}

fn is_sign(token: &TokenTree, sign: char) -> bool {
    matches!(token, TokenTree::Punct(found) if found.as_char() == sign)
}
