//! Fields of structs and unions, including nested ones.

use std::collections::BTreeSet;

use crate::types::{Type, TypeId, Types};

/// Maximum depth to which types are followed, through pointers and into structs. Those of GPU
/// libraries are less than 20 deep; deeper ones count as different.
pub(crate) const MAX_DEPTH: usize = 256;

/// Maximum number of fields of a struct, including nested structs. GPU libraries have hundreds.
const MAX_FIELDS: usize = 1 << 16;

/// A field that is no record itself.
pub struct Leaf {
    /// Path with the names of the structs and unions around it, except anonymous ones.
    pub path: String,
    /// Offset in bits, from the start of the outermost struct.
    pub offset: u64,
    /// Size in bits.
    pub size: u64,
    /// Type.
    pub type_id: TypeId,
}

impl Leaf {
    /// Offset and size, in bits.
    pub fn place(&self) -> (u64, u64) {
        (self.offset, self.size)
    }

    /// Whether both have a bit in common.
    pub(crate) fn overlaps(&self, other: &Leaf) -> bool {
        let ((a, b), (c, d)) = (self.range(), other.range());
        a < d && c < b
    }

    /// First bit, and the bit after the last.
    fn range(&self) -> (u64, u64) {
        (self.offset, self.offset.saturating_add(self.size))
    }

    /// Whether the name is one of padding, possibly with a number: `reserved`, `_pad2`. Longer names are fields:
    /// `reservedSharedMemPerBlock`.
    pub fn is_reserved(&self) -> bool {
        self.path.split('.').any(|part| {
            let name = part
                .trim_matches('_')
                .trim_end_matches(|c: char| c.is_ascii_digit());
            [
                "reserved",
                "pad",
                "padding",
                "unused",
                "cudaReserved",
                "hipReserved",
                "internal_padding",
                "oversize",
            ]
            .contains(&name)
        })
    }
}

/// Fields of a struct or union and of nested ones, in their order.
///
/// # Errors
///
/// Too many fields, or too many levels, to be listed.
pub fn leaves(types: &Types, record: &Type) -> Result<Vec<Leaf>, String> {
    let mut collector = LeafCollector {
        types,
        leaves: Vec::new(),
        remaining: MAX_FIELDS,
    };
    collector.add(record, "", 0, MAX_DEPTH)?;
    Ok(collector.leaves)
}

struct LeafCollector<'a> {
    types: &'a Types,
    leaves: Vec<Leaf>,
    /// Number of fields that may still be added.
    remaining: usize,
}

impl LeafCollector<'_> {
    fn add(&mut self, record: &Type, path: &str, offset: u64, depth: usize) -> Result<(), String> {
        let Type::Record {
            members: Some(members),
            ..
        } = record
        else {
            return Ok(());
        };
        if depth == 0 {
            return Err(format!("more than {MAX_DEPTH} structs in each other"));
        }
        for member in members {
            // Structs without fields count as well: nested in pairs, their number grows exponentially.
            self.remaining = self
                .remaining
                .checked_sub(1)
                .ok_or_else(|| format!("more than {MAX_FIELDS} fields"))?;
            let path = match (path, member.name.as_str()) {
                ("", name) | (name, "") => name.to_owned(),
                (path, name) => format!("{path}.{name}"),
            };
            let offset = offset.saturating_add(member.offset);
            match self.types.get(member.type_id) {
                inner @ Type::Record { .. } if !is_handle(inner) => {
                    self.add(inner, &path, offset, depth - 1)?;
                }
                _ => self.leaves.push(Leaf {
                    path,
                    offset,
                    size: member.size,
                    type_id: member.type_id,
                }),
            }
        }
        Ok(())
    }
}

/// Structs in HIP's headers that only the library creates: programs pass pointers, or in
/// hipArrayMapInfo a copy.
pub fn is_handle(record: &Type) -> bool {
    match record {
        Type::Record { name, .. } => ["hipArray", "hipMipmappedArray"].contains(&name.as_str()),
        _ => false,
    }
}

/// Bits of fields, without padding: ranges that do not touch, ascending.
pub(crate) struct FieldBits(Vec<(u64, u64)>);

impl FieldBits {
    pub(crate) fn new(leaves: &[Leaf]) -> Self {
        let leaf_ranges: BTreeSet<_> = leaves.iter().map(Leaf::range).collect();
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for (start, end) in leaf_ranges {
            match ranges.last_mut() {
                Some((_, previous_end)) if start <= *previous_end => {
                    *previous_end = (*previous_end).max(end);
                }
                _ => ranges.push((start, end)),
            }
        }
        Self(ranges)
    }

    pub(crate) fn contain(&self, leaf: &Leaf) -> bool {
        let (start, end) = leaf.range();
        let index = self.0.partition_point(|range| range.0 <= start);
        start == end || index > 0 && end <= self.0[index - 1].1
    }
}
