//! Contents of members, each stored once.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::definitions::collector::Binding;
use crate::ids::{IndexVec, LayerId, MemberId, NameId};
use crate::names::{FastHash, Hashed, Names};
use crate::request::Layer;

/// Contents of members.
#[derive(Debug, Clone)]
pub struct Contents<'r> {
    pub data: Cow<'r, [u8]>,
    pub hash: u64,
    /// Symbols that it defines, in its own order.
    pub symbols: Vec<(NameId, Binding)>,
    /// For a variant, the contents without undefined symbols.
    pub original: Option<MemberId>,
}

/// Compressed contents.
#[derive(Debug)]
pub struct Frame {
    pub bytes: Vec<u8>,
    /// Contents that the codec has as a prefix.
    pub base: Option<MemberId>,
}

/// Contents of all members of layers, and of their variants.
#[derive(Debug, Default)]
pub struct Pool<'r> {
    pub contents: IndexVec<MemberId, Contents<'r>>,
    /// Contents of the members of each layer.
    pub layers: IndexVec<LayerId, Vec<MemberId>>,
    /// Names of all symbols.
    pub names: Names<'r>,
    /// Frames of contents that are compressed; empty if none is.
    pub frames: IndexVec<MemberId, Option<Frame>>,
}

impl<'r> Pool<'r> {
    /// Compressed form of contents.
    pub fn frame(&self, member: MemberId) -> Option<&Frame> {
        self.frames.iter().nth(member.0)?.as_ref()
    }

    /// The bytes of contents in the file.
    pub fn stored(&self, member: MemberId) -> &[u8] {
        match self.frame(member) {
            Some(frame) => &frame.bytes,
            None => &self.contents[member].data,
        }
    }

    /// Finds members with equal contents. Their symbols are those of the first one.
    pub fn new(layers: &'r [Layer<'_>]) -> Self {
        let mut pool = Self::default();
        let mut known: HashMap<Hashed<'r>, MemberId, FastHash> = HashMap::default();
        // Most equal contents are the same slice: `KnownMembers`.
        let mut slices: HashMap<*const [u8], MemberId, FastHash> = HashMap::default();
        // The last member that defines each name.
        let mut defined_by: Vec<Option<MemberId>> = Vec::new();
        for layer in layers {
            let mut members = Vec::with_capacity(layer.members.len());
            for input in &layer.members {
                if let Some(&member) = slices.get(&std::ptr::from_ref(input.data)) {
                    members.push(member);
                    continue;
                }
                let hashed = Hashed::new(input.data);
                let member = *known.entry(hashed).or_insert_with(|| {
                    let member = MemberId(pool.contents.len());
                    let mut symbols: Vec<(NameId, Binding)> =
                        Vec::with_capacity(input.symbols.len());
                    for symbol in &input.symbols {
                        let name = pool.names.intern(&symbol.name);
                        defined_by.resize(pool.names.count(), None);
                        // Damaged objects define a symbol twice; an index has it once.
                        if defined_by[name.0].replace(member) != Some(member) {
                            symbols.push((name, symbol.binding));
                        }
                    }
                    pool.contents.push(Contents {
                        data: Cow::Borrowed(input.data),
                        hash: hashed.hash,
                        symbols,
                        original: None,
                    });
                    member
                });
                slices.insert(input.data, member);
                members.push(member);
            }
            pool.layers.push(members);
        }
        pool
    }

    /// Drops contents that are not used, and returns the new ids of the others.
    pub fn retain(
        &mut self,
        used: &IndexVec<MemberId, bool>,
    ) -> IndexVec<MemberId, Option<MemberId>> {
        let mut ids: IndexVec<MemberId, Option<MemberId>> = IndexVec::default();
        let contents = std::mem::take(&mut self.contents);
        for (contents, &used) in contents.into_iter().zip(used.iter()) {
            ids.push(used.then(|| self.contents.push(contents)));
        }
        for contents in self.contents.iter_mut() {
            contents.original = contents.original.and_then(|original| ids[original]);
        }
        ids
    }
}
