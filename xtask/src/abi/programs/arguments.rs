//! Arguments of callers, and their checks in fake libraries.
//!
//! All arguments are passed as bytes, which show a different size. Marks show two other changes: an
//! enumerator whose number differs between versions is passed by its name, and a field whose offset
//! differs in a struct of the same size contains a number derived from its name.

use std::collections::{BTreeMap, BTreeSet};

use gpustub_cdecl::{Declared, Leaf, Type, TypeId, Types, counts_others, is_handle, leaves};

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
    fn plain(types: &Types, of: &Type) -> Self {
        match of {
            Type::Pointer(_) => Self::Address,
            Type::Record { .. } => Self::Value(Value::new(types, of)),
            Type::Float(size) => Self::Float(size / 8),
            other => Self::Integer(size(other) / 8),
        }
    }
}

impl Value {
    fn new(types: &Types, record: &Type) -> Self {
        let bits = size(record);
        let leaves = leaves(types, record).unwrap_or_default();
        let is_vector = |word: u64| {
            let (from, to) = (64 * word, 64 * (word + 1));
            let inside = leaves
                .iter()
                .filter(|leaf| leaf.offset < to && from < leaf.offset + leaf.size);
            let mut inside = inside.map(|leaf| is_float(types, leaf.of)).peekable();
            inside.peek().is_some() && inside.all(|is_float| is_float)
        };
        Self {
            size: bits / 8,
            vectors: if bits <= 128 {
                (0..bits.div_ceil(64)).map(is_vector).collect()
            } else {
                Vec::new()
            },
        }
    }

    /// Name that differs between structs with different calling conventions.
    pub fn name(&self) -> String {
        let letter = |is_vector: &bool| if *is_vector { 'v' } else { 'i' };
        let letters: String = self.vectors.iter().map(letter).collect();
        if letters.is_empty() {
            self.size.to_string()
        } else {
            format!("{}_{letters}", self.size)
        }
    }

    /// C declarations of the fields: 4 bytes each, passed regardless of their meaning.
    pub fn fields(&self) -> String {
        let field = |at: u64| {
            let is_vector = usize::try_from(at / 2)
                .ok()
                .and_then(|at| self.vectors.get(at));
            match is_vector {
                Some(true) => format!("float of{at};"),
                _ => format!("unsigned int of{at};"),
            }
        };
        let fields: Vec<_> = (0..self.size.div_ceil(4)).map(field).collect();
        fields.join(" ")
    }
}

fn is_float(types: &Types, id: TypeId) -> bool {
    match types.get(id) {
        Type::Float(_) => true,
        Type::Array { element, .. } => is_float(types, *element),
        _ => false,
    }
}

impl Returned {
    pub fn new(declared: &Declared) -> Self {
        let types = &declared.types;
        let of = match types.get(declared.function) {
            Type::Function(parts) => parts.first().map_or(&Type::Void, |id| types.get(*id)),
            _ => &Type::Void,
        };
        match of {
            Type::Void => Self::Nothing,
            Type::Integer(32) | Type::Enum { .. } => Self::Status,
            other => Self::Other(Argument::plain(types, other)),
        }
    }

    /// C type that is returned in the same way.
    pub fn spelled(&self) -> String {
        match self {
            Self::Status => "int".into(),
            Self::Nothing => "void".into(),
            Self::Other(other) => other.spelled(),
        }
    }
}

/// Numbers of the arguments that point to constants, and the sizes of these in bytes.
fn constant(declared: &Declared) -> Vec<(usize, u64)> {
    let types = &declared.types;
    let pointee = |id: &TypeId| match types.get(*id) {
        Type::Pointer(of) if types.is_constant(*of) => Some(size(types.get(*of)) / 8),
        _ => None,
    };
    let ids = ids(declared).iter().enumerate();
    ids.filter_map(|(at, id)| Some((at, pointee(id)?)))
        .collect()
}

/// Number of arguments that point to memory of a known size which the function may write.
fn written(declared: &Declared) -> usize {
    let types = &declared.types;
    let is_written = |id: &&TypeId| match types.get(**id) {
        Type::Pointer(of) => !types.is_constant(*of) && size(types.get(*of)) > 0,
        _ => false,
    };
    ids(declared).iter().filter(is_written).count()
}

/// Size in bits; 0 if unknown.
pub fn size(of: &Type) -> u64 {
    match of {
        Type::Integer(size) | Type::Float(size) => *size,
        Type::Array { size, .. } | Type::Enum { size, .. } => *size,
        Type::Record { size, members, .. } => members.as_ref().map_or(0, |_| *size),
        Type::Pointer(_) => 64,
        Type::Void | Type::Function(_) => 0,
    }
}

/// The types of the arguments.
pub fn ids(declared: &Declared) -> &[TypeId] {
    match declared.types.get(declared.function) {
        Type::Function(parts) => parts.get(1..).unwrap_or_default(),
        _ => &[],
    }
}

