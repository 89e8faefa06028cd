//! C types, read from the debug information that clang writes as text (`-g -S -emit-llvm`).
//!
//! Debug information contains just the properties that decide a call: every typedef, struct, union,
//! enum and bit-field as the compiler laid it out, including anonymous ones, each as one line:
//!
//! ```text
//! !7 = distinct !DICompositeType(tag: DW_TAG_structure_type, name: "int2", size: 64, elements: !8)
//! !8 = !{!9, !10}
//! !9 = !DIDerivedType(tag: DW_TAG_member, name: "x", scope: !7, baseType: !2, size: 32)
//! ```
//!
//! Other lines are errors; types that are not known become `void`.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use crate::prototypes::Prototype;
use crate::rules::Rules;

/// Index of a type in its [`Types`].
pub type TypeId = u32;

/// `void`, which has no node.
pub const VOID: TypeId = u32::MAX;

/// Prefix of the variables whose types are queried.
pub(crate) const TYPE_QUERY: &str = "gpustub_type_of_";

/// Prefix of the variables whose types contain the values of macros: pointers to arrays, one byte longer.
pub(crate) const VALUE_QUERY: &str = "gpustub_value_of_";

/// A declared function.
#[derive(Debug, Clone)]
pub struct DeclaredFunction {
    /// Name of the function.
    pub name: String,
    /// Types that the function refers to.
    pub types: Rc<Types>,
    /// Type of the function.
    pub function: TypeId,
    /// The function as the header declares it.
    pub prototype: Rc<Prototype>,
    /// Types behind the function's untyped pointers, by the pattern that named them: compared like arguments.
    pub untyped_pointees: BTreeMap<String, TypeId>,
    /// Reviewed rules of the library.
    pub rules: Arc<Rules>,
}

/// A type without typedefs and qualifiers. Sizes are in bits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Type {
    /// No value, or an unknown type.
    Void,
    /// With or without sign; a character or truth value.
    Integer(u64),
    /// A floating-point number.
    Float(u64),
    /// Pointer to this type.
    Pointer(TypeId),
    /// Type of the result, then of the arguments. `VOID` as the last of several: `...`.
    Function(Vec<TypeId>),
    /// As many elements as fit.
    Array {
        /// Type of an element.
        element: TypeId,
        /// Size of all elements together.
        size: u64,
    },
    /// A struct or union.
    Record {
        /// Empty for an anonymous type.
        name: String,
        /// Size with padding.
        size: u64,
        /// `None` for an opaque type.
        members: Option<Vec<Member>>,
    },
    /// An enumeration.
    Enum {
        /// Empty for an anonymous type.
        name: String,
        /// Size of the integer type.
        size: u64,
        /// Enumerators.
        values: BTreeMap<String, i128>,
    },
}

/// A field of a struct or union.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Empty for an anonymous struct or union.
    pub name: String,
    /// Offset in bits, from the start of the struct.
    pub offset: u64,
    /// Size in bits.
    pub size: u64,
    /// Whether it is a bit-field.
    pub is_bit_field: bool,
    /// Type.
    pub type_id: TypeId,
}

/// Types of one compilation.
#[derive(Debug, Default)]
pub struct Types {
    nodes: HashMap<TypeId, Node>,
    /// Types qualified with `const`.
    constants: HashSet<TypeId>,
    /// Names of C's own types: `int`.
    basic: HashMap<TypeId, String>,
    /// Names of typedefs.
    typedefs: HashMap<TypeId, String>,
    /// Variables of pointer type, with the types that they point to.
    pub pointees: BTreeMap<String, TypeId>,
}

#[derive(Debug)]
enum Node {
    /// A typedef or a qualifier.
    Alias(TypeId),
    Type(Type),
}

