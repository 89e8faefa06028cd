//! Structs and unions.

use std::collections::{HashMap, HashSet};

use super::{Comparison, DifferenceKind, Reserved, name};
use crate::fields::{FieldBits, Leaf, is_handle, leaves};
use crate::types::{Type, TypeId};

/// Fields of two versions of a struct or union.
struct RecordPair {
    name: String,
    old: Vec<Leaf>,
    new: Vec<Leaf>,
    /// Size of the shorter one, in bits: fields beyond it are part of the difference in size.
    shorter: u64,
}

impl Comparison<'_> {
    pub(super) fn compare_records(&mut self, a: TypeId, b: TypeId) {
        let (old, new) = (self.older.get(a), self.newer.get(b));
        let (Type::Record { size: m, .. }, Type::Record { size: n, .. }) = (old, new) else {
            return;
        };
        let name = name(self.older, a, "a struct");
        if m != n {
            self.add(
                DifferenceKind::Size,
                format!("{name}: {} -> {} bytes", m / 8, n / 8),
            );
        }
        if is_handle(old) {
            return;
        }
        let (old, new) = match (leaves(self.older, old), leaves(self.newer, new)) {
            (Ok(old), Ok(new)) => (old, new),
            (Err(error), _) | (_, Err(error)) => {
                return self.add(DifferenceKind::Limit, format!("{name}: {error}"));
            }
        };
        let records = RecordPair {
            name,
            old,
            new,
            shorter: *m.min(n),
        };
        self.compare_fields(&records);
        self.check_reserved_bytes(&records);
        self.check_padding(&records);
    }

    /// Compares each older field with the newer one of its name, else of its place.
    fn compare_fields(&mut self, records: &RecordPair) {
        let (mut by_path, mut by_place) = (HashMap::new(), HashMap::new());
        for leaf in &records.new {
            by_path.entry(leaf.path.as_str()).or_insert(leaf);
            if !leaf.is_reserved() {
                by_place.entry(leaf.place()).or_insert(leaf);
            }
        }
        for old in records.old.iter().filter(|leaf| !leaf.is_reserved()) {
            let path = format!("{}.{}", records.name, old.path);
            let new = by_path
                .get(old.path.as_str())
                .or_else(|| by_place.get(&old.place()));
            match new {
                Some(new) if new.place() == old.place() => {
                    self.nested(path, |comparison| {
                        comparison.compare_types(old.type_id, new.type_id)
                    });
                }
                Some(new) if new.offset == old.offset && is_bytes(old) && is_bytes(new) => {
                    self.compare_resized(&path, old, new, records.shorter);
                }
                Some(new) => {
                    let (from, to) = (old.offset / 8, new.offset / 8);
                    self.add(
                        DifferenceKind::Field,
                        format!("{path}: byte {from} -> {to}"),
                    );
                }
                None if old.offset >= records.shorter => {}
                None => {
                    let kind = if overlaps_named_field(&records.new, old) {
                        DifferenceKind::Field
                    } else {
                        DifferenceKind::Padding
                    };
                    self.add(kind, format!("{path} is gone"));
                }
            }
        }
    }

    /// Compares a field with one at the same offset that has another size.
    fn compare_resized(&mut self, path: &str, old: &Leaf, new: &Leaf, shorter: u64) {
        let elements = (
            self.older.element(old.type_id),
            self.newer.element(new.type_id),
        );
        let (old_bytes, new_bytes) = (old.size / 8, new.size / 8);
        let end = old.offset.saturating_add(old.size.max(new.size));
        let count = self.differences.len();
        if let (Some(a), Some(b)) = elements {
            self.nested(path, |comparison| comparison.compare_types(a, b));
        }
        let is_array = elements.0.is_some() && elements.1.is_some();
        let kind = if !is_array || self.differences.len() > count {
            DifferenceKind::Field
        } else if end > shorter {
            DifferenceKind::Size
        } else {
            DifferenceKind::Padding
        };
        self.add(kind, format!("{path}: {old_bytes} -> {new_bytes} bytes"));
    }

    /// Reports a newer field in reserved bytes of the older struct, which the function may write.
    fn check_reserved_bytes(&mut self, records: &RecordPair) {
        if !self.is_result || self.reserved == Reserved::Zero {
            return;
        }
        if let Some(leaf) = records
            .new
            .iter()
            .find(|leaf| takes_reserved_bytes(&records.old, leaf))
        {
            let description = format!("{}.{} takes reserved bytes", records.name, leaf.path);
            self.add(DifferenceKind::Padding, description);
        }
    }

    /// Reports newer fields in padding of the older struct.
    fn check_padding(&mut self, records: &RecordPair) {
        let old_bits = FieldBits::new(&records.old);
        let old_fields: HashSet<_> = records
            .old
            .iter()
            .map(|leaf| (leaf.path.as_str(), leaf.offset))
            .collect();
        for leaf in &records.new {
            if leaf.is_reserved()
                || leaf.offset >= records.shorter
                // It was resized.
                || old_fields.contains(&(leaf.path.as_str(), leaf.offset))
                || old_bits.contain(leaf)
            {
                continue;
            }
            let description = format!("{}.{} takes padding", records.name, leaf.path);
            self.add(DifferenceKind::Padding, description);
        }
    }
}

fn is_bytes(leaf: &Leaf) -> bool {
    leaf.offset % 8 == 0 && leaf.size % 8 == 0
}

/// Whether a field of one struct is in bytes of the other one that have no meaning but reserved: in a union,
/// they are part of other members.
fn takes_reserved_bytes(fields: &[Leaf], leaf: &Leaf) -> bool {
    !leaf.is_reserved()
        && !overlaps_named_field(fields, leaf)
        && fields.iter().any(|field| {
            field.is_reserved() && field.overlaps(leaf) && !overlaps_named_field(fields, field)
        })
}

/// Whether a field that is not reserved shares bits with this one.
fn overlaps_named_field(fields: &[Leaf], leaf: &Leaf) -> bool {
    fields
        .iter()
        .any(|field| !field.is_reserved() && field.overlaps(leaf))
}
