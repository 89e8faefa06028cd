//! Fields of the structs that callers and fake libraries exchange, each by its own header.

use std::collections::BTreeMap;

use gpustub_cdecl::{DeclaredFunction, Leaf, Type, TypeId, Types, is_handle, leaves};

use super::arguments::{Differences, ids, size};

/// A field of the struct that an argument is or points to. Sizes are in bytes.
pub struct ArgumentField {
    /// Path; `*` for memory that is no struct.
    pub path: String,
    pub offset: u64,
    pub size: u64,
    /// An enumerator, and the numbers of all, if versions differ in them.
    pub enumerator: Option<(String, BTreeMap<String, i128>)>,
}

impl ArgumentField {
    fn end(&self) -> u64 {
        self.offset + self.size
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.offset < other.end() && other.offset < self.end()
    }
}

/// Mark of reserved bytes before a path.
const RESERVED: char = '~';

impl Differences {
    /// Fields of each argument.
    pub fn fields(&self, declared: &DeclaredFunction) -> Vec<Vec<ArgumentField>> {
        ids(declared)
            .iter()
            .map(|id| self.fields_of(&declared.types, *id))
            .collect()
    }

    fn fields_of(&self, types: &Types, id: TypeId) -> Vec<ArgumentField> {
        let (id, is_pointer) = match types.get(id) {
            Type::Pointer(pointee) => (*pointee, true),
            _ => (id, false),
        };
        let ty = types.get(id);
        match ty {
            Type::Record { .. } if !is_handle(ty) => {
                self.record_fields(types, leaves(types, ty).unwrap_or_default())
            }
            _ if is_pointer && size(ty) > 0 => {
                let pointee = Leaf {
                    path: "*".into(),
                    offset: 0,
                    size: size(ty),
                    type_id: id,
                };
                vec![self.field(types, &pointee)]
            }
            _ => Vec::new(),
        }
    }

    fn record_fields(&self, types: &Types, leaves: Vec<Leaf>) -> Vec<ArgumentField> {
        let (reserved, named): (Vec<Leaf>, Vec<Leaf>) = merge_bit_fields(leaves)
            .into_iter()
            .partition(Leaf::is_reserved);
        let mut fields: Vec<ArgumentField> = Vec::new();
        // Only the first member of a union.
        for leaf in named {
            let field = self.field(types, &leaf);
            if field.size > 0 && !fields.iter().any(|earlier| earlier.overlaps(&field)) {
                fields.push(field);
            }
        }
        // The bytes of a reserved member after the other members of its union.
        for leaf in reserved {
            let mut field = self.field(types, &leaf);
            let end = field.end();
            let members_end = fields
                .iter()
                .filter(|member| member.overlaps(&field))
                .map(ArgumentField::end)
                .max();
            field.offset = members_end.unwrap_or(field.offset).min(end);
            field.size = end - field.offset;
            if field.size > 0 {
                fields.push(field);
            }
        }
        fields
    }

    fn field(&self, types: &Types, leaf: &Leaf) -> ArgumentField {
        let enumerator = match types.get(leaf.type_id) {
            Type::Enum { values, .. } => values
                .keys()
                .find(|name| self.is_renumbered(name))
                .map(|name| (name.clone(), values.clone())),
            _ => None,
        };
        let mut path = leaf.path.clone();
        if leaf.is_reserved() {
            path.insert(0, RESERVED);
        }
        ArgumentField {
            path,
            offset: leaf.offset / 8,
            size: leaf.size / 8,
            enumerator,
        }
    }
}

/// The leaves, with the bit-fields of a struct as one.
fn merge_bit_fields(leaves: Vec<Leaf>) -> Vec<Leaf> {
    let mut merged: Vec<Leaf> = Vec::new();
    let mut bit_fields: BTreeMap<String, Leaf> = BTreeMap::new();
    for mut leaf in leaves {
        if leaf.offset % 8 == 0 && leaf.size % 8 == 0 {
            merged.push(leaf);
            continue;
        }
        let end = (leaf.offset + leaf.size).next_multiple_of(8);
        leaf.offset -= leaf.offset % 8;
        leaf.size = end - leaf.offset;
        leaf.path = match leaf.path.rsplit_once('.') {
            Some((parent, _)) => parent.to_owned(),
            None => "bits".to_owned(),
        };
        match bit_fields.get_mut(&leaf.path) {
            Some(first) => first.size = first.size.max(end - first.offset),
            None => {
                bit_fields.insert(leaf.path.clone(), leaf);
            }
        }
    }
    merged.extend(bit_fields.into_values());
    merged.sort_by_key(|leaf| leaf.offset);
    merged
}
