//! References of the parts of a module, and hashes of their contents.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use super::global::Global;
use super::lexer::{Lexer, Token};
use super::module::{Module, is_number};

/// References of a text, each once, in its order.
#[derive(Debug, Default, Clone)]
pub struct References {
    /// Positions of functions, variables and aliases.
    pub globals: Vec<usize>,
    /// Positions of types.
    pub types: Vec<usize>,
    pub nodes: Vec<u32>,
    /// Functions of whose blocks it takes the address.
    pub blocks: Vec<usize>,
    /// Whether it may use types whose name is a number.
    pub has_numbered_types: bool,
    /// Hash of the text, with attributes, types and nodes by their contents.
    hash: u64,
}

/// References of all parts of a module.
#[derive(Debug, Default)]
pub struct Index {
    /// References of each definition, and of each declaration.
    pub definitions: Vec<References>,
    pub declarations: Vec<References>,
    pub types: Vec<References>,
    pub nodes: HashMap<u32, References>,
    /// Hash of each definition, with those that it has copies of.
    hashes: Vec<u64>,
}

/// Hashes of what a text may refer to.
#[derive(Default)]
struct Hashes {
    attributes: HashMap<u32, u64>,
    types: Vec<u64>,
    nodes: HashMap<u32, u64>,
    declarations: Vec<u64>,
}

impl References {
    /// Hash of the text, with attributes, types and nodes by their contents.
    pub fn hash(&self) -> u64 {
        self.hash
    }
}

/// Depth to which contents of types and metadata are compared. Deeper differences only make texts differ.
const ROUNDS: usize = 4;

impl Index {
    pub fn new(module: &Module<'_>, attributes: &HashMap<u32, Option<String>>) -> Self {
        let mut hashes = Hashes {
            attributes: attributes.iter().map(|(k, v)| (*k, hash_of(v))).collect(),
            types: vec![0; module.types.len()],
            ..Hashes::default()
        };
        let mut index = Self::default();
        for _ in 0..ROUNDS {
            let read = |text: &&str| references(module, text, &hashes);
            index.types = module.types.iter().map(read).collect();
            hashes.types = index.types.iter().map(|part| part.hash).collect();
        }
        for node in module.nodes.keys() {
            hashes.nodes.insert(*node, 0);
        }
        for _ in 0..ROUNDS {
            let read = |(node, text): (&u32, &&str)| (*node, references(module, text, &hashes));
            index.nodes = module.nodes.iter().map(read).collect();
            let of_node = |(node, part): (&u32, &References)| (*node, part.hash);
            hashes.nodes = index.nodes.iter().map(of_node).collect();
        }
        for global in &module.globals {
            let declaration = references(module, &global.declaration, &hashes);
            hashes.declarations.push(declaration.hash);
            index.declarations.push(declaration);
        }
        for global in &module.globals {
            let text = if global.is_definition {
                global.text
            } else {
                ""
            };
            index.definitions.push(references(module, text, &hashes));
        }
        index.hash_copies(module);
        index
    }

    /// Adds the contents of copies to the hashes of the definitions that have them.
    fn hash_copies(&mut self, module: &Module<'_>) {
        self.hashes = self.definitions.iter().map(|part| part.hash).collect();
        for _ in 0..ROUNDS {
            let mut hashes = Vec::with_capacity(self.hashes.len());
            for part in &self.definitions {
                let mut hasher = DefaultHasher::new();
                part.hash.hash(&mut hasher);
                for &global in &part.globals {
                    if module.globals[global].may_be_copied {
                        self.hashes[global].hash(&mut hasher);
                    }
                }
                hashes.push(hasher.finish());
            }
            self.hashes = hashes;
        }
    }

    /// Hash of a definition. Equal ones are written as equal texts, but for few that are deep structures.
    pub fn hash(&self, definition: usize) -> u64 {
        self.hashes[definition]
    }
}

fn hash_of(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Reads the references of a text.
fn references(module: &Module<'_>, text: &str, hashes: &Hashes) -> References {
    let mut references = References::default();
    let (mut globals, mut types, mut nodes) = (HashSet::new(), HashSet::new(), HashSet::new());
    let mut normal: Vec<u8> = Vec::with_capacity(text.len());
    let mut takes_block = false;
    let mut before = None;
    for spanned in Lexer::new(text) {
        let content = match spanned.token {
            Token::Global(name) => module.global(name).map(|global| {
                if takes_block && before == Some(Token::Sign(b'(')) {
                    references.blocks.push(global);
                }
                if globals.insert(global) {
                    references.globals.push(global);
                }
                content_of_global(&module.globals[global], global, hashes)
            }),
            Token::Local(name) if !module.types.is_empty() => {
                references.has_numbered_types |= module.numbered_types > 0 && is_number(&name[1..]);
                module.type_ids.get(name).map(|&id| {
                    if !is_number(&name[1..]) && types.insert(id) {
                        references.types.push(id);
                    }
                    hash_of((name, hashes.types[id]))
                })
            }
            Token::Comdat(name) => module.comdats.get(name).map(hash_of),
            Token::Attributes(group) => hashes.attributes.get(&group).copied(),
            Token::Node(node) => {
                if nodes.insert(node) {
                    references.nodes.push(node);
                }
                Some(hashes.nodes.get(&node).copied().unwrap_or_default())
            }
            _ => None,
        };
        match content {
            Some(hash) => normal.extend(hash.to_ne_bytes()),
            None => normal.extend(&text.as_bytes()[spanned.start..spanned.end]),
        }
        normal.push(b' ');
        takes_block |= spanned.token == Token::Word("blockaddress");
        before = Some(spanned.token);
    }
    references.hash = hash_of(normal);
    references
}

fn content_of_global(global: &Global<'_>, index: usize, hashes: &Hashes) -> u64 {
    let name = if global.is_anonymous() {
        ""
    } else {
        global.name
    };
    hash_of((name, hashes.declarations.get(index)))
}