impl Types {
    /// Looks up a type, without typedefs and qualifiers.
    pub fn get(&self, id: TypeId) -> &Type {
        match self.aliases(id).last().and_then(|id| self.nodes.get(&id)) {
            Some(Node::Type(resolved)) => resolved,
            _ => &Type::Void,
        }
    }

    /// Name of one of C's own types, such as `int`, without typedefs and qualifiers.
    pub fn basic_name(&self, id: TypeId) -> Option<&str> {
        let basic = self.aliases(id).last()?;
        self.basic.get(&basic).map(String::as_str)
    }

    /// Names of typedefs of a type, then of the struct, union or enum.
    pub fn names(&self, id: TypeId) -> impl Iterator<Item = &str> {
        let tag = match self.get(id) {
            Type::Record { name, .. } | Type::Enum { name, .. } if !name.is_empty() => Some(name),
            _ => None,
        };
        self.aliases(id)
            .filter_map(|id| self.typedefs.get(&id))
            .chain(tag)
            .map(String::as_str)
    }

    /// Type of the elements, if the type is an array.
    pub(crate) fn element(&self, id: TypeId) -> Option<TypeId> {
        match self.get(id) {
            Type::Array { element, .. } => Some(*element),
            _ => None,
        }
    }

    /// Value of a macro, if it was queried.
    pub(crate) fn macro_value(&self, name: &str) -> Option<u64> {
        let array = self.pointees.get(&format!("{VALUE_QUERY}{name}"))?;
        match self.get(*array) {
            // One byte more, since an array has at least one.
            Type::Array { size, .. } => (size / 8).checked_sub(1),
            _ => None,
        }
    }

    /// Type of a function, or a typedef, if it was queried.
    pub(crate) fn queried(&self, name: &str) -> Option<TypeId> {
        self.pointees.get(&format!("{TYPE_QUERY}{name}")).copied()
    }

    /// Whether the type is `const`.
    pub fn is_constant(&self, id: TypeId) -> bool {
        self.aliases(id).any(|id| self.constants.contains(&id))
    }

    /// The type, then in turn the type that each typedef or qualifier refers to.
    fn aliases(&self, id: TypeId) -> impl Iterator<Item = TypeId> {
        std::iter::successors(Some(id), |id| match self.nodes.get(id) {
            Some(Node::Alias(aliased)) => Some(*aliased),
            _ => None,
        })
        // At most one step per node: a typedef of itself would never end.
        .take(self.nodes.len() + 1)
    }

    /// Reads a module written by clang.
    ///
    /// # Errors
    ///
    /// The line that cannot be parsed, and the reason.
    pub fn read(module: &str) -> Result<Self, String> {
        let lines = Lines::new(module);
        let mut types = Types::default();
        for (&id, line) in &lines.0 {
            if line.text("tag") == "DW_TAG_const_type" {
                types.constants.insert(id);
            }
            if line.text("tag") == "DW_TAG_typedef" {
                types.typedefs.insert(id, line.text("name").to_owned());
            }
            if line.kind == "DIBasicType" {
                types.basic.insert(id, line.text("name").to_owned());
            }
            if let Some(node) = lines
                .node(line)
                .map_err(|error| format!("!{id}: {error}"))?
            {
                types.nodes.insert(id, node);
            }
        }
        for line in lines.0.values() {
            if line.kind != "DIGlobalVariable" {
                continue;
            }
            if let &Type::Pointer(pointee) = types.get(line.reference("type")?) {
                types.pointees.insert(line.text("name").to_owned(), pointee);
            }
        }
        Ok(types)
    }
}

/// A line of metadata, `!7 = distinct !DIKind(key: value, ...)` or `!7 = !{!8, null}`.
struct Line<'a> {
    /// `DIKind`, or empty for a list.
    kind: &'a str,
    values: Vec<&'a str>,
}

