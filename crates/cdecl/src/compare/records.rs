//! Structs and unions.

use std::collections::{HashMap, HashSet};

use super::{Kind, Pair, Reserved, name};
use crate::fields::{Held, Leaf, is_handle, leaves};
use crate::types::{Type, TypeId};

impl Pair<'_> {
    pub(super) fn records(&mut self, a: TypeId, b: TypeId) {
        let (old, new) = (self.older.get(a), self.newer.get(b));
        let (Type::Record { size: m, .. }, Type::Record { size: n, .. }) = (old, new) else {
            return;
        };
        let name = name(self.older, a, "a struct");
        if m != n {
            self.add(Kind::Size, format!("{name}: {} -> {} bytes", m / 8, n / 8));
        }
        if is_handle(old) {
            return;
        }
        let (a, b) = match (leaves(self.older, old), leaves(self.newer, new)) {
            (Ok(a), Ok(b)) => (a, b),
            (Err(e), _) | (_, Err(e)) => return self.add(Kind::Limit, format!("{name}: {e}")),
        };
        let (mut by_path, mut by_place) = (HashMap::new(), HashMap::new());
        for leaf in &b {
            by_path.entry(leaf.path.as_str()).or_insert(leaf);
            if !leaf.is_reserved() {
                by_place.entry(leaf.place()).or_insert(leaf);
            }
        }
        let held = Held::new(&a);
        // Fields beyond the shorter struct are part of the difference in size.
        let shorter = *m.min(n);
        for leaf in a.iter().filter(|leaf| !leaf.is_reserved()) {
            let named = by_path.get(leaf.path.as_str());
            let what = format!("{name}.{}", leaf.path);
            match named.or_else(|| by_place.get(&leaf.place())) {
                Some(other) if other.place() == leaf.place() => {
                    self.nested(what, |pair| pair.types(leaf.of, other.of));
                }
                Some(other) if other.offset == leaf.offset && is_bytes(leaf) && is_bytes(other) => {
                    let before = self.found.len();
                    let elements = (self.older.element(leaf.of), self.newer.element(other.of));
                    if let (Some(x), Some(y)) = elements {
                        self.nested(what.as_str(), |pair| pair.types(x, y));
                    }
                    let is_array = elements.0.is_some() && elements.1.is_some();
                    let end = leaf.offset.saturating_add(leaf.size.max(other.size));
                    let kind = if !is_array || self.found.len() > before {
                        Kind::Field
                    } else if end > shorter {
                        Kind::Size
                    } else {
                        Kind::Padding
                    };
                    let (m, n) = (leaf.size / 8, other.size / 8);
                    self.add(kind, format!("{what}: {m} -> {n} bytes"));
                }
                Some(other) => {
                    let (from, to) = (leaf.offset / 8, other.offset / 8);
                    self.add(Kind::Field, format!("{what}: byte {from} -> {to}"));
                }
                None if leaf.offset >= shorter => {}
                None => {
                    let mut named = b.iter().filter(|other| !other.is_reserved());
                    let kind = if named.any(|other| other.overlaps(leaf)) {
                        Kind::Field
                    } else {
                        Kind::Padding
                    };
                    self.add(kind, format!("{what} is gone"));
                }
            }
        }
        if self.is_result && self.reserved == Reserved::Written {
            let mut taking = b.iter().filter(|leaf| reserves(&a, leaf));
            if let Some(leaf) = taking.next() {
                let what = format!("{name}.{} takes reserved bytes", leaf.path);
                self.add(Kind::Padding, what);
            }
        }
        let before: HashSet<_> = a
            .iter()
            .map(|leaf| (leaf.path.as_str(), leaf.offset))
            .collect();
        let is_new = |leaf: &&Leaf| {
            let is_resized = before.contains(&(leaf.path.as_str(), leaf.offset));
            !leaf.is_reserved() && leaf.offset < shorter && !is_resized && !held.has(leaf)
        };
        for leaf in b.iter().filter(is_new) {
            self.add(Kind::Padding, format!("{name}.{} takes padding", leaf.path));
        }
    }
}

fn is_bytes(leaf: &Leaf) -> bool {
    leaf.offset % 8 == 0 && leaf.size % 8 == 0
}

/// Whether a field of one struct is in bytes of the other one that have no meaning but reserved: in a union,
/// they are part of other members.
fn reserves(fields: &[Leaf], leaf: &Leaf) -> bool {
    let named = |other: &Leaf| {
        let mut named = fields.iter().filter(|leaf| !leaf.is_reserved());
        named.any(|leaf| leaf.overlaps(other))
    };
    let mut reserved = fields.iter().filter(|other| other.is_reserved());
    !leaf.is_reserved()
        && !named(leaf)
        && reserved.any(|other| other.overlaps(leaf) && !named(other))
}
