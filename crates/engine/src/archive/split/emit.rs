//! Texts of members.

mod metadata;

use std::collections::{HashMap, HashSet};
use std::fmt::Write;

use super::global::Kind;
use super::lexer::{Lexer, Token};
use super::module::{Module, Special, is_number};
use super::reason::{Options, Result, Unsplit};
use super::references::{Index, References};

/// A parsed module, and what its members need to know about it.
#[derive(Debug)]
pub struct Source<'t> {
    pub module: Module<'t>,
    pub index: Index,
    /// Attributes of each group as they are written; `None`: none is left.
    pub attributes: HashMap<u32, Option<String>>,
    /// Symbol by which each member refers to that with the constructors.
    pub marker: Option<String>,
    /// Nodes that describe variables of the module.
    pub described: HashSet<u32>,
    /// Definitions that members without them refer to.
    pub shared: HashSet<usize>,
}

/// Text of the member with these definitions of a module.
pub fn member(
    source: &Source<'_>,
    definitions: &[usize],
    constructors: Constructors,
    options: Options,
) -> Result<String> {
    let mut member = Member::new(source, definitions);
    member.close()?;
    member.write(definitions, constructors, options)?;
    Ok(member.out)
}

/// Place of the module's constructors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Constructors {
    /// In this member, which is the only one.
    Whole,
    Here,
    Elsewhere,
}

