//! Fields of the structs that callers and fake libraries exchange, each by its own header.

use std::collections::BTreeMap;

use gpustub_cdecl::{Declared, Leaf, Type, TypeId, Types, is_handle, leaves};

use super::arguments::{Differences, ids, size};

/// A field of the struct that an argument is or points to. Sizes are in bytes.
pub struct Field {
    /// Path; `*` for memory that is no struct.
    pub path: String,
    pub offset: u64,
    pub size: u64,
    /// An enumerator, and the numbers of all, if versions differ in them.
    pub enumerator: Option<(String, BTreeMap<String, i128>)>,
}

impl Field {
    fn overlaps(&self, other: &Self) -> bool {
        self.offset < other.offset + other.size && other.offset < self.offset + self.size
    }
}

/// Mark of reserved bytes before a path.
const RESERVED: char = '~';

impl Differences {
    /// Fields of each argument.
    pub fn fields(&self, declared: &Declared) -> Vec<Vec<Field>> {
        let types = &declared.types;
        let arguments = ids(declared).iter();
        arguments.map(|id| self.fields_of(types, *id)).collect()
    }

    fn fields_of(&self, types: &Types, id: TypeId) -> Vec<Field> {
        let (id, is_pointer) = match types.get(id) {
            Type::Pointer(pointee) => (*pointee, true),
            _ => (id, false),
        };
        let of = types.get(id);
        match of {
            Type::Record { .. } if !is_handle(of) => {
                let leaves = whole_bytes(leaves(types, of).unwrap_or_default());
                let (reserved, named): (Vec<Leaf>, Vec<Leaf>) =
                    leaves.into_iter().partition(Leaf::is_reserved);
                let mut fields: Vec<Field> = Vec::new();
                // Only the first member of a union.
                for leaf in named {
                    let field = self.field(types, &leaf);
                    if field.size > 0 && !fields.iter().any(|other| other.overlaps(&field)) {
                        fields.push(field);
                    }
                }
                // The bytes of a reserved member after the other members of its union.
                for leaf in reserved {
                    let mut field = self.field(types, &leaf);
                    let end = field.offset + field.size;
                    let inside = fields.iter().filter(|other| other.overlaps(&field));
                    let last = inside.map(|other| other.offset + other.size).max();
                    field.offset = last.unwrap_or(field.offset).min(end);
                    field.size = end - field.offset;
                    if field.size > 0 {
                        fields.push(field);
                    }
                }
                fields
            }
            _ if is_pointer => {
                let whole = Leaf {
                    path: "*".into(),
                    offset: 0,
                    size: size(of),
                    of: id,
                };
                Vec::from_iter((whole.size > 0).then(|| self.field(types, &whole)))
            }
            _ => Vec::new(),
        }
    }

    fn field(&self, types: &Types, leaf: &Leaf) -> Field {
        let enumerator = match types.get(leaf.of) {
            Type::Enum { values, .. } => {
                let name = values.keys().find(|name| self.is_renumbered(name));
                name.map(|name| (name.clone(), values.clone()))
            }
            _ => None,
        };
        let mut path = leaf.path.clone();
        if leaf.is_reserved() {
            path.insert(0, RESERVED);
        }
        Field {
            path,
            offset: leaf.offset / 8,
            size: leaf.size / 8,
            enumerator,
        }
    }
}

/// The leaves, with the bit-fields of a struct as one.
fn whole_bytes(leaves: Vec<Leaf>) -> Vec<Leaf> {
    let mut whole: Vec<Leaf> = Vec::new();
    let mut bits: BTreeMap<String, Leaf> = BTreeMap::new();
    for mut leaf in leaves {
        if leaf.offset % 8 == 0 && leaf.size % 8 == 0 {
            whole.push(leaf);
            continue;
        }
        let end = (leaf.offset + leaf.size).next_multiple_of(8);
        leaf.offset -= leaf.offset % 8;
        leaf.size = end - leaf.offset;
        leaf.path = match leaf.path.rsplit_once('.') {
            Some((parent, _)) => parent.to_owned(),
            None => "bits".to_owned(),
        };
        match bits.get_mut(&leaf.path) {
            Some(known) => known.size = known.size.max(end - known.offset),
            None => {
                bits.insert(leaf.path.clone(), leaf);
            }
        }
    }
    whole.extend(bits.into_values());
    whole.sort_by_key(|leaf| leaf.offset);
    whole
}
