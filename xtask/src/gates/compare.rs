//! Whether a function as one version declares it can be called as another declares it.
//!
//! The rule: no memory is written beyond, and no argument misread by, what the types of the
//! caller's header hold. So these are differences: another count, class or size of arguments;
//! behind a pointer, at any depth, a struct of another size, a field that moved, went away or took
//! what was padding (which a caller leaves as it is); an enumerator that has another number. These
//! are none: other names of types, qualifiers, signs; an integer for a pointer of the same size; a
//! field renamed in place; a new field in bytes that the older header names as reserved, or in a
//! union of the same size, which callers set to zero; new enumerators, and those that count others.

use std::collections::{BTreeMap, HashSet};

use gpustub_core::gates::MOST_ARGUMENTS;

use super::headers::Declared;
use super::types::{Member, Type, TypeId, Types};

/// `Err` says what differs.
pub fn same(older: &Declared, newer: &Declared) -> Result<(), String> {
    same_parts((&older.types, &parts(older)), (&newer.types, &parts(newer)))
}

/// Whether a call of the older can be made as one of the newer that has a null pointer as this
/// argument more, all in registers. `Err` says why not.
pub fn takes_null(older: &Declared, newer: &Declared, argument: u8) -> Result<(), String> {
    let mut with = parts(newer);
    let fits = |id: &TypeId| in_register(newer.types.get(*id)).is_some_and(|size| size <= 64);
    if with.len() > usize::from(MOST_ARGUMENTS) + 1 || !with.iter().all(fits) {
        return Err(format!("not {MOST_ARGUMENTS} integers and pointers"));
    }
    let at = usize::from(argument) + 1;
    if !with
        .get(at)
        .is_some_and(|id| matches!(newer.types.get(*id), Type::Pointer(_)))
    {
        return Err(format!("argument {argument} is no pointer"));
    }
    with.remove(at);
    same_parts((&older.types, &parts(older)), (&newer.types, &with))
}

/// The result and the arguments.
fn parts(declared: &Declared) -> Vec<TypeId> {
    match declared.types.get(declared.function) {
        Type::Function(parts) => parts.clone(),
        _ => Vec::new(),
    }
}

fn same_parts(
    (older, a): (&Types, &[TypeId]),
    (newer, b): (&Types, &[TypeId]),
) -> Result<(), String> {
    let mut pair = Pair {
        older,
        newer,
        seen: HashSet::new(),
    };
    if a.len() != b.len() {
        let count = |parts: &[TypeId]| parts.len().saturating_sub(1);
        return Err(format!("{} -> {} arguments", count(a), count(b)));
    }
    for (index, (&a, &b)) in a.iter().zip(b).enumerate() {
        pair.types(a, b).map_err(|e| match index {
            0 => format!("result: {e}"),
            _ => format!("argument {}: {e}", index - 1),
        })?;
    }
    Ok(())
}

struct Pair<'a> {
    older: &'a Types,
    newer: &'a Types,
    /// Pairs behind pointers that are compared, or being compared.
    seen: HashSet<(TypeId, TypeId)>,
}

impl Pair<'_> {
    fn types(&mut self, a: TypeId, b: TypeId) -> Result<(), String> {
        let (older, newer) = (self.older, self.newer);
        let (old, new) = (older.get(a), newer.get(b));
        match (old, new) {
            (Type::Pointer(a), Type::Pointer(b)) => self.pointees(*a, *b),
            (
                Type::Array {
                    element: a,
                    size: m,
                },
                Type::Array {
                    element: b,
                    size: n,
                },
            ) if m == n => self.types(*a, *b),
            (Type::Record { .. }, Type::Record { .. }) => self.records(old, new),
            (
                Type::Enum {
                    values: x,
                    size: m,
                    name,
                },
                Type::Enum {
                    values: y, size: n, ..
                },
            ) if m == n => {
                for (enumerator, was) in x {
                    if let Some(is) = y.get(enumerator) {
                        if was != is
                            && !counts_others(enumerator)
                            && !keeps_number(x, y, enumerator)
                        {
                            return Err(format!("{name}: {enumerator} {was} -> {is}"));
                        }
                    }
                }
                Ok(())
            }
            (Type::Void, Type::Void) => Ok(()),
            (Type::Float(m), Type::Float(n)) if m == n => Ok(()),
            _ => match (in_register(old), in_register(new)) {
                (Some(m), Some(n)) if m == n => Ok(()),
                _ => Err(format!("{} -> {}", describe(old), describe(new))),
            },
        }
    }

    fn pointees(&mut self, a: TypeId, b: TypeId) -> Result<(), String> {
        let is_opaque = |of: &Type| {
            matches!(
                of,
                Type::Void | Type::Function(_) | Type::Record { members: None, .. }
            ) || matches!(of, Type::Record { name, .. } if HANDLES.contains(&name.as_str()))
        };
        if is_opaque(self.older.get(a)) || is_opaque(self.newer.get(b)) || !self.seen.insert((a, b))
        {
            return Ok(());
        }
        self.types(a, b)
    }

    fn records(&mut self, old: &Type, new: &Type) -> Result<(), String> {
        let (Type::Record { name, size: m, .. }, Type::Record { size: n, .. }) = (old, new) else {
            return Ok(());
        };
        let name = if name.is_empty() {
            "a struct"
        } else {
            name.as_str()
        };
        if m != n {
            return Err(format!("{name}: {} -> {} bytes", m / 8, n / 8));
        }
        if HANDLES.contains(&name) {
            return Ok(());
        }
        let (a, b) = (leaves(self.older, old), leaves(self.newer, new));
        for leaf in a.iter().filter(|leaf| !leaf.is_reserved()) {
            let named = b.iter().find(|other| other.path == leaf.path);
            let instead = named.or_else(|| {
                let mut others = b.iter().filter(|other| !other.is_reserved());
                others.find(|other| other.place() == leaf.place())
            });
            let what = || format!("{name}.{}", leaf.path);
            let Some(other) = instead else {
                return Err(format!("{} is gone", what()));
            };
            if other.place() != leaf.place() {
                return Err(format!(
                    "{}: byte {} -> {}",
                    what(),
                    leaf.offset / 8,
                    other.offset / 8
                ));
            }
            self.types(leaf.of, other.of)
                .map_err(|e| format!("{}: {e}", what()))?;
        }
        for leaf in b.iter().filter(|leaf| !leaf.is_reserved()) {
            let mut bits = leaf.offset..leaf.offset + leaf.size;
            let held = |bit| {
                a.iter()
                    .any(|old| (old.offset..old.offset + old.size).contains(&bit))
            };
            if !bits.all(held) {
                return Err(format!("{name}.{} takes padding", leaf.path));
            }
        }
        Ok(())
    }
}

