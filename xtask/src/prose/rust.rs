//! Comments, strings and names of Rust.

use ra_ap_rustc_lexer::{DocStyle, FrontmatterAllowed, LiteralKind, TokenKind, tokenize};
use syn::visit::{self, Visit};

use super::text::{Comments, Kind, Text, line_of};

/// Keywords before the name of a type.
const TYPE_KEYWORDS: &[&str] = &["enum", "struct", "trait", "type", "union"];

/// Keys of clap's attributes whose values are help texts.
const HELP_KEYS: &[&str] = &["about", "help", "help_heading", "long_about", "long_help"];

/// Reads a source that the compiler accepts.
pub fn texts(source: &str) -> Result<Vec<Text>, syn::Error> {
    let mut comments = Comments::new(source);
    let mut others = Vec::new();
    let mut start = 0;
    // The two last tokens that are neither white space nor comments.
    let (mut before_last, mut last) = ("", "");
    for token in tokenize(source, FrontmatterAllowed::No) {
        let end = start + token.len as usize;
        let text = &source[start..end];
        match token.kind {
            TokenKind::LineComment { doc_style } => {
                let marker = match doc_style {
                    Some(DocStyle::Inner) => "//!",
                    Some(DocStyle::Outer) => "///",
                    None => "//",
                };
                comments.line(start, end, marker);
            }
            TokenKind::BlockComment { .. } => {
                comments.block(start, text.trim_start_matches("/*").trim_end_matches("*/"));
            }
            TokenKind::Literal {
                kind: LiteralKind::Str { .. } | LiteralKind::RawStr { .. },
                ..
            } => {
                let is_help = last == "=" && HELP_KEYS.contains(&before_last);
                let kind = if is_help { Kind::Comment } else { Kind::Prose };
                let text = text.trim_start_matches('r').trim_matches('#');
                others.push((kind, start, text.trim_matches('"').to_owned()));
            }
            TokenKind::Ident => {
                let is_type = TYPE_KEYWORDS.contains(&last);
                let kind = if is_type { Kind::TypeName } else { Kind::Name };
                others.push((kind, start, text.to_owned()));
            }
            _ => {}
        }
        if !matches!(
            token.kind,
            TokenKind::Whitespace | TokenKind::LineComment { .. } | TokenKind::BlockComment { .. }
        ) {
            (before_last, last) = (last, text);
        }
        start = end;
    }
    let others = others.into_iter().map(|(kind, start, text)| Text {
        kind,
        line: line_of(source, start),
        text,
    });
    let mut functions = Functions::default();
    functions.visit_file(&syn::parse_file(source)?);
    let comments = comments.into_texts().into_iter();
    Ok(comments.chain(others).chain(functions.names).collect())
}

/// Names of functions, but for those that a trait gives.
#[derive(Default)]
struct Functions {
    names: Vec<Text>,
}

impl Functions {
    fn add(&mut self, name: &syn::Ident) {
        self.names.push(Text {
            kind: Kind::FunctionName,
            line: name.span().start().line,
            text: name.to_string(),
        });
    }
}

impl<'ast> Visit<'ast> for Functions {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.add(&function.sig.ident);
        visit::visit_item_fn(self, function);
    }

    fn visit_item_impl(&mut self, block: &'ast syn::ItemImpl) {
        for item in &block.items {
            if let syn::ImplItem::Fn(function) = item
                && block.trait_.is_none()
            {
                self.add(&function.sig.ident);
            }
        }
        visit::visit_item_impl(self, block);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        self.add(&function.sig.ident);
        visit::visit_trait_item_fn(self, function);
    }
}
