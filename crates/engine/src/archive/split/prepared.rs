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
    /// Length of the text.
    pub(super) length: usize,
}

impl<'t> Prepared<'t> {
    /// Reads the text of a module.
    pub(super) fn read(text: &'t str, options: Options) -> Result<Self> {
        let mut module = Module::parse(text)?;
        let attributes = module.attributes.iter();
        let attributes: HashMap<u32, Option<String>> = attributes
            .map(|(group, text)| (*group, attribute_group(text, options)))
            .collect();
        if has_assembly_of_kept_definitions(&module) {
            return Err(Unsplit("inline assembly that names a definition"));
        }
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
        Ok(Self {
            source,
            units,
            length: text.len(),
        })
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

/// Whether inline assembly names a definition that is marked as used for it: no reference says so.
fn has_assembly_of_kept_definitions(module: &Module<'_>) -> bool {
    let lists = module.special.iter().filter(|special| !special.is_run());
    let kept = lists.flat_map(|special| special.globals.iter().flatten());
    let kept = Vec::from_iter(kept.map(|id| module.globals[*id].name[1..].trim_matches('"')));
    if kept.is_empty() {
        return false;
    }
    let functions = module.globals.iter();
    let mut functions = functions.filter(|global| global.kind == Kind::Function);
    functions.any(|function| {
        let mut calls = function.text.split(" asm ").skip(1);
        calls.any(|call| {
            // Quotes in a string are written `\22`.
            let assembly = call.split('"').nth(1).unwrap_or_default();
            let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$');
            let mut words =
                assembly.split(|letter: char| !letter.is_ascii() || !is_part(letter as u8));
            words.any(|word| kept.contains(&word))
        })
    })
}

/// Name of the symbol of the member with the constructors. Modules of a program with the same definitions differ in the
/// names of their local ones, such as `_GLOBAL__sub_I_file.cpp`.
fn marker(module: &Module<'_>) -> String {
    let globals = module.globals.iter();
    let mut names = Vec::from_iter(
        globals
            .filter(|global| global.is_definition && !global.may_be_copied)
            .map(|global| global.name),
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
