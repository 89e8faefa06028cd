//! Expected members and symbols of a view, by a search of its layers in order.

use std::collections::HashMap;
use std::sync::Arc;

use gpustub_superarchive::View;
use gpustub_tests::archive::{Archive, Member};

/// Members and symbols of a view.
pub struct Reference<'a> {
    /// Members with the positions of their layers.
    pub members: Vec<(usize, &'a Member)>,
    /// Position of the member that defines a symbol.
    pub symbols: HashMap<&'a str, usize>,
}

impl<'a> Reference<'a> {
    pub fn new(view: &View, layers: &'a [Archive]) -> Self {
        let mut found = Self {
            members: Vec::new(),
            symbols: HashMap::new(),
        };
        for (at, layer) in view.layers.iter().enumerate() {
            let layer = &layers[layer.0];
            let mut own = HashMap::new();
            for (number, member) in layer.members.iter().enumerate() {
                let is_earlier = |symbol: &Arc<str>| found.symbols.contains_key(&**symbol);
                let symbols = &member.symbols;
                // The view cannot reach the member.
                if !symbols.is_empty() && symbols.iter().all(is_earlier) {
                    continue;
                }
                own.insert(number, found.members.len());
                found.members.push((at, member));
            }
            for (symbol, member) in &layer.index {
                if !found.symbols.contains_key(&**symbol) {
                    found.symbols.insert(symbol, own[member]);
                }
            }
        }
        found
    }
}