impl<'a> Line<'a> {
    fn value(&self, key: &str) -> Option<&'a str> {
        self.values
            .iter()
            .find_map(|value| value.strip_prefix(key)?.strip_prefix(": "))
    }

    fn text(&self, key: &str) -> &'a str {
        self.value(key).unwrap_or("").trim_matches('"')
    }

    fn number(&self, key: &str) -> Result<u64, String> {
        self.value(key).map_or(Ok(0), |value| {
            value
                .parse()
                .map_err(|error| format!("{key}: {value}: {error}"))
        })
    }

    /// `VOID` if the key is missing.
    fn reference(&self, key: &str) -> Result<TypeId, String> {
        self.value(key).map_or(Ok(VOID), reference)
    }
}

fn reference(value: &str) -> Result<TypeId, String> {
    if value == "null" {
        return Ok(VOID);
    }
    value
        .strip_prefix('!')
        .and_then(|number| number.parse().ok())
        .ok_or_else(|| format!("{value} is no reference"))
}

struct Lines<'a>(BTreeMap<TypeId, Line<'a>>);

impl<'a> Lines<'a> {
    fn new(module: &'a str) -> Self {
        Self(module.lines().filter_map(parse).collect())
    }

    /// Nodes of a list.
    fn list(&self, id: TypeId) -> Result<&[&'a str], String> {
        match self.0.get(&id) {
            Some(line) if line.kind.is_empty() => Ok(&line.values),
            Some(_) => Err(format!("!{id} is no list")),
            None => Ok(&[]),
        }
    }

    fn children(&self, id: TypeId) -> Result<Vec<&Line<'a>>, String> {
        self.list(id)?
            .iter()
            .map(|value| {
                let id = reference(value)?;
                self.0.get(&id).ok_or_else(|| format!("no !{id}"))
            })
            .collect()
    }

    fn node(&self, line: &Line<'a>) -> Result<Option<Node>, String> {
        let node_type = match line.kind {
            "DIBasicType" => {
                let size = line.number("size")?;
                match line.text("encoding") {
                    "DW_ATE_float" => Type::Float(size),
                    _ => Type::Integer(size),
                }
            }
            "DISubroutineType" => {
                let mut signature = Vec::new();
                for id in self.list(line.reference("types")?)? {
                    signature.push(reference(id)?);
                }
                Type::Function(signature)
            }
            "DIDerivedType" => match line.text("tag") {
                "DW_TAG_pointer_type" => Type::Pointer(line.reference("baseType")?),
                "DW_TAG_member" => return Ok(None),
                _ => return Ok(Some(Node::Alias(line.reference("baseType")?))),
            },
            "DICompositeType" => self.composite(line)?,
            _ => return Ok(None),
        };
        Ok(Some(Node::Type(node_type)))
    }

    fn composite(&self, line: &Line<'a>) -> Result<Type, String> {
        let name = line.text("name").to_owned();
        let size = line.number("size")?;
        let children = self.children(line.reference("elements")?)?;
        Ok(match line.text("tag") {
            // A vector is returned in a register of its own, unlike an array, and wider than C's integers.
            "DW_TAG_array_type" if line.text("flags").contains("DIFlagVector") => {
                Type::Integer(size.max(128))
            }
            "DW_TAG_array_type" => Type::Array {
                element: line.reference("baseType")?,
                size,
            },
            "DW_TAG_enumeration_type" => Type::Enum {
                name,
                size,
                values: children
                    .iter()
                    .map(|child| {
                        let digits = child.text("value");
                        let value = digits
                            .parse()
                            .map_err(|error| format!("{digits}: {error}"))?;
                        Ok((child.text("name").to_owned(), value))
                    })
                    .collect::<Result<_, String>>()?,
            },
            _ => Type::Record {
                name,
                size,
                members: if line.text("flags").contains("DIFlagFwdDecl") {
                    None
                } else {
                    Some(
                        children
                            .iter()
                            .map(|child| member(child))
                            .collect::<Result<_, _>>()?,
                    )
                },
            },
        })
    }
}

