//! Functions, variables and aliases of a module in textual form.

use super::lexer::{Lexer, Token};
use super::reason::{Result, Unsplit};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Function,
    Variable,
    /// An alias, or an indirect function.
    Alias,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Linkage {
    /// `private` or `internal`.
    Private,
    Internal,
    AvailableExternally,
    /// Linkages of the one-definition rule: `linkonce_odr`, `weak_odr`.
    Odr,
    /// `llvm.used` and the like.
    Appending,
    /// Any other.
    External,
}

impl Linkage {
    fn of(word: &str) -> Option<Self> {
        Some(match word {
            "private" => Self::Private,
            "internal" => Self::Internal,
            "available_externally" => Self::AvailableExternally,
            "linkonce_odr" | "weak_odr" => Self::Odr,
            "appending" => Self::Appending,
            "external" | "extern_weak" | "linkonce" | "weak" | "common" => Self::External,
            _ => return None,
        })
    }

    pub fn is_local(self) -> bool {
        matches!(self, Self::Private | Self::Internal)
    }
}

/// A definition or declaration.
#[derive(Debug)]
pub struct Global<'t> {
    /// Name with `@`, and its quotes if it has some.
    pub name: &'t str,
    pub text: &'t str,
    pub kind: Kind,
    pub linkage: Linkage,
    pub is_definition: bool,
    /// Whether each module that needs it may have a copy.
    pub may_be_copied: bool,
    pub comdat: Option<&'t str>,
    /// Name of its section, in quotes.
    pub section: Option<&'t str>,
    /// Metadata whose kind ties the definition to that of another.
    pub associated: Option<u32>,
    /// Declaration for other modules.
    pub declaration: String,
}

/// Maximum length of the text of a constant that is copied.
const MAX_COPIED: usize = 4096;

const MALFORMED: Unsplit = Unsplit("a form of definitions that is not supported");

impl<'t> Global<'t> {
    /// Whether its name is a number, or does not reach object files.
    pub fn is_anonymous(&self) -> bool {
        self.name[1..].starts_with(|c: char| c.is_ascii_digit())
            || self.may_be_copied && self.linkage == Linkage::Private
    }

    /// Whether code finds it by its section: start-up code, or code with the linker's `__start_` and `__stop_` symbols.
    pub fn is_found_by_section(&self) -> bool {
        const ORDINARY: [&str; 8] = [
            ".text", ".rodata", ".data", ".bss", ".tdata", ".tbss", ".ldata", ".lrodata",
        ];
        self.section.is_some_and(|section| {
            let name = section.trim_matches('"');
            !ORDINARY.iter().any(|prefix| name.starts_with(prefix))
        })
    }

    /// A variable, alias or indirect function: `@name = …`.
    pub fn variable(text: &'t str) -> Result<Self> {
        let mut lexer = Lexer::new(text);
        let Some(Token::Global(name)) = lexer.next().map(|spanned| spanned.token) else {
            return Err(MALFORMED);
        };
        if !lexer.accept_token(Token::Sign(b'=')) {
            return Err(MALFORMED);
        }
        let (mut linkage, mut is_declaration) = (Linkage::External, false);
        let (mut words, mut is_unnamed_addr) = (String::new(), false);
        loop {
            let spanned = lexer.next().ok_or(MALFORMED)?;
            let Token::Word(word) = spanned.token else {
                return Err(MALFORMED);
            };
            is_declaration |= matches!(word, "external" | "extern_weak");
            is_unnamed_addr |= word == "unnamed_addr";
            match word {
                "global" | "constant" => {
                    words += word;
                    let is_constant = word == "constant";
                    let mut variable = Self {
                        name,
                        text,
                        kind: Kind::Variable,
                        linkage,
                        is_definition: !is_declaration,
                        may_be_copied: is_constant && is_unnamed_addr && linkage.is_local(),
                        comdat: None,
                        section: None,
                        associated: None,
                        declaration: String::new(),
                    };
                    variable.read_rest(&mut lexer, &words)?;
                    return Ok(variable);
                }
                "alias" | "ifunc" => {
                    let start = lexer.offset();
                    lexer.skip_type().ok_or(MALFORMED)?;
                    let value_type = text[start..lexer.offset()].trim();
                    return Ok(Self {
                        name,
                        text,
                        kind: Kind::Alias,
                        linkage,
                        is_definition: true,
                        may_be_copied: false,
                        comdat: None,
                        section: None,
                        associated: None,
                        declaration: alias_declaration(name, &words, value_type)?,
                    });
                }
                // A definition of another module is not exported from this one.
                "dllexport" => {}
                _ => match Linkage::of(word) {
                    Some(kind) => linkage = kind,
                    None => {
                        words += word;
                        if lexer.accept_token(Token::Sign(b'(')) {
                            lexer.skip_brackets().ok_or(MALFORMED)?;
                            words += &text[spanned.end..lexer.offset()];
                        }
                        words.push(' ');
                    }
                },
            }
        }
    }

