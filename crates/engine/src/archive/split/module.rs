//! A module in LLVM's textual form, by its parts.

use std::collections::{HashMap, HashSet};

use super::global::{Global, Kind, Linkage};
use super::lexer::{Lexer, Token};
use super::reason::{Result, Unsplit};

/// A module whose parts borrow from its text.
#[derive(Debug, Default)]
pub struct Module<'t> {
    /// Lines with the data layout and the triple.
    pub target: Vec<&'t str>,
    pub source_filename: Option<&'t str>,
    /// Definitions of types, by the names that they begin with.
    pub types: Vec<&'t str>,
    pub type_ids: HashMap<&'t str, usize>,
    /// Number of types whose name is a number. Values of functions have such names, too.
    pub numbered_types: usize,
    /// Definitions of COMDATs.
    pub comdats: HashMap<&'t str, &'t str>,
    /// Functions, variables and aliases, without `special`.
    pub globals: Vec<Global<'t>>,
    pub global_ids: HashMap<&'t str, usize>,
    /// `llvm.used`, `llvm.global_ctors` and the like.
    pub special: Vec<Special<'t>>,
    /// Attributes of each group, in braces.
    pub attributes: HashMap<u32, &'t str>,
    /// Named metadata, each node once.
    pub named: Vec<(&'t str, Vec<u32>)>,
    pub nodes: HashMap<u32, &'t str>,
}

/// A variable whose elements linkers append to those of other modules.
#[derive(Debug)]
pub struct Special<'t> {
    pub name: &'t str,
    /// Type of an element.
    pub element: &'t str,
    pub elements: Vec<&'t str>,
    /// Positions of the functions and variables of each element.
    pub globals: Vec<Vec<usize>>,
    /// Text after the last element: the section.
    pub rest: &'t str,
}

impl Special<'_> {
    /// Whether its elements run, whoever needs the module.
    pub fn is_run(&self) -> bool {
        matches!(self.name, "@llvm.global_ctors" | "@llvm.global_dtors")
    }
}

const UNKNOWN_LINE: Unsplit = Unsplit("a line of its text is not supported");

impl<'t> Module<'t> {
    /// Finds the parts of a text.
    pub fn parse(text: &'t str) -> Result<Self> {
        let mut module = Self::default();
        let mut rest = text;
        while !rest.is_empty() {
            let end = if rest.starts_with("define ") {
                // Only the end of a function is a brace on a line of its own: strings have no line feeds.
                rest.find("\n}").map(|position| position + 2)
            } else {
                rest.find('\n')
            };
            let (part, after) = rest.split_at(end.unwrap_or(rest.len()));
            rest = after.strip_prefix('\n').unwrap_or(after);
            module.add(part)?;
        }
        module.name_conventions_of_aliases();
        for special in &mut module.special {
            let ids = &module.global_ids;
            let of_element = |element: &&str| {
                names_in(element)
                    .filter_map(|name| ids.get(name).copied())
                    .collect()
            };
            special.globals = special.elements.iter().map(of_element).collect();
        }
        Ok(module)
    }

    fn add(&mut self, part: &'t str) -> Result<()> {
        match part.as_bytes() {
            [] | [b';', ..] => {}
            [b'@', ..] => self.add_variable(part)?,
            [b'%', ..] => {
                let (name, _) = part.split_once(" = type ").ok_or(UNKNOWN_LINE)?;
                self.numbered_types += usize::from(is_number(&name[1..]));
                self.type_ids.insert(name, self.types.len());
                self.types.push(part);
            }
            [b'$', ..] => {
                let (name, _) = part.split_once(" = comdat ").ok_or(UNKNOWN_LINE)?;
                self.comdats.insert(name, part);
            }
            [b'!', ..] => self.add_metadata(part)?,
            _ if part.starts_with("define ") || part.starts_with("declare ") => {
                self.add_global(Global::function(part)?);
            }
            _ if part.starts_with("target ") => self.target.push(part),
            _ if part.starts_with("source_filename ") => self.source_filename = Some(part),
            _ if part.starts_with("attributes #") => {
                let (head, group) = part.split_once(" = ").ok_or(UNKNOWN_LINE)?;
                let number = head["attributes #".len()..].parse();
                self.attributes
                    .insert(number.map_err(|_| UNKNOWN_LINE)?, group);
            }
            _ if part.starts_with("module asm ") => {
                return Err(Unsplit("inline assembly outside functions"));
            }
            [b'^', ..] => return Err(Unsplit("a summary for link-time optimization")),
            _ => return Err(UNKNOWN_LINE),
        }
        Ok(())
    }