struct Member<'s, 't> {
    source: &'s Source<'t>,
    /// Definitions, with copies, and declarations.
    items: Vec<usize>,
    declared: Vec<usize>,
    known: HashSet<usize>,
    /// Elements of lists of functions and variables.
    special: Vec<(&'s Special<'t>, Vec<&'t str>)>,
    /// Named metadata.
    named: Vec<(&'t str, Vec<u32>)>,
    types: Vec<usize>,
    known_types: HashSet<usize>,
    nodes: HashSet<u32>,
    has_numbered_types: bool,
    /// Numbers of definitions without a name, of groups of attributes and of nodes.
    anonymous: HashMap<usize, usize>,
    groups: Vec<&'s str>,
    group_numbers: HashMap<&'s str, usize>,
    queue: Vec<u32>,
    node_numbers: HashMap<u32, usize>,
    node_count: usize,
    out: String,
}

impl<'s, 't> Member<'s, 't> {
    fn new(source: &'s Source<'t>, definitions: &[usize]) -> Self {
        Self {
            source,
            items: definitions.to_vec(),
            declared: Vec::new(),
            known: definitions.iter().copied().collect(),
            special: Vec::new(),
            named: Vec::new(),
            types: Vec::new(),
            known_types: HashSet::new(),
            nodes: HashSet::new(),
            has_numbered_types: false,
            anonymous: HashMap::new(),
            groups: Vec::new(),
            group_numbers: HashMap::new(),
            queue: Vec::new(),
            node_numbers: HashMap::new(),
            node_count: 0,
            out: String::new(),
        }
    }

    /// Finds what the definitions refer to.
    fn close(&mut self) -> Result<()> {
        let Source { module, index, .. } = self.source;
        let definitions = self.known.clone();
        for special in &module.special {
            let mut elements = Vec::new();
            for (element, globals) in special.elements.iter().zip(&special.globals) {
                if globals.iter().any(|id| definitions.contains(id)) {
                    elements.push(*element);
                    for &id in globals {
                        self.visit_global(id);
                    }
                }
            }
            if !elements.is_empty() {
                self.special.push((special, elements));
            }
        }
        for (name, operands) in module
            .named
            .iter()
            .filter(|(name, _)| *name != "!llvm.dbg.cu")
        {
            let mut kept = Vec::new();
            for &node in operands {
                let globals = index.nodes.get(&node).map_or(&[][..], |node| &node.globals);
                let mut defined = globals
                    .iter()
                    .filter(|id| module.globals[**id].is_definition)
                    .peekable();
                if defined.peek().is_none() || defined.any(|id| definitions.contains(id)) {
                    kept.push(node);
                    self.visit_nodes(&[node]);
                }
            }
            self.named.push((name, kept));
        }
        let mut position = 0;
        while position < self.items.len() {
            self.visit(&index.definitions[self.items[position]]);
            position += 1;
        }
        let locals = self.declared.iter().map(|id| &module.globals[*id]);
        if locals
            .clone()
            .any(|global| global.linkage.is_local() || is_number(&global.name[1..]))
        {
            return Err(Unsplit(
                "a reference to a local definition in a form that is not supported",
            ));
        }
        // Blocks have an address before their function has its text.
        self.items
            .sort_by_key(|id| module.globals[*id].kind == Kind::Function);
        let items = self
            .items
            .iter()
            .filter(|id| module.globals[**id].is_anonymous());
        self.anonymous = items
            .enumerate()
            .map(|(number, id)| (*id, number))
            .collect();
        Ok(())
    }

    fn visit(&mut self, references: &'s References) {
        self.has_numbered_types |= references.has_numbered_types;
        for &id in &references.globals {
            self.visit_global(id);
        }
        self.visit_types(&references.types);
        self.visit_nodes(&references.nodes);
    }

    fn visit_global(&mut self, id: usize) {
        if !self.known.insert(id) {
            return;
        }
        let Source { module, index, .. } = self.source;
        if module.globals[id].may_be_copied {
            self.items.push(id);
        } else {
            self.declared.push(id);
            let References {
                types,
                nodes,
                has_numbered_types,
                ..
            } = &index.declarations[id];
            self.has_numbered_types |= has_numbered_types;
            self.visit_types(types);
            self.visit_nodes(nodes);
        }
    }

    fn visit_types(&mut self, types: &[usize]) {
        let mut pending = Vec::from_iter(types.iter().rev().copied());
        while let Some(id) = pending.pop() {
            if self.known_types.insert(id) {
                self.types.push(id);
                let References {
                    types,
                    has_numbered_types,
                    ..
                } = &self.source.index.types[id];
                self.has_numbered_types |= has_numbered_types;
                pending.extend(types.iter().rev());
            }
        }
    }

    fn visit_nodes(&mut self, nodes: &[u32]) {
        let mut pending = Vec::from_iter(nodes.iter().rev().copied());
        while let Some(node) = pending.pop() {
            if !self.nodes.insert(node) {
                continue;
            }
            if let Some(references) = self.source.index.nodes.get(&node) {
                pending.extend(references.nodes.iter().rev());
                self.has_numbered_types |= references.has_numbered_types;
                self.visit_types(&references.types);
                for &id in &references.globals {
                    self.visit_global(id);
                }
            }
        }
    }

    fn write(
        &mut self,
        definitions: &[usize],
        constructors: Constructors,
        options: Options,
    ) -> Result<()> {
        let Source { module, marker, .. } = self.source;
        for line in &module.target {
            self.line(line);
        }
        if let (Some(line), false) = (module.source_filename, options.canonical) {
            self.line(line);
        }
        if self.has_numbered_types {
            let numbered = module.types.iter().enumerate();
            let numbered =
                numbered.filter(|(_, text)| text[1..].starts_with(|c: char| c.is_ascii_digit()));
            for (id, _) in numbered {
                self.visit_types(&[id]);
            }
        }
        for id in self.types.clone() {
            self.line(module.types[id]);
        }
        let mut comdats = HashSet::new();
        for &id in definitions {
            let global = &module.globals[id];
            let Some(comdat) = global.comdat else {
                continue;
            };
            let name = if comdat.is_empty() {
                format!("${}", &global.name[1..])
            } else {
                comdat.to_owned()
            };
            if let (Some(text), true) =
                (module.comdats.get(&name[..]), comdats.insert(name.clone()))
            {
                self.line(text);
            }
        }
        self.write_special(marker.as_deref(), constructors);
        for id in self.items.clone() {
            let text = module.globals[id].text;
            match self
                .source
                .shared
                .contains(&id)
                .then(|| kept(text))
                .flatten()
            {
                Some((before, word, after)) => {
                    self.text(before);
                    self.out += word;
                    self.text(after);
                }
                None => self.text(text),
            }
            self.out.push('\n');
        }
        for id in self.declared.clone() {
            self.text(&module.globals[id].declaration);
            self.out.push('\n');
        }
        self.write_metadata(options);
        for (number, group) in std::mem::take(&mut self.groups).into_iter().enumerate() {
            let _ = writeln!(self.out, "attributes #{number} = {group}");
        }
        Ok(())
    }

    fn line(&mut self, line: &str) {
        self.out += line;
        self.out.push('\n');
    }

    /// Writes lists of functions and variables, and the reference to the constructors.
    fn write_special(&mut self, marker: Option<&str>, constructors: Constructors) {
        const USED: &str = "@llvm.compiler.used";
        // Releases before 17 also write pointers to types.
        let special = &self.source.module.special;
        let is_typed = special.iter().any(|special| special.element.contains('*'));
        let pointer = if is_typed { "i8*" } else { "ptr" };
        let reference = format!("@{}", marker.unwrap_or_default());
        let reference = match marker {
            Some(_) if constructors == Constructors::Whole => None,
            Some(_) if constructors == Constructors::Here => {
                self.line(&format!("{reference} = hidden constant i8 0"));
                None
            }
            Some(_) => {
                let user = reference.replacen("@", "@.", 1);
                self.line(&format!("{reference} = external hidden constant i8"));
                self.line(&format!("{user} = private constant {pointer} {reference}"));
                Some(if is_typed {
                    format!("i8* bitcast ({pointer}* {user} to i8*)")
                } else {
                    format!("ptr {user}")
                })
            }
            None => None,
        };
        let mut lists = std::mem::take(&mut self.special);
        if reference.is_some() && !lists.iter().any(|(special, _)| special.name == USED) {
            let line = format!(
                "{USED} = appending global [1 x {pointer}] [{}], section \"llvm.metadata\"",
                reference.as_deref().unwrap_or_default()
            );
            self.line(&line);
        }
        for (special, elements) in &mut lists {
            if let (Some(reference), USED) = (&reference, special.name) {
                let texts = elements.join(", ");
                let count = elements.len() + 1;
                let line = format!(
                    "{USED} = appending global [{count} x {}] [{texts}, {reference}]{}",
                    special.element, special.rest
                );
                self.text(&line);
            } else {
                let line = format!(
                    "{} = appending global [{} x {}] [{}]{}",
                    special.name,
                    elements.len(),
                    special.element,
                    elements.join(", "),
                    special.rest
                );
                self.text(&line);
            }
            self.out.push('\n');
        }
    }

    fn node_number(&mut self, node: u32) -> usize {
        if let Some(&number) = self.node_numbers.get(&node) {
            return number;
        }
        let number = self.node_count;
        self.node_count += 1;
        self.node_numbers.insert(node, number);
        self.queue.push(node);
        number
    }

    /// Writes a part of the module with the numbers of this member.
    fn text(&mut self, text: &str) {
        let mut end = 0;
        for spanned in Lexer::new(text) {
            push_gap(&mut self.out, &text[end..spanned.start]);
            end = spanned.end;
            let verbatim = &text[spanned.start..spanned.end];
            let source = self.source;
            match spanned.token {
                Token::Global(name) => match source
                    .module
                    .global(name)
                    .and_then(|id| self.anonymous.get(&id))
                {
                    Some(number) => {
                        let _ = write!(self.out, "@{number}");
                    }
                    None => self.out += verbatim,
                },
                Token::Attributes(group) => {
                    match source.attributes.get(&group).and_then(Option::as_deref) {
                        Some(attributes) => {
                            let count = self.groups.len();
                            let number = *self.group_numbers.entry(attributes).or_insert(count);
                            if number == count {
                                self.groups.push(attributes);
                            }
                            let _ = write!(self.out, "#{number}");
                        }
                        None => self.out.truncate(self.out.trim_end().len()),
                    }
                }
                Token::Node(node) => {
                    let number = self.node_number(node);
                    let _ = write!(self.out, "!{number}");
                }
                _ => self.out += verbatim,
            }
        }
    }
}

/// The text of a definition that linkers may drop, before and after its linkage, and the linkage that keeps it: where
/// llvm-link reads the member before those that refer to it, nothing does yet. LLVM's LTO changes the linkage alike
/// (`LTO::addRegularLTO`).
fn kept(text: &str) -> Option<(&str, &'static str, &str)> {
    let name_length = if text.starts_with('@') {
        text.find(" = ")? + 3
    } else {
        "define ".len()
    };
    let (before, after) = text.split_at_checked(name_length)?;
    let words = [("linkonce_odr ", " weak_odr "), ("linkonce ", " weak ")];
    words
        .into_iter()
        .find_map(|(word, kept)| Some((before, kept, after.strip_prefix(word)?)))
}

/// Writes the white space between two tokens, without comments.
fn push_gap(out: &mut String, gap: &str) {
    if !gap.contains(';') {
        *out += gap;
        return;
    }
    for (index, line) in gap.split('\n').enumerate() {
        if index > 0 {
            out.push('\n');
        }
        *out += line
            .split_once(';')
            .map_or(line, |(before, _)| before.trim_end());
    }
}