    /// Reads what follows `global` or `constant`.
    fn read_rest(&mut self, lexer: &mut Lexer<'t>, words: &str) -> Result<()> {
        let start = lexer.offset();
        lexer.skip_type().ok_or(MALFORMED)?;
        let value_type = self.text[start..lexer.offset()].trim();
        let mut align = "";
        let mut depth = 0_usize;
        while let Some(spanned) = lexer.next() {
            match spanned.token {
                Token::Sign(b'(' | b'[' | b'{' | b'<') => depth += 1,
                Token::Sign(b')' | b']' | b'}' | b'>') => depth = depth.saturating_sub(1),
                Token::Sign(b',') if depth == 0 => match lexer.peek() {
                    Some(Token::Word("align")) => {
                        let start = lexer.offset();
                        lexer.next();
                        lexer.next();
                        align = self.text[start..lexer.offset()].trim();
                    }
                    Some(Token::Word("comdat")) => self.read_comdat(lexer),
                    Some(Token::Word("!dbg")) => {}
                    Some(Token::Word("!associated")) => {
                        lexer.next();
                        if let Some(Token::Node(node)) = lexer.peek() {
                            self.associated = Some(node);
                        }
                        self.may_be_copied = false;
                    }
                    Some(Token::Word("section")) => {
                        lexer.next();
                        self.section = string(lexer);
                        self.may_be_copied = false;
                    }
                    // A partition or other metadata gives the definition a meaning.
                    _ => self.may_be_copied = false,
                },
                _ => {}
            }
        }
        self.may_be_copied &= self.comdat.is_none() && self.text.len() <= MAX_COPIED;
        self.may_be_copied |= self.linkage == Linkage::AvailableExternally;
        let comma = if align.is_empty() { "" } else { ", " };
        self.declaration = if self.is_definition {
            format!(
                "{} = external {words} {value_type}{comma}{align}",
                self.name
            )
        } else {
            self.text.to_owned()
        };
        Ok(())
    }

    fn read_comdat(&mut self, lexer: &mut Lexer<'t>) {
        lexer.next();
        self.comdat = Some("");
        if lexer.accept_token(Token::Sign(b'(')) {
            if let Some(Token::Comdat(name)) = lexer.peek() {
                self.comdat = Some(name);
            }
        }
    }