    fn add_variable(&mut self, part: &'t str) -> Result<()> {
        let variable = Global::variable(part)?;
        if variable.linkage == Linkage::Appending {
            self.special.push(special(part, variable.name)?);
        } else {
            self.add_global(variable);
        }
        Ok(())
    }

    fn add_global(&mut self, global: Global<'t>) {
        self.global_ids.insert(global.name, self.globals.len());
        self.globals.push(global);
    }

    fn add_metadata(&mut self, part: &'t str) -> Result<()> {
        let (name, node) = part.split_once(" = ").ok_or(UNKNOWN_LINE)?;
        if let Ok(number) = name[1..].parse() {
            self.nodes.insert(number, node);
            return Ok(());
        }
        let (mut operands, mut known) = (Vec::new(), HashSet::new());
        for spanned in Lexer::new(node) {
            match spanned.token {
                Token::Node(number) if known.insert(number) => operands.push(number),
                Token::Node(_) | Token::Sign(b'!' | b'{' | b',' | b'}') => {}
                _ => return Err(Unsplit("named metadata without numbers")),
            }
        }
        self.named.push((name, operands));
        Ok(())
    }

    /// Gives declarations of aliases the calling conventions and attributes of their functions.
    fn name_conventions_of_aliases(&mut self) {
        let mut declarations = Vec::new();
        for (index, alias) in self.globals.iter().enumerate() {
            if alias.kind != Kind::Alias || !alias.declaration.starts_with("declare ") {
                continue;
            }
            let mut names = names_in(alias.text);
            let target = names.nth(1).and_then(|name| self.global_ids.get(name));
            let Some(function) = target.map(|index| &self.globals[*index]) else {
                continue;
            };
            if function.kind == Kind::Function {
                let is_linking = |word: &&str| {
                    matches!(*word, "dso_local" | "hidden" | "protected" | "dllimport")
                };
                let words = alias
                    .text
                    .split_whitespace()
                    .take_while(|word| *word != "alias");
                let words = Vec::from_iter(words.filter(is_linking));
                let declaration = function.declaration.replacen(function.name, alias.name, 1);
                let rest = declaration.trim_start_matches("declare");
                let rest = Vec::from_iter(rest.split(' ').filter(|word| !is_linking(word)));
                declarations.push((
                    index,
                    format!("declare {}{}", words.join(" "), rest.join(" ")),
                ));
            }
        }
        for (index, declaration) in declarations {
            self.globals[index].declaration = declaration;
        }
    }

    /// The function, variable or alias of a name.
    pub fn global(&self, name: &str) -> Option<usize> {
        self.global_ids.get(name).copied()
    }
}

/// Names of functions, variables and aliases in a text.
fn names_in(text: &str) -> impl Iterator<Item = &str> {
    Lexer::new(text).filter_map(|spanned| match spanned.token {
        Token::Global(name) => Some(name),
        _ => None,
    })
}

/// Whether a name is a number.
pub fn is_number(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit())
}

/// The elements of a variable: `@name = appending global [2 x ptr] [ptr @a, ptr @b], section "…"`.
fn special<'t>(part: &'t str, name: &'t str) -> Result<Special<'t>> {
    const FORM: Unsplit =
        Unsplit("a list of functions or variables in a form that is not supported");
    let mut lexer = Lexer::new(part);
    while !lexer.accept("global") {
        lexer.next().ok_or(FORM)?;
    }
    for expected in [Token::Sign(b'[')] {
        if !lexer.accept_token(expected) {
            return Err(FORM);
        }
    }
    let count = lexer.next().ok_or(FORM)?;
    if !lexer.accept("x") {
        return Err(FORM);
    }
    let start = lexer.offset();
    lexer.skip_type().ok_or(FORM)?;
    let element = part[start..lexer.offset()].trim();
    if !lexer.accept_token(Token::Sign(b']')) {
        return Err(FORM);
    }
    let mut elements = Vec::new();
    if lexer.accept_token(Token::Sign(b'[')) {
        let (mut depth, mut start) = (0_usize, lexer.offset());
        loop {
            let spanned = lexer.next().ok_or(FORM)?;
            match spanned.token {
                Token::Sign(b',' | b']') if depth == 0 => {
                    elements.push(part[start..spanned.start].trim());
                    start = spanned.end;
                    if spanned.token == Token::Sign(b']') {
                        break;
                    }
                }
                Token::Sign(b'(' | b'[' | b'{' | b'<') => depth += 1,
                Token::Sign(b')' | b']' | b'}' | b'>') => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
    } else if !lexer.accept("zeroinitializer") || part[count.start..count.end] != *"0" {
        return Err(FORM);
    }
    Ok(Special {
        name,
        element,
        elements,
        globals: Vec::new(),
        rest: &part[lexer.offset()..],
    })
}