fn member(line: &Line) -> Result<Member, String> {
    Ok(Member {
        name: line.text("name").to_owned(),
        offset: line.number("offset")?,
        size: line.number("size")?,
        is_bit_field: line.text("flags").contains("DIFlagBitField"),
        type_id: line.reference("baseType")?,
    })
}

fn parse(line: &str) -> Option<(TypeId, Line<'_>)> {
    let (id, rest) = line.strip_prefix('!')?.split_once(" = ")?;
    let id = id.parse().ok()?;
    let node = rest
        .strip_prefix("distinct ")
        .unwrap_or(rest)
        .strip_prefix('!')?;
    let (kind, values) = node.split_once(['(', '{'])?;
    let values = split(values.strip_suffix([')', '}'])?);
    Some((id, Line { kind, values }))
}

/// Splits at the commas that are neither in quotes nor in parentheses.
fn split(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut depth, mut in_quotes) = (0, 0, false);
    for (offset, character) in text.char_indices() {
        match character {
            '"' => in_quotes = !in_quotes,
            '(' if !in_quotes => depth += 1,
            ')' if !in_quotes => depth -= 1,
            ',' if !in_quotes && depth == 0 => {
                parts.push(text[start..offset].trim());
                start = offset + 1;
            }
            _ => {}
        }
    }
    let remainder = text[start..].trim();
    if !remainder.is_empty() {
        parts.push(remainder);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_metadata_are_read() {
        let module = r#"
@p = dso_local global i32 (%struct.pair*)* null, align 8, !dbg !0
!0 = distinct !DIGlobalVariable(name: "p", scope: !1, file: !2, line: 1, type: !3, isLocal: false)
!3 = !DIDerivedType(tag: DW_TAG_pointer_type, baseType: !4, size: 64)
!4 = !DISubroutineType(types: !5)
!5 = !{!6, !7, null}
!6 = !DIBasicType(name: "long, odd (name)", size: 64, encoding: DW_ATE_signed)
!7 = !DIDerivedType(tag: DW_TAG_typedef, name: "pair", baseType: !8)
!8 = distinct !DICompositeType(tag: DW_TAG_structure_type, name: "pair", size: 64, elements: !9)
!9 = !{!10, !11}
!10 = !DIDerivedType(tag: DW_TAG_member, name: "x", baseType: !12, size: 32)
!11 = !DIDerivedType(tag: DW_TAG_member, name: "y", baseType: !6, size: 3, offset: 32, flags: DIFlagBitField, extraData: i64 32)
!12 = !DIBasicType(name: "float", size: 32, encoding: DW_ATE_float)
!13 = !DICompositeType(tag: DW_TAG_structure_type, name: "hidden", flags: DIFlagFwdDecl)
!14 = !DICompositeType(tag: DW_TAG_enumeration_type, baseType: !6, size: 32, elements: !15)
!15 = !{!16}
!16 = !DIEnumerator(name: "MINUS", value: -1)
"#;
        let types = Types::read(module).unwrap();
        let function = types.pointees["p"];
        let Type::Function(signature) = types.get(function) else {
            panic!("{:?}", types.get(function));
        };
        assert_eq!(types.get(signature[0]), &Type::Integer(64));
        assert_eq!(signature[2], VOID);
        let Type::Record {
            name,
            size: 64,
            members: Some(members),
        } = types.get(signature[1])
        else {
            panic!("{:?}", types.get(signature[1]));
        };
        assert_eq!(name, "pair");
        assert_eq!(members.len(), 2);
        assert_eq!(types.get(members[0].type_id), &Type::Float(32));
        assert!(members[1].is_bit_field && members[1].offset == 32 && members[1].size == 3);
        assert!(matches!(types.get(13), Type::Record { members: None, .. }));
        let Type::Enum { values, .. } = types.get(14) else {
            panic!()
        };
        assert_eq!(values["MINUS"], -1);
    }
}
