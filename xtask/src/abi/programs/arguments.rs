//! Arguments of callers, and their checks in fake libraries.
//!
//! All arguments are passed as bytes, which show a different size. Marks show two other changes: an
//! enumerator whose number differs between versions is passed by its name, and a field whose offset
//! differs in a struct of the same size contains a number derived from its name.

use std::collections::{BTreeMap, BTreeSet};

use gpustub_cdecl::{
    DeclaredFunction, Leaf, Type, TypeId, Types, counts_others, is_handle, leaves,
};

/// Kind of an argument. Sizes are in bytes.
pub enum Argument {
    Integer(u64),
    Float(u64),
    Value(Value),
    /// A handle, text or buffer, whose contents are not inspected.
    Address,
    Input(u64, Vec<Mark>),
    Output(u64, Vec<Mark>),
}

/// A struct by value.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Value {
    pub size: u64,
    /// For each 8 bytes whether they go into a vector register, as those of only floats do; empty for
    /// structs in memory (x86-64 psABI, 3.2.3: more than 16 bytes).
    pub vectors: Vec<bool>,
}

/// Kind of a result.
pub enum Returned {
    Status,
    Nothing,
    Other(Argument),
}

/// A part of the pointee of an argument.
pub struct Mark {
    pub offset: u64,
    pub size: u64,
    pub part: Part,
}

pub enum Part {
    /// The enumerator to pass, and the numbers of all enumerators.
    Enumerator(String, BTreeMap<String, i128>),
    /// The path of a field.
    Field(String),
}

impl Argument {
    /// C type that is passed in the same way.
    pub fn spelled(&self) -> String {
        match self {
            Self::Integer(1) => "unsigned char".into(),
            Self::Integer(2) => "unsigned short".into(),
            Self::Integer(4) => "unsigned int".into(),
            Self::Integer(_) => "unsigned long".into(),
            Self::Float(4) => "float".into(),
            Self::Float(8) => "double".into(),
            Self::Float(_) => "long double".into(),
            Self::Value(value) => format!("struct value{}", value.name()),
            _ => "void *".into(),
        }
    }

    /// An argument that is passed unchanged.
    fn plain(types: &Types, ty: &Type) -> Self {
        match ty {
            Type::Pointer(_) => Self::Address,
            Type::Record { .. } => Self::Value(Value::new(types, ty)),
            Type::Float(size) => Self::Float(size / 8),
            _ => Self::Integer(size(ty) / 8),
        }
    }
}

impl Value {
    fn new(types: &Types, record: &Type) -> Self {
        let bits = size(record);
        let leaves = leaves(types, record).unwrap_or_default();
        Self {
            size: bits / 8,
            vectors: if bits <= 128 {
                (0..bits.div_ceil(64))
                    .map(|word| is_vector(types, &leaves, word))
                    .collect()
            } else {
                Vec::new()
            },
        }
    }

    /// Name that differs between structs with different calling conventions.
    pub fn name(&self) -> String {
        let mut name = self.size.to_string();
        if !self.vectors.is_empty() {
            name.push('_');
        }
        for is_vector in &self.vectors {
            name.push(if *is_vector { 'v' } else { 'i' });
        }
        name
    }

    /// C declarations of the fields: 4 bytes each, passed regardless of their meaning.
    pub fn fields(&self) -> String {
        let mut fields = Vec::new();
        for number in 0..self.size.div_ceil(4) {
            let word = usize::try_from(number / 2).ok();
            let is_vector = word.and_then(|word| self.vectors.get(word));
            fields.push(match is_vector {
                Some(true) => format!("float of{number};"),
                _ => format!("unsigned int of{number};"),
            });
        }
        fields.join(" ")
    }
}

/// Whether 8 bytes of a struct go into a vector register: they have fields, which are all floats.
fn is_vector(types: &Types, leaves: &[Leaf], word: u64) -> bool {
    let (start, end) = (64 * word, 64 * (word + 1));
    let mut has_fields = false;
    for leaf in leaves {
        if leaf.offset < end && start < leaf.offset + leaf.size {
            if !is_float(types, leaf.type_id) {
                return false;
            }
            has_fields = true;
        }
    }
    has_fields
}

