//! The fields of structs and unions, with those of what is in them.

use crate::types::{Member, Type, TypeId, Types};

/// How deep types are followed, through pointers and into structs. Those of GPU libraries are less
/// than 20 deep; what is deeper is said to differ.
pub(crate) const DEPTH: usize = 256;

/// How many fields a struct may have, with those of the structs in it. GPU libraries have hundreds.
const FIELDS: usize = 1 << 16;

/// A field that is no record itself.
pub struct Leaf {
    /// With the names of the structs and unions around it, but for anonymous ones.
    pub path: String,
    /// In bits, from the start of the outermost struct.
    pub offset: u64,
    /// In bits.
    pub size: u64,
    /// Its type.
    pub of: TypeId,
}

impl Leaf {
    /// Where it lies, and how large it is, in bits.
    pub fn place(&self) -> (u64, u64) {
        (self.offset, self.size)
    }

    /// Its first bit, and the one after its last.
    fn range(&self) -> (u64, u64) {
        (self.offset, self.offset.saturating_add(self.size))
    }

    pub(crate) fn is_reserved(&self) -> bool {
        self.path.split('.').any(|part| {
            let part = part.trim_start_matches('_');
            [
                "reserved",
                "pad",
                "unused",
                "cudaReserved",
                "internal_padding",
                "oversize",
            ]
            .iter()
            .any(|start| part.starts_with(start))
        })
    }
}

/// The fields of a struct or union and of those in it, in their order.
///
/// # Errors
///
/// If they are too many, or too deep in each other, to be listed.
pub fn leaves(types: &Types, record: &Type) -> Result<Vec<Leaf>, String> {
    let mut fields = Fields {
        types,
        found: Vec::new(),
        left: FIELDS,
    };
    fields.add(record, "", 0, DEPTH)?;
    Ok(fields.found)
}

struct Fields<'a> {
    types: &'a Types,
    found: Vec<Leaf>,
    /// How many more there may be.
    left: usize,
}

impl Fields<'_> {
    fn add(&mut self, record: &Type, path: &str, offset: u64, depth: usize) -> Result<(), String> {
        let Type::Record {
            members: Some(members),
            ..
        } = record
        else {
            return Ok(());
        };
        if depth == 0 {
            return Err(format!("more than {DEPTH} structs in each other"));
        }
        for member in members {
            // Structs without fields count as well: a few, of which each holds two, are many.
            self.left = (self.left.checked_sub(1)).ok_or(format!("more than {FIELDS} fields"))?;
            let path = match (path, member.name.as_str()) {
                ("", name) | (name, "") => name.to_owned(),
                (path, name) => format!("{path}.{name}"),
            };
            let offset = offset.saturating_add(member.offset);
            let Member { size, of, .. } = *member;
            match self.types.get(of) {
                inner @ Type::Record { .. } if !is_handle(inner) => {
                    self.add(inner, &path, offset, depth - 1)?;
                }
                _ => self.found.push(Leaf {
                    path,
                    offset,
                    size,
                    of,
                }),
            }
        }
        Ok(())
    }
}

/// Structs that HIP's headers show, though only the library makes them: programs pass pointers, or in
/// hipArrayMapInfo a copy.
pub fn is_handle(of: &Type) -> bool {
    matches!(of, Type::Record { name, .. } if ["hipArray", "hipMipmappedArray"].contains(&name.as_str()))
}

/// The bits that fields hold, and padding does not: ranges that do not touch, ascending.
pub(crate) struct Held(Vec<(u64, u64)>);

impl Held {
    pub(crate) fn new(leaves: &[Leaf]) -> Self {
        let mut ranges: Vec<_> = leaves.iter().map(Leaf::range).collect();
        ranges.sort_unstable();
        let mut merged: Vec<(u64, u64)> = Vec::new();
        for (start, end) in ranges {
            match merged.last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => merged.push((start, end)),
            }
        }
        Self(merged)
    }

    pub(crate) fn has(&self, leaf: &Leaf) -> bool {
        let (start, end) = leaf.range();
        let before = self.0.partition_point(|range| range.0 <= start);
        start == end || before > 0 && end <= self.0[before - 1].1
    }
}