/// Type of an argument or of its pointee, and the leaves of that type.
fn parts(types: &Types, id: TypeId) -> (&Type, Vec<Leaf>) {
    let (of, id) = match types.get(id) {
        Type::Pointer(pointee) => (types.get(*pointee), *pointee),
        of => (of, id),
    };
    let found = match of {
        Type::Record { .. } => leaves(types, of).unwrap_or_default(),
        Type::Enum { size, .. } => vec![Leaf {
            path: String::new(),
            offset: 0,
            size: *size,
            of: id,
        }],
        _ => Vec::new(),
    };
    (of, found)
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
    pub fn new(all: &[Declared]) -> Self {
        let mut numbers: BTreeMap<String, Vec<i128>> = BTreeMap::new();
        let mut places: BTreeMap<(usize, String), Vec<FieldLayout>> = BTreeMap::new();
        for declared in all {
            let types = &declared.types;
            let mut here = BTreeMap::new();
            for (at, id) in ids(declared).iter().enumerate() {
                let (of, leaves) = parts(types, *id);
                for leaf in leaves {
                    if let Type::Enum { values, .. } = types.get(leaf.of) {
                        here.extend(values.clone());
                    }
                    let (offset, bits) = leaf.place();
                    let place = (size(of), offset, bits);
                    places.entry((at, leaf.path)).or_default().push(place);
                }
            }
            for (name, number) in here {
                numbers.entry(name).or_default().push(number);
            }
        }
        let differ = |numbers: &[i128]| numbers.iter().any(|n| *n != numbers[0]);
        let moves = |places: &[FieldLayout]| {
            let (whole, offset, bits) = places[0];
            let fits = |bits: u64| [8, 16, 32, 64].contains(&bits);
            // The bytes show another size.
            let comparable = |(w, o, b): &FieldLayout| *w == whole && o % 8 == 0 && fits(*b);
            places.iter().all(comparable)
                && places.iter().any(|(_, o, b)| (*o, *b) != (offset, bits))
        };
        // A name with `_V1` keeps the meaning of the number.
        let keeps = |name: &str| numbers.contains_key(&format!("{name}_V1"));
        let enumerators = numbers.iter().filter(|(name, numbers)| {
            numbers.len() == all.len() && differ(numbers) && !counts_others(name) && !keeps(name)
        });
        let fields = places
            .iter()
            .filter(|(_, places)| places.len() == all.len() && moves(places));
        // An argument that became an input may have been written before, if another is written instead: trmm of ROCm 6.
        let most_written = all.iter().map(written).max().unwrap_or(0);
        Self {
            enumerators: enumerators.map(|(name, _)| name.clone()).collect(),
            fields: fields.map(|(field, _)| field.clone()).collect(),
            constant: all
                .iter()
                .filter(|declared| written(declared) < most_written)
                .flat_map(constant)
                .collect(),
        }
    }

    /// Whether versions have different numbers for an enumerator.
    pub fn is_renumbered(&self, enumerator: &str) -> bool {
        self.enumerators.contains(enumerator)
    }

    pub fn arguments(&self, declared: &Declared) -> Vec<Argument> {
        let types = &declared.types;
        let arguments = ids(declared).iter().enumerate();
        arguments
            .map(|(at, id)| self.argument(types, at, *id))
            .collect()
    }

    fn argument(&self, types: &Types, at: usize, id: TypeId) -> Argument {
        let marks = self.marks(types, at, id);
        let pointee = match types.get(id) {
            Type::Pointer(pointee) => *pointee,
            other => return Argument::plain(types, other),
        };
        match (types.get(pointee), types.is_constant(pointee)) {
            // Text, or the buffer for one.
            (Type::Integer(8), _) => Argument::Address,
            (of, _) if is_handle(of) => Argument::Address,
            (of, constant) => match size(of) / 8 {
                0 => Argument::Address,
                // cudaMemcpyBatchAsync reads its arrays in all versions, but 13.0 added `const`.
                size if constant || self.constant.contains(&(at, size)) => {
                    Argument::Input(size, marks)
                }
                size => Argument::Output(size, marks),
            },
        }
    }

    fn marks(&self, types: &Types, at: usize, id: TypeId) -> Vec<Mark> {
        let mut marks: Vec<Mark> = Vec::new();
        for leaf in parts(types, id).1 {
            let (offset, size) = (leaf.offset / 8, leaf.size / 8);
            let part = match types.get(leaf.of) {
                Type::Enum { values, .. } => values
                    .keys()
                    .find(|name| self.is_renumbered(name))
                    .map(|name| Part::Enumerator(name.clone(), values.clone())),
                _ => None,
            };
            let part = part.or_else(|| {
                let field = (at, leaf.path);
                self.fields.contains(&field).then_some(Part::Field(field.1))
            });
            // Only the first member of a union.
            let is_new = marks.iter().all(|mark| mark.offset != offset);
            if let Some(part) = part.filter(|_| is_new) {
                marks.push(Mark { offset, size, part });
            }
        }
        marks
    }
}