fn is_float(types: &Types, id: TypeId) -> bool {
    match types.get(id) {
        Type::Float(_) => true,
        Type::Array { element, .. } => is_float(types, *element),
        _ => false,
    }
}

impl Returned {
    pub fn new(declared: &DeclaredFunction) -> Self {
        let types = &declared.types;
        let ty = match types.get(declared.function) {
            Type::Function(parts) => parts.first().map_or(&Type::Void, |id| types.get(*id)),
            _ => &Type::Void,
        };
        match ty {
            Type::Void => Self::Nothing,
            Type::Integer(32) | Type::Enum { .. } => Self::Status,
            _ => Self::Other(Argument::plain(types, ty)),
        }
    }

    /// C type that is returned in the same way.
    pub fn spelled(&self) -> String {
        match self {
            Self::Status => "int".into(),
            Self::Nothing => "void".into(),
            Self::Other(argument) => argument.spelled(),
        }
    }
}

/// Numbers of the arguments that point to constants, and the sizes of these in bytes.
fn constant(declared: &DeclaredFunction) -> Vec<(usize, u64)> {
    let types = &declared.types;
    let mut constants = Vec::new();
    for (index, id) in ids(declared).iter().enumerate() {
        if let Type::Pointer(pointee) = types.get(*id)
            && types.is_constant(*pointee)
        {
            constants.push((index, size(types.get(*pointee)) / 8));
        }
    }
    constants
}

/// Number of arguments that point to memory of a known size which the function may write.
fn written(declared: &DeclaredFunction) -> usize {
    let types = &declared.types;
    ids(declared)
        .iter()
        .filter(|id| match types.get(**id) {
            Type::Pointer(pointee) => !types.is_constant(*pointee) && size(types.get(*pointee)) > 0,
            _ => false,
        })
        .count()
}

/// Size in bits; 0 if unknown.
pub fn size(ty: &Type) -> u64 {
    match ty {
        Type::Integer(size) | Type::Float(size) => *size,
        Type::Array { size, .. } | Type::Enum { size, .. } => *size,
        Type::Record { size, members, .. } => members.as_ref().map_or(0, |_| *size),
        Type::Pointer(_) => 64,
        Type::Void | Type::Function(_) => 0,
    }
}

/// The types of the arguments.
pub fn ids(declared: &DeclaredFunction) -> &[TypeId] {
    match declared.types.get(declared.function) {
        Type::Function(parts) => parts.get(1..).unwrap_or_default(),
        _ => &[],
    }
}

/// Type of an argument or of its pointee, and the leaves of that type.
fn parts(types: &Types, id: TypeId) -> (&Type, Vec<Leaf>) {
    let id = match types.get(id) {
        Type::Pointer(pointee) => *pointee,
        _ => id,
    };
    let ty = types.get(id);
    let leaves = match ty {
        Type::Record { .. } => leaves(types, ty).unwrap_or_default(),
        Type::Enum { size, .. } => vec![Leaf {
            path: String::new(),
            offset: 0,
            size: *size,
            type_id: id,
        }],
        _ => Vec::new(),
    };
    (ty, leaves)
}

/// Size of a struct, and offset and size of a field in it, in bits.
type FieldLayout = (u64, u64, u64);

/// Differences under one name between the versions of some functions, which bytes do not show.
#[derive(Default)]
pub struct Differences {
    enumerators: BTreeSet<String>,
    /// Paths of fields, with the numbers of the arguments that point to them.
    fields: BTreeSet<(usize, String)>,
    /// Numbers of arguments, and the sizes of their pointees in bytes, that any version declares as constant.
    constant: BTreeSet<(usize, u64)>,
}

