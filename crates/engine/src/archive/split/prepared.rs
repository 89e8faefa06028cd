//! A module that has been read, and its units.

use std::collections::HashMap;

use super::emit::Source;
use super::global::Kind;
use super::lexer::{Lexer, Token};
use super::module::Module;
use super::reason::{Options, Result, Unsplit};
use super::references::Index;
use super::units::{self, Units};

/// A module ready to be split.
pub(super) struct Prepared<'t> {
    pub(super) source: Source<'t>,
    pub(super) units: Units,
}

impl<'t> Prepared<'t> {
    /// Reads the text of a module.
    pub(super) fn read(text: &'t str, options: Options) -> Result<Self> {
        let mut module = Module::parse(text)?;
        let attributes = module.attributes.iter();
        let attributes: HashMap<u32, Option<String>> = attributes
            .map(|(group, text)| (*group, attribute_group(text, options)))
            .collect();
        let index = Index::new(&module, &attributes);
        units::withdraw_copies(&mut module, &index);
        let mut units = Units::new(&module, &index);
        if units.root.is_some() && has_global_address_space(&module) {
            return Err(Unsplit(
                "constructors, or definitions that are kept, in code for a GPU",
            ));
        }
        let marker = units.root.map(|_| marker(&module));
        let definitions = module.globals.iter().zip(&index.definitions);
        let variables = definitions.filter(|(global, _)| global.kind == Kind::Variable);
        let described = variables.flat_map(|(_, references)| &references.nodes);
        let described = described.copied().collect();
        let source = Source {
            module,
            index,
            attributes,
            marker,
            described,
            shared: std::mem::take(&mut units.shared),
        };
        Ok(Self { source, units })
    }
}

/// Beginning of the name of a symbol by which members refer to that with the constructors.
pub(super) const MARKER: &str = "__gpustub_constructors_";

/// A group of attributes as it is written; `None`: none is left, which LLVM rejects.
fn attribute_group(text: &str, options: Options) -> Option<String> {
    if !options.canonical {
        return Some(text.to_owned());
    }
    let mut group = String::new();
    let mut lexer = Lexer::new(text);
    let mut count = 0;
    while let Some(spanned) = lexer.next() {
        if let Token::Word("\"target-cpu\"" | "\"target-features\"" | "\"tune-cpu\"") =
            spanned.token
        {
            if lexer.accept_token(Token::Sign(b'=')) {
                lexer.next();
            }
            continue;
        }
        count += usize::from(matches!(spanned.token, Token::Word(_)));
        group += &text[spanned.start..spanned.end];
        if !matches!(lexer.peek(), Some(Token::Sign(b'=' | b'(' | b')' | b',')))
            && !group.ends_with(['=', '('])
        {
            group.push(' ');
        }
    }
    (count > 0).then(|| group.trim_end().to_owned())
}

/// Whether variables of the target are in an address space with a number: `G1` of the data layout.
fn has_global_address_space(module: &Module<'_>) -> bool {
    let layout = module.target.iter().flat_map(|line| line.split(['"', '-']));
    layout
        .into_iter()
        .any(|part| part.strip_prefix('G').is_some_and(|number| number != "0"))
}

/// Name of the symbol of the member with the constructors: no two modules of a program define the same symbols.
fn marker(module: &Module<'_>) -> String {
    let globals = module.globals.iter();
    let mut names = Vec::from_iter(
        globals
            .filter(|g| g.is_definition && !g.linkage.is_local())
            .map(|g| g.name),
    );
    names.sort_unstable();
    // FNV-1a: the same in each release of Rust.
    let hash = names
        .iter()
        .flat_map(|name| name.bytes())
        .fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3)
        });
    format!("{MARKER}{hash:016x}")
}
