//! String literals of a source file that reach diagnostics.

use std::collections::BTreeMap;

use syn::visit::{self, Visit};
use syn::{Expr, ExprClosure, File, ItemConst, ItemStatic, Lit, Local, Macro, Pat};

/// Ids of codes by the names of their statics.
pub type Codes = BTreeMap<String, String>;

/// A text of a diagnostic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    pub part: Part,
    /// The literal, on one line.
    pub text: String,
}

/// Part of a diagnostic that contains a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Message,
    Help,
    Label,
}

impl Part {
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Message => "",
            Self::Help => "  help: ",
            Self::Label => "  label: ",
        }
    }
}

/// Adds the codes and rules that a file defines.
pub fn codes(file: &File, codes: &mut Codes) {
    struct Finder<'c>(&'c mut Codes);
    impl<'ast> Visit<'ast> for Finder<'_> {
        fn visit_item_static(&mut self, item: &'ast ItemStatic) {
            if let Some(id) = field_id(&item.expr) {
                self.0.insert(item.ident.to_string(), id);
            }
        }

        // `codes! { NAME "id": "summary", "explanation"; … }`
        fn visit_macro(&mut self, item: &'ast Macro) {
            if !item.path.is_ident("codes") {
                return;
            }
            let mut name = None;
            for token in item.tokens.clone() {
                let text = token.to_string();
                if text.chars().all(|c| c.is_ascii_uppercase() || c == '_') {
                    name = Some(text);
                } else if let (Some(found), Some(id)) = (&name, text.strip_prefix('"')) {
                    self.0
                        .insert(found.clone(), id.trim_end_matches('"').into());
                    name = None;
                }
            }
        }
    }
    Finder(codes).visit_file(file);
}

/// The literal of the field `id` in an expression.
fn field_id(expr: &Expr) -> Option<String> {
    struct Finder(Option<String>);
    impl<'ast> Visit<'ast> for Finder {
        fn visit_field_value(&mut self, field: &'ast syn::FieldValue) {
            let is_id = matches!(&field.member, syn::Member::Named(name) if name == "id");
            match &field.expr {
                Expr::Lit(lit) if is_id => {
                    if let Lit::Str(text) = &lit.lit {
                        self.0.get_or_insert(text.value());
                    }
                }
                _ => visit::visit_field_value(self, field),
            }
        }
    }
    let mut finder = Finder(None);
    finder.visit_expr(expr);
    finder.0
}

/// Codes with the texts that a file emits under them.
pub fn texts(file: &File, codes: &Codes) -> Vec<(String, Text)> {
    let mut scanner = Scanner {
        codes,
        locals: Vec::new(),
        found: Vec::new(),
    };
    // Constants first: they are used above their definitions.
    for item in &file.items {
        if let syn::Item::Const(item) = item {
            scanner.add_const(item);
        }
    }
    scanner.visit_file(file);
    scanner.found
}

struct Scanner<'c, 'ast> {
    codes: &'c Codes,
    /// Names in scope with the expressions that they are bound to, the latest last.
    locals: Vec<(String, &'ast Expr)>,
    found: Vec<(String, Text)>,
}

impl<'ast> Scanner<'_, 'ast> {
    fn add_const(&mut self, item: &'ast ItemConst) {
        self.locals.push((item.ident.to_string(), &item.expr));
    }

    fn local(&self, name: &str) -> Option<&'ast Expr> {
        let found = self.locals.iter().rev().find(|(local, _)| local == name);
        found.map(|(_, expr)| *expr)
    }

    /// The code that an argument names.
    fn code(&self, argument: &Expr) -> Option<String> {
        let Expr::Reference(reference) = argument else {
            let Expr::Path(path) = argument else {
                return None;
            };
            let mut segments = path.path.segments.iter().rev();
            let (last, kind) = (segments.next()?, segments.next()?);
            let code = match (
                kind.ident.to_string().as_str(),
                last.ident.to_string().as_str(),
            ) {
                ("FlawKind", "Archive") => "malformed-archive",
                ("FlawKind", "Path") => "unsafe-path",
                ("FlawKind", "Unreadable") => "io-error",
                ("FlawKind", "Skipped") => "(skipped files)",
                _ => return None,
            };
            return Some(code.into());
        };
        let mut expr = &*reference.expr;
        if let Expr::Field(field) = expr {
            expr = &field.base;
        }
        let Expr::Path(path) = expr else { return None };
        let name = path.path.segments.last()?.ident.to_string();
        self.codes.get(&name).cloned()
    }

    /// The code under which a call reports: one of its arguments, that of the call it is chained
    /// to, or that of the closure that it calls.
    fn code_of_call(&self, expr: &Expr, depth: u32) -> Option<String> {
        if depth > 8 {
            return None;
        }
        let of = |arguments: &syn::punctuated::Punctuated<Expr, syn::Token![,]>| {
            arguments.iter().find_map(|argument| self.code(argument))
        };
        match expr {
            Expr::Call(call) => of(&call.args).or_else(|| self.code_of_call(&call.func, depth + 1)),
            Expr::MethodCall(call) => {
                of(&call.args).or_else(|| self.code_of_call(&call.receiver, depth + 1))
            }
            Expr::Path(path) => {
                let name = path.path.get_ident()?.to_string();
                match self.local(&name)? {
                    Expr::Closure(closure) => self.code_of_closure(closure),
                    bound => self.code_of_call(bound, depth + 1),
                }
            }
            Expr::Try(inner) => self.code_of_call(&inner.expr, depth + 1),
            _ => None,
        }
    }

    fn code_of_closure(&self, closure: &ExprClosure) -> Option<String> {
        struct Finder<'s, 'c, 'a>(&'s Scanner<'c, 'a>, Option<String>);
        impl<'ast> Visit<'ast> for Finder<'_, '_, '_> {
            fn visit_expr(&mut self, expr: &'ast Expr) {
                self.1 = self.1.take().or_else(|| self.0.code(expr));
                visit::visit_expr(self, expr);
            }
        }
        let mut finder = Finder(self, None);
        finder.visit_expr(&closure.body);
        finder.1
    }

    /// Adds the texts of an argument.
    fn add(&mut self, code: &str, part: Part, argument: &Expr) {
        let mut literals = Literals {
            locals: &self.locals,
            found: Vec::new(),
            depth: 0,
        };
        literals.visit_expr(argument);
        for text in literals.found {
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            if text.contains(' ') {
                self.found.push((code.to_owned(), Text { part, text }));
            }
        }
    }

    fn add_call<'a>(&mut self, code: &str, arguments: impl Iterator<Item = &'a Expr>) {
        let mut part = Part::Message;
        for argument in arguments {
            if self.code(argument).is_some() {
                continue;
            }
            let before = self.found.len();
            self.add(code, part, argument);
            // The text after a message is its help.
            if self.found.len() > before {
                part = Part::Help;
            }
        }
    }
}