impl Differences {
    pub fn new(declarations: &[DeclaredFunction]) -> Self {
        let mut enumerators: BTreeMap<String, Vec<i128>> = BTreeMap::new();
        let mut layouts: BTreeMap<(usize, String), Vec<FieldLayout>> = BTreeMap::new();
        for declared in declarations {
            let types = &declared.types;
            let mut numbers = BTreeMap::new();
            for (index, id) in ids(declared).iter().enumerate() {
                let (ty, leaves) = parts(types, *id);
                for leaf in leaves {
                    if let Type::Enum { values, .. } = types.get(leaf.type_id) {
                        numbers.extend(values.clone());
                    }
                    let (offset, bits) = leaf.place();
                    let layout = (size(ty), offset, bits);
                    layouts.entry((index, leaf.path)).or_default().push(layout);
                }
            }
            for (name, number) in numbers {
                enumerators.entry(name).or_default().push(number);
            }
        }
        let mut differences = Self::default();
        for (name, numbers) in &enumerators {
            // A name with `_V1` keeps the meaning of the number.
            if numbers.len() == declarations.len()
                && numbers.iter().any(|number| *number != numbers[0])
                && !counts_others(name)
                && !enumerators.contains_key(&format!("{name}_V1"))
            {
                differences.enumerators.insert(name.clone());
            }
        }
        for (field, layouts) in layouts {
            if layouts.len() == declarations.len() && moves(&layouts) {
                differences.fields.insert(field);
            }
        }
        // An argument that became an input may have been written before, if another is written instead: trmm of ROCm 6.
        let most_written = declarations.iter().map(written).max().unwrap_or(0);
        for declared in declarations {
            if written(declared) < most_written {
                differences.constant.extend(constant(declared));
            }
        }
        differences
    }

    /// Whether versions have different numbers for an enumerator.
    pub fn is_renumbered(&self, enumerator: &str) -> bool {
        self.enumerators.contains(enumerator)
    }

    pub fn arguments(&self, declared: &DeclaredFunction) -> Vec<Argument> {
        ids(declared)
            .iter()
            .enumerate()
            .map(|(index, id)| self.argument(&declared.types, index, *id))
            .collect()
    }

    fn argument(&self, types: &Types, index: usize, id: TypeId) -> Argument {
        let marks = self.marks(types, index, id);
        let pointee = match types.get(id) {
            Type::Pointer(pointee) => *pointee,
            ty => return Argument::plain(types, ty),
        };
        match (types.get(pointee), types.is_constant(pointee)) {
            // Text, or the buffer for one.
            (Type::Integer(8), _) => Argument::Address,
            (ty, _) if is_handle(ty) => Argument::Address,
            (ty, constant) => match size(ty) / 8 {
                0 => Argument::Address,
                // cudaMemcpyBatchAsync reads its arrays in all versions, but 13.0 added `const`.
                size if constant || self.constant.contains(&(index, size)) => {
                    Argument::Input(size, marks)
                }
                size => Argument::Output(size, marks),
            },
        }
    }

    fn marks(&self, types: &Types, index: usize, id: TypeId) -> Vec<Mark> {
        let mut marks: Vec<Mark> = Vec::new();
        for leaf in parts(types, id).1 {
            let (offset, size) = (leaf.offset / 8, leaf.size / 8);
            // Only the first member of a union.
            if marks.iter().any(|mark| mark.offset == offset) {
                continue;
            }
            let part = match types.get(leaf.type_id) {
                Type::Enum { values, .. } => values
                    .keys()
                    .find(|name| self.is_renumbered(name))
                    .map(|name| Part::Enumerator(name.clone(), values.clone())),
                _ => None,
            };
            let field = (index, leaf.path);
            if let Some(part) = part {
                marks.push(Mark { offset, size, part });
            } else if self.fields.contains(&field) {
                let part = Part::Field(field.1);
                marks.push(Mark { offset, size, part });
            }
        }
        marks
    }
}

/// Whether a field moves within a struct, in a way that bytes do not show.
fn moves(layouts: &[FieldLayout]) -> bool {
    let (struct_size, ..) = layouts[0];
    // The bytes show another size.
    let is_hidden = layouts.iter().all(|(size, offset, bits)| {
        *size == struct_size && offset % 8 == 0 && [8, 16, 32, 64].contains(bits)
    });
    is_hidden && layouts.iter().any(|layout| *layout != layouts[0])
}
