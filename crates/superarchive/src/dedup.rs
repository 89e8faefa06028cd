//! Deduplication of members: equal contents are stored once.

use std::collections::HashMap;

use gpustub_archive::hash::hash_bytes;

use crate::ids::{IndexVec, LayerId, MemberId, NameId};
use crate::names::{Names, PrecomputedHash};
use crate::request::{Input, Layer};

/// Members without duplicates.
#[derive(Debug)]
pub struct UniqueMembers<'r, 'd> {
    /// Each member at its first occurrence, whose name it keeps.
    pub inputs: IndexVec<MemberId, &'r Input<'d>>,
    /// Content hash of each member.
    pub content_hashes: IndexVec<MemberId, u64>,
    /// Symbols that each member defines, in its own order.
    pub symbols: IndexVec<MemberId, Vec<NameId>>,
    /// Members of each layer.
    pub layers: IndexVec<LayerId, Vec<MemberId>>,
    /// Names of all symbols.
    pub names: Names<'r>,
}

/// Members that are written, with the names of all symbols.
#[derive(Debug)]
pub struct StoredMembers<'r, 'd> {
    /// The members.
    pub inputs: IndexVec<MemberId, &'r Input<'d>>,
    /// Content hash of each member.
    pub content_hashes: IndexVec<MemberId, u64>,
    /// Names of all symbols.
    pub names: Names<'r>,
}

/// Finds members with equal contents.
pub fn dedup_members<'r, 'd>(layers: &'r [Layer<'d>]) -> UniqueMembers<'r, 'd> {
    let mut unique = UniqueMembers {
        inputs: IndexVec::default(),
        content_hashes: IndexVec::default(),
        symbols: IndexVec::default(),
        layers: IndexVec::default(),
        names: Names::default(),
    };
    let mut by_hash: HashMap<u64, Vec<MemberId>, PrecomputedHash> = HashMap::default();
    for layer in layers {
        let mut members = Vec::with_capacity(layer.members.len());
        for input in &layer.members {
            let hash = hash_bytes(input.data);
            let candidates = by_hash.entry(hash).or_default();
            let equal = |&&member: &&MemberId| unique.inputs[member].data == input.data;
            let member = candidates.iter().find(equal).copied().unwrap_or_else(|| {
                let member = unique.inputs.push(input);
                candidates.push(member);
                unique.content_hashes.push(hash);
                let symbols = input.symbols.iter();
                let symbols = symbols.map(|symbol| unique.names.intern(&symbol.name));
                unique.symbols.push(symbols.collect());
                member
            });
            members.push(member);
        }
        unique.layers.push(members);
    }
    unique
}
