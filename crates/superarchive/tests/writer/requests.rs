//! Random requests for super-archives, and their expected results by a search without tables.

use std::borrow::Cow;

use gpustub_superarchive::{Binding, Definition, Input, Layer, LayerId, Request, View, ViewId};
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// Names of symbols and members: ordinary ones, and ones that are difficult for formats.
pub const NAMES: [&[u8]; 13] = [
    b"cos",
    b"_Z3cosDv16_f",
    b"sin",
    b"a name with spaces",
    b"15-characters.o",
    b"16-characters..o",
    b"folder/file.o",
    b"/",
    b"\xff\xfe not text",
    b"line\nbreak",
    b"",
    b"#1/3",
    &[b'l'; 300],
];

/// The kind of an ELF object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    pub wide: bool,
    pub big: bool,
}

pub const KINDS: [Kind; 4] = [
    Kind {
        wide: false,
        big: false,
    },
    Kind {
        wide: false,
        big: true,
    },
    Kind {
        wide: true,
        big: false,
    },
    Kind {
        wide: true,
        big: true,
    },
];

/// The header of an object file (`<elf.h>`), the only part that the writer reads, and more bytes.
pub fn object(kind: Kind, more: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x7fELF".to_vec();
    bytes.extend([1 + u8::from(kind.wide), 1 + u8::from(kind.big), 1]);
    bytes.resize(16, 0);
    for half in [1_u16, 62] {
        bytes.extend(if kind.big {
            half.to_be_bytes()
        } else {
            half.to_le_bytes()
        });
    }
    bytes.resize(if kind.wide { 64 } else { 52 }, 0);
    bytes.extend(more);
    bytes
}

/// Contents, and their definitions: each symbol, and whether it is weak.
#[derive(Debug, Clone)]
pub struct Contents {
    pub data: Vec<u8>,
    pub symbols: Vec<(&'static [u8], bool)>,
}

/// Data that a request borrows from.
#[derive(Debug, Clone)]
pub struct Parts {
    pub contents: Vec<Contents>,
    /// Members of each layer: a name, and the index of the contents.
    pub layers: Vec<Vec<(&'static [u8], usize)>>,
    pub views: Vec<(String, Vec<usize>)>,
    pub default: Option<usize>,
}

impl Parts {
    pub fn request(&self) -> Request<'_> {
        let layers = self.layers.iter().enumerate().map(|(index, members)| {
            let inputs = members
                .iter()
                .map(|&(name, contents)| self.input(name, contents));
            Layer::new(format!("layer {index}"), inputs.collect())
        });
        let views = self.views.iter().map(|(name, layers)| View {
            name: name.clone(),
            layers: layers.iter().copied().map(LayerId).collect(),
        });
        Request {
            layers: layers.collect(),
            views: views.collect(),
            default: self.default.map(ViewId),
        }
    }

    fn input(&self, name: &'static [u8], contents_index: usize) -> Input<'_> {
        let contents = &self.contents[contents_index];
        Input {
            name: Cow::Borrowed(name),
            data: &contents.data,
            symbols: contents
                .symbols
                .iter()
                .map(|&(name, weak)| Definition {
                    name: Cow::Borrowed(name),
                    binding: Binding::weak_if(weak),
                })
                .collect(),
        }
    }
}

/// Searches the layers of a view in order for a symbol; returns the member and its layer.
pub fn search<'r, 'd>(
    request: &'r Request<'d>,
    view: &View,
    symbol: &[u8],
) -> Option<(usize, &'r Input<'d>)> {
    for (position, layer) in view.layers.iter().enumerate() {
        for member in &request.layers[layer.0].members {
            if member.symbols.iter().any(|s| s.name == symbol) {
                return Some((position, member));
            }
        }
    }
    None
}

/// Members of a view, without those all of whose symbols earlier layers define.
pub fn members<'r, 'd>(request: &'r Request<'d>, view: &View) -> Vec<(usize, &'r Input<'d>)> {
    let mut members = Vec::new();
    for (position, layer) in view.layers.iter().enumerate() {
        for member in &request.layers[layer.0].members {
            let is_overridden = member
                .symbols
                .iter()
                .all(|symbol| is_earlier(request, view, position, &symbol.name));
            if member.symbols.is_empty() || !is_overridden {
                members.push((position, member));
            }
        }
    }
    members
}

/// Whether a layer before this one defines a symbol.
fn is_earlier(request: &Request<'_>, view: &View, position: usize, symbol: &[u8]) -> bool {
    search(request, view, symbol).is_some_and(|(first, _)| first < position)
}

/// Whether a view needs a member that defines a symbol of an earlier layer.
pub fn clashes(request: &Request<'_>, view: &View) -> bool {
    members(request, view)
        .into_iter()
        .any(|(position, member)| {
            let is_needed = member.symbols.iter().any(|symbol| {
                let (layer, chosen) = search(request, view, &symbol.name).unwrap();
                layer == position && std::ptr::eq(chosen, member)
            });
            let has_earlier = member
                .symbols
                .iter()
                .any(|symbol| is_earlier(request, view, position, &symbol.name));
            is_needed && has_earlier
        })
}

fn contents() -> impl Strategy<Value = Contents> {
    let bytes = prop::collection::vec(0..3_u8, 0..4);
    let kind = prop::option::weighted(0.7, select(&KINDS[..]));
    let symbol = (select(&NAMES[..]), prop::bool::weighted(0.4));
    let symbols = prop::collection::vec(symbol, 0..5);
    (kind, bytes, symbols).prop_map(|(kind, bytes, mut symbols)| {
        symbols.sort();
        symbols.dedup_by_key(|(name, _)| *name);
        let data = kind.map_or(bytes.clone(), |kind| object(kind, &bytes));
        Contents { data, symbols }
    })
}

/// Any consistent request.
pub fn parts() -> impl Strategy<Value = Parts> {
    let member = (select(&NAMES[..]), any::<Index>());
    let layer = prop::collection::vec(member, 0..5);
    let view = prop::collection::vec(any::<Index>(), 0..4);
    (
        prop::collection::vec(contents(), 1..8),
        any::<bool>(),
        prop::collection::vec(layer, 1..5),
        prop::collection::btree_map(".{0,8}", view, 0..6),
        prop::option::weighted(0.8, any::<Index>()),
    )
        .prop_map(|(mut contents, alike, layers, views, default)| {
            // The index contains the tables of a default view of several kinds.
            if alike {
                for contents in &mut contents {
                    contents.data = object(KINDS[2], &contents.data);
                }
            }
            // Equal contents have equal definitions.
            for index in 1..contents.len() {
                let (earlier, rest) = contents.split_at_mut(index);
                if let Some(equal) = earlier.iter().find(|earlier| earlier.data == rest[0].data) {
                    rest[0].symbols = equal.symbols.clone();
                }
            }
            let layers: Vec<Vec<_>> = layers
                .into_iter()
                .map(|members| {
                    members
                        .into_iter()
                        .map(|(name, index)| (name, index.index(contents.len())))
                        .collect()
                })
                .collect();
            let views: Vec<(String, Vec<usize>)> = views
                .into_iter()
                .map(|(name, indices)| {
                    let layers = indices.iter().map(|index| index.index(layers.len()));
                    (name, layers.collect())
                })
                .collect();
            let default = default
                .filter(|_| !views.is_empty())
                .map(|index| index.index(views.len()));
            Parts {
                contents,
                layers,
                views,
                default,
            }
        })
}