/// A field that is no record itself.
pub struct Leaf {
    /// With the names of the structs and unions around it, but for anonymous ones.
    pub path: String,
    pub offset: u64,
    pub size: u64,
    pub of: TypeId,
}

impl Leaf {
    pub fn place(&self) -> (u64, u64) {
        (self.offset, self.size)
    }

    fn is_reserved(&self) -> bool {
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

pub fn leaves(types: &Types, record: &Type) -> Vec<Leaf> {
    fn add(types: &Types, record: &Type, path: &str, offset: u64, found: &mut Vec<Leaf>) {
        let Type::Record {
            members: Some(members),
            ..
        } = record
        else {
            return;
        };
        for Member {
            name,
            offset: at,
            size,
            of,
            ..
        } in members
        {
            let path = match (path, name.as_str()) {
                ("", name) | (name, "") => name.to_owned(),
                (path, name) => format!("{path}.{name}"),
            };
            let offset = offset + at;
            match types.get(*of) {
                inner @ Type::Record { name, .. } if !HANDLES.contains(&name.as_str()) => {
                    add(types, inner, &path, offset, found)
                }
                _ => found.push(Leaf {
                    path,
                    offset,
                    size: *size,
                    of: *of,
                }),
            }
        }
    }
    let mut found = Vec::new();
    add(types, record, "", 0, &mut found);
    found
}

/// Structs that HIP's headers show, though only the library makes them: programs pass pointers, or in
/// hipArrayMapInfo a copy.
const HANDLES: [&str; 2] = ["hipArray", "hipMipmappedArray"];

/// Whether the enumerator is no value but tells how many there are.
pub fn counts_others(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let ends = [
        "MAX",
        "COUNT",
        "LAST",
        "NUM_OPTIONS",
        "NUMOPTIONS",
        "FLAGS_MASK",
        "LIMITRANGE",
    ];
    ends.iter().any(|end| name.ends_with(end))
}

/// Whether it is the name that moved, while both numbers go on to mean what they meant, the old one
/// under the name with `_V1`: callers pass numbers, so none is misread.
fn keeps_number(old: &BTreeMap<String, i128>, new: &BTreeMap<String, i128>, name: &str) -> bool {
    let number = new.get(name);
    new.get(&format!("{name}_V1")) == old.get(name)
        && (old.get(&format!("{name}_V2")) == number || !old.values().any(|n| Some(n) == number))
}

/// The size of what goes into an integer register.
fn in_register(of: &Type) -> Option<u64> {
    match of {
        Type::Integer(size) | Type::Enum { size, .. } => Some(*size),
        Type::Pointer(_) => Some(64),
        _ => None,
    }
}

fn describe(of: &Type) -> String {
    match of {
        Type::Void => "nothing".into(),
        Type::Integer(size) | Type::Enum { size, .. } => format!("{} bytes", size / 8),
        Type::Float(size) => format!("{} bytes of a float", size / 8),
        Type::Pointer(_) => "a pointer".into(),
        Type::Function(_) => "a function".into(),
        Type::Array { size, .. } => format!("an array of {} bytes", size / 8),
        Type::Record { name, size, .. } => format!("{name} of {} bytes", size / 8),
    }
}

#[cfg(test)]
mod tests {
    use super::super::headers::Headers;
    use super::*;

    fn declared(text: &str) -> Declared {
        let headers = Headers {
            include: &[],
            defines: &[],
            modes: &[],
            prefixes: &["gpu"],
        };
        headers.declared(text).unwrap().remove(0).1
    }

    /// What the two differ in.
    fn difference(older: &str, newer: &str) -> Option<String> {
        same(&declared(older), &declared(newer)).err()
    }

    #[test]
    #[ignore = "needs clang (tests/run)"]
    fn what_would_be_misread_is_a_difference() {
        let cases = [
            ("int gpuA(int);", "int gpuA(int, int);", "1 -> 2 arguments"),
            (
                "int gpuA(int);",
                "int gpuA(long);",
                "argument 0: 4 bytes -> 8 bytes",
            ),
            (
                "void gpuA(int);",
                "int gpuA(int);",
                "result: nothing -> 4 bytes",
            ),
            (
                "int gpuA(long);",
                "int gpuA(double);",
                "argument 0: 8 bytes -> 8 bytes of a float",
            ),
            (
                "int gpuA(long *);",
                "int gpuA(int *);",
                "argument 0: 8 bytes -> 4 bytes",
            ),
            (
                "struct s { int a; }; int gpuA(int);",
                "struct s { int a; }; int gpuA(struct s);",
                "argument 0: 4 bytes -> s of 4 bytes",
            ),
            (
                "struct s { int a; }; struct t { const struct s *s; }; int gpuA(const struct t *);",
                "struct s { int a, b; }; struct t { const struct s *s; }; int gpuA(const struct t *);",
                "argument 0: t.s: s: 4 -> 8 bytes",
            ),
            (
                "struct s { int a, b; }; int gpuA(struct s *);",
                "struct s { int b, a; }; int gpuA(struct s *);",
                "argument 0: s.a: byte 0 -> 4",
            ),
            (
                "struct s { int a; long b; }; int gpuA(struct s *);",
                "struct s { int a, c; long b; }; int gpuA(struct s *);",
                "argument 0: s.c takes padding",
            ),
            (
                "struct s { int a, b; }; int gpuA(struct s *);",
                "struct s { int a, reserved; }; int gpuA(struct s *);",
                "argument 0: s.b is gone",
            ),
            (
                "struct s { unsigned a : 3, b : 2; }; int gpuA(struct s *);",
                "struct s { unsigned a : 3, c : 1, b : 2; }; int gpuA(struct s *);",
                "argument 0: s.b: byte 0 -> 0",
            ),
            (
                "enum e { ONE, TWO }; int gpuA(enum e);",
                "enum e { ZERO, ONE, TWO }; int gpuA(enum e);",
                "argument 0: e: ONE 0 -> 1",
            ),
        ];
        for (older, newer, reason) in cases {
            assert_eq!(
                difference(older, newer).as_deref(),
                Some(reason),
                "{older}\n{newer}"
            );
        }
    }

    #[test]
    #[ignore = "needs clang (tests/run)"]
    fn what_reads_the_same_is_none() {
        let cases = [
            (
                "int gpuA(const char *);",
                "typedef int status; status gpuA(char *name);",
            ),
            ("int gpuA(unsigned long);", "int gpuA(void *);"),
            (
                "struct s; int gpuA(struct s *);",
                "struct s { int a; }; int gpuA(struct s *);",
            ),
            ("int gpuA(int (*)(int));", "int gpuA(int (*)(long, long));"),
            (
                "struct s { int a, b; }; int gpuA(struct s *);",
                "typedef struct { int a, better; } t; int gpuA(t *);",
            ),
            (
                "struct s { int a; int reserved[7]; }; int gpuA(struct s *);",
                "struct s { int a, b; int reserved[6]; }; int gpuA(struct s *);",
            ),
            (
                "struct s { int a; union { int b; char pad[64]; } u; }; int gpuA(struct s *);",
                "struct s { int a; union { int b; int c[8]; char pad[64]; } u; }; int gpuA(struct s *);",
            ),
            (
                "struct s { int a; }; int gpuA(struct s *);",
                "struct s { union { int a; float f; }; }; int gpuA(struct s *);",
            ),
            (
                "struct s { struct s *next; }; int gpuA(struct s *);",
                "struct s { struct s *next; }; int gpuA(struct s *);",
            ),
            (
                "enum e { ONE, E_MAX }; int gpuA(enum e);",
                "enum e { ONE, TWO, E_MAX }; int gpuA(enum e);",
            ),
            (
                "enum e { OPS = 3, OPS_V2 = 9 }; int gpuA(enum e);",
                "enum e { OPS_V1 = 3, OPS = 9 }; int gpuA(enum e);",
            ),
        ];
        for (older, newer) in cases {
            assert_eq!(difference(older, newer), None, "{older}\n{newer}");
        }
    }
}