    /// A function: `define … { … }` or `declare …`.
    pub fn function(text: &'t str) -> Result<Self> {
        let mut lexer = Lexer::new(text);
        let is_definition = lexer.accept("define");
        if !is_definition && !lexer.accept("declare") {
            return Err(MALFORMED);
        }
        let (mut linkage, mut declaration) = (Linkage::External, String::from("declare"));
        let name = loop {
            let spanned = lexer.next().ok_or(MALFORMED)?;
            match spanned.token {
                Token::Global(name) => break name,
                Token::Word("dllexport") => continue,
                Token::Word(word) if Linkage::of(word).is_some() => {
                    linkage = Linkage::of(word).unwrap_or(linkage);
                    continue;
                }
                _ => {}
            }
            declaration.push(' ');
            declaration += &text[spanned.start..spanned.end];
        };
        declaration = format!("{declaration} {name}");
        if !lexer.accept_token(Token::Sign(b'(')) {
            return Err(MALFORMED);
        }
        push_parameters(&mut lexer, text, &mut declaration)?;
        let mut function = Self {
            name,
            text,
            kind: Kind::Function,
            linkage,
            is_definition,
            may_be_copied: linkage == Linkage::AvailableExternally,
            comdat: None,
            section: None,
            associated: None,
            declaration: String::new(),
        };
        while let Some(token) = lexer.peek() {
            match token {
                Token::Sign(b'{') => break,
                Token::Word("comdat") => function.read_comdat(&mut lexer),
                Token::Word("unnamed_addr" | "local_unnamed_addr") | Token::Attributes(_) => {
                    let start = lexer.offset();
                    lexer.next();
                    declaration += &text[start..lexer.offset()];
                }
                Token::Word("addrspace") => {
                    let start = lexer.offset();
                    lexer.next();
                    lexer.next();
                    lexer.skip_brackets().ok_or(MALFORMED)?;
                    declaration += &text[start..lexer.offset()];
                }
                Token::Word("section") => {
                    function.may_be_copied = false;
                    lexer.next();
                    function.section = string(&mut lexer);
                }
                _ => {
                    lexer.next();
                }
            }
        }
        function.declaration = if is_definition {
            declaration
        } else {
            text.to_owned()
        };
        Ok(function)
    }
}

/// The next token, if it is a string.
fn string<'t>(lexer: &mut Lexer<'t>) -> Option<&'t str> {
    match lexer.next()?.token {
        Token::Word(word) if word.starts_with('"') => Some(word),
        _ => None,
    }
}

/// Copies parameters without the names of their values, up to the closing bracket.
fn push_parameters(lexer: &mut Lexer<'_>, text: &str, declaration: &mut String) -> Result<()> {
    let (mut depth, mut parameter) = (0_usize, Vec::new());
    declaration.push('(');
    loop {
        let spanned = lexer.next().ok_or(MALFORMED)?;
        let is_end = depth == 0 && matches!(spanned.token, Token::Sign(b',' | b')'));
        if is_end {
            if parameter.len() > 1 && matches!(parameter.last(), Some(&(Token::Local(_), _, _))) {
                parameter.pop();
            }
            if let (Some(&(_, start, _)), Some(&(_, _, end))) =
                (parameter.first(), parameter.last())
            {
                declaration.push_str(&text[start..end]);
            }
            parameter.clear();
            declaration.push_str(&text[spanned.start..spanned.end]);
            if spanned.token == Token::Sign(b')') {
                return Ok(());
            }
            declaration.push(' ');
            continue;
        }
        match spanned.token {
            Token::Sign(b'(' | b'[' | b'{' | b'<') => depth += 1,
            Token::Sign(b')' | b']' | b'}' | b'>') => depth = depth.saturating_sub(1),
            _ => {}
        }
        parameter.push((spanned.token, spanned.start, spanned.end));
    }
}

/// Declaration of what an alias stands for.
fn alias_declaration(name: &str, words: &str, value_type: &str) -> Result<String> {
    let mut lexer = Lexer::new(value_type);
    // Only a function type has parameters behind its first type.
    let mut function_parameters = None;
    let mut depth = 0_usize;
    let mut before = None;
    while let Some(spanned) = lexer.next() {
        match spanned.token {
            Token::Sign(b'(')
                if depth == 0 && !matches!(before, Some(Token::Word("addrspace" | "target"))) =>
            {
                function_parameters = Some(spanned.start);
                lexer.skip_brackets().ok_or(MALFORMED)?;
            }
            Token::Sign(b'*') if depth == 0 => function_parameters = None,
            Token::Sign(b'(' | b'[' | b'{' | b'<') => depth += 1,
            Token::Sign(b')' | b']' | b'}' | b'>') => depth = depth.saturating_sub(1),
            _ => {}
        }
        before = Some(spanned.token);
    }
    let words = words.trim();
    Ok(match function_parameters {
        Some(start) => {
            let (result, parameters) = value_type.split_at(start);
            let (unnamed, others): (Vec<&str>, Vec<&str>) = words
                .split_whitespace()
                .partition(|word| word.ends_with("unnamed_addr"));
            format!(
                "declare {} {result}{name}{parameters} {}",
                others.join(" "),
                unnamed.join(" ")
            )
        }
        None => format!("{name} = external {words} global {value_type}"),
    })
}
