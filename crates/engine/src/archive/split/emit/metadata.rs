//! Metadata of members.

use std::fmt::Write;

use super::Member;
use crate::archive::split::lexer::{Lexer, Token};
use crate::archive::split::reason::Options;

impl<'t> Member<'_, 't> {
    /// Writes named metadata, and all nodes that the member refers to.
    pub(super) fn write_metadata(&mut self, options: Options) {
        let module = &self.source.module;
        let mut named = std::mem::take(&mut self.named);
        if let Some((name, units)) = module
            .named
            .iter()
            .find(|(name, _)| *name == "!llvm.dbg.cu")
        {
            let units = units
                .iter()
                .filter(|node| self.nodes.contains(node))
                .copied();
            named.push((name, units.collect()));
        }
        for (name, operands) in named {
            if operands.is_empty() || options.canonical && name == "!llvm.ident" {
                continue;
            }
            let numbers = Vec::from_iter(
                operands
                    .iter()
                    .map(|node| format!("!{}", self.node_number(*node))),
            );
            let line = format!("{name} = !{{{}}}", numbers.join(", "));
            self.line(&line);
        }
        // Compilation units last: they list the variables that other nodes describe.
        let (mut position, mut units) = (0, Vec::new());
        loop {
            let node = match self.queue.get(position) {
                Some(&node) => {
                    position += 1;
                    let text = module.nodes.get(&node).copied().unwrap_or_default();
                    if text.starts_with("distinct !DICompileUnit(") {
                        units.insert(0, node);
                        continue;
                    }
                    node
                }
                None => match units.pop() {
                    Some(unit) => unit,
                    None => return,
                },
            };
            let text = module.nodes.get(&node).copied().unwrap_or_default();
            let number = self.node_numbers[&node];
            let variables = if text.starts_with("distinct !DICompileUnit(") {
                self.listed_variables(text)
            } else {
                None
            };
            let _ = write!(self.out, "!{number} = ");
            match &variables {
                Some((before, list, after)) => {
                    self.text(before);
                    self.out += list;
                    self.text(after);
                }
                None => self.text(text),
            }
            self.out.push('\n');
        }
    }

    /// The text of a compilation unit before and after its list of variables, and a list of those that this member
    /// has, or that have no definition in the module.
    fn listed_variables(&mut self, text: &'t str) -> Option<(&'t str, String, &'t str)> {
        let index = &self.source.index;
        let mut tokens = Lexer::new(text);
        while let Some(spanned) = tokens.next() {
            if spanned.token != Token::Word("globals") || !tokens.accept_token(Token::Sign(b':')) {
                continue;
            }
            let list = tokens.next()?;
            let Token::Node(node) = list.token else {
                return None;
            };
            let defined = &self.source.described;
            let mut numbers = Vec::new();
            for &variable in &index.nodes.get(&node)?.nodes {
                if self.node_numbers.contains_key(&variable) || !defined.contains(&variable) {
                    numbers.push(format!("!{}", self.node_number(variable)));
                }
            }
            let number = self.node_count;
            self.node_count += 1;
            let line = format!("!{number} = !{{{}}}", numbers.join(", "));
            self.line(&line);
            return Some((
                &text[..list.start],
                format!(" !{number}"),
                &text[list.end..],
            ));
        }
        None
    }
}