impl<'ast> Visit<'ast> for Scanner<'_, 'ast> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if item.ident != "tests" {
            visit::visit_item_mod(self, item);
        }
    }

    // The scope of local variables. Nested functions, which are rare, also see the outer ones.
    fn visit_block(&mut self, block: &'ast syn::Block) {
        let outer = self.locals.len();
        visit::visit_block(self, block);
        self.locals.truncate(outer);
    }

    fn visit_local(&mut self, local: &'ast Local) {
        visit::visit_local(self, local);
        let pat = match &local.pat {
            Pat::Type(typed) => &*typed.pat,
            pat => pat,
        };
        if let (Pat::Ident(name), Some(init)) = (pat, &local.init) {
            self.locals.push((name.ident.to_string(), &init.expr));
        }
    }

    // Inner calls first: a message comes before the help that is chained to it.
    fn visit_expr(&mut self, expr: &'ast Expr) {
        visit::visit_expr(self, expr);
        match expr {
            Expr::Call(call) => {
                let own = call.args.iter().find_map(|argument| self.code(argument));
                let closure = || match &*call.func {
                    Expr::Path(path) => match self.local(&path.path.get_ident()?.to_string())? {
                        Expr::Closure(closure) => self.code_of_closure(closure),
                        _ => None,
                    },
                    _ => None,
                };
                if let Some(code) = own.or_else(closure) {
                    self.add_call(&code, call.args.iter());
                }
            }
            Expr::MethodCall(call) => {
                let own = call.args.iter().find_map(|argument| self.code(argument));
                if let Some(code) = own {
                    self.add_call(&code, call.args.iter());
                } else if call.method == "help" || call.method == "label" {
                    let part = if call.method == "help" {
                        Part::Help
                    } else {
                        Part::Label
                    };
                    let code = self.code_of_call(&call.receiver, 0);
                    if let (Some(code), Some(argument)) = (code, call.args.first()) {
                        self.add(&code, part, argument);
                    }
                }
            }
            _ => {}
        }
    }
}

/// String literals of an expression, and of the variables in it.
struct Literals<'s, 'ast> {
    locals: &'s [(String, &'ast Expr)],
    found: Vec<String>,
    depth: u32,
}

impl<'x> Visit<'x> for Literals<'_, '_> {
    fn visit_lit_str(&mut self, literal: &'x syn::LitStr) {
        self.found.push(literal.value());
    }

    // The first literal of `format!` and similar macros is the text.
    fn visit_macro(&mut self, item: &'x Macro) {
        for token in item.tokens.clone() {
            let proc_macro2::TokenTree::Literal(literal) = token else {
                continue;
            };
            if let Ok(text) = syn::parse_str::<syn::LitStr>(&literal.to_string()) {
                self.found.push(text.value());
                return;
            }
        }
    }

    fn visit_expr_path(&mut self, path: &'x syn::ExprPath) {
        let Some(name) = path.path.get_ident() else {
            return;
        };
        let at = self.locals.iter().rposition(|(local, _)| name == local);
        let Some(at) = at.filter(|_| self.depth < 4) else {
            return;
        };
        let mut inner = Literals {
            locals: &self.locals[..at],
            found: Vec::new(),
            depth: self.depth + 1,
        };
        inner.visit_expr(self.locals[at].1);
        self.found.append(&mut inner.found);
    }

    // Only results of these are texts.
    fn visit_expr_method_call(&mut self, call: &'x syn::ExprMethodCall) {
        let keeps = [
            "into",
            "to_owned",
            "to_string",
            "clone",
            "map_or",
            "map_or_else",
        ];
        if keeps.iter().any(|name| call.method == name) {
            visit::visit_expr_method_call(self, call);
        }
    }

    fn visit_expr_call(&mut self, _: &'x syn::ExprCall) {}
}
