//! Fields that two layouts of a struct share, and the bytes that a copy between them moves.

use gpustub_cdecl::{Type, TypeId, Types, check_value};

use super::data::Struct;
use super::layout::{Field, Layout};

/// Bytes of fields in two layouts.
#[derive(Clone, Copy)]
pub struct Run {
    /// Offset in each layout.
    pub offsets: [u64; 2],
    pub size: u64,
}

impl Run {
    /// First byte in a layout, and the byte after the last.
    fn range(&self, side: usize) -> (u64, u64) {
        (self.offsets[side], self.end(side))
    }

    fn end(&self, side: usize) -> u64 {
        self.offsets[side] + self.size
    }

    fn distance(&self) -> u64 {
        self.offsets[1].wrapping_sub(self.offsets[0])
    }
}

/// Two layouts of a struct.
pub struct Pair {
    /// Index of each layout.
    pub layouts: [usize; 2],
    /// Bytes of each field that is copied.
    copied: Vec<Run>,
    /// Fields that only one layout has, by layout, except those of `covered`.
    pub only: [Vec<String>; 2],
    /// Fields that only one layout has, in a union whose other members are copied, with all their bytes.
    pub covered: Vec<String>,
    /// Fields that both layouts have, but that are not copied, with the reason.
    pub different: Vec<(String, String)>,
}

/// All pairs of layouts.
pub fn pairs(row: &Struct, layouts: &[Layout]) -> Result<Vec<Pair>, String> {
    let mut pairs = Vec::new();
    for (first, a) in layouts.iter().enumerate() {
        for (second, b) in layouts.iter().enumerate().skip(first + 1) {
            let pair = Pair::new(row, [first, second], [a, b])
                .map_err(|e| format!("{} and {}: {e}", a.mark, b.mark))?;
            pairs.push(pair);
        }
    }
    for expected in &row.expected {
        let mut different = pairs.iter().flat_map(|pair| &pair.different);
        if !different.any(|(path, _)| path == expected) {
            return Err(format!("`expected` has {expected}, which needs no review"));
        }
    }
    Ok(pairs)
}

/// Paths of the fields that only the first layout has, by their offsets.
fn fields_of_one(layout: &Layout, other: &Layout) -> Vec<String> {
    let mut paths: Vec<_> = layout
        .fields
        .keys()
        .filter(|path| !other.fields.contains_key(*path))
        .cloned()
        .collect();
    paths.sort_by_key(|path| layout.fields[path].offset);
    paths
}

impl Pair {
    fn new(row: &Struct, indices: [usize; 2], [a, b]: [&Layout; 2]) -> Result<Self, String> {
        let mut pair = Self {
            layouts: indices,
            copied: Vec::new(),
            only: [fields_of_one(a, b), fields_of_one(b, a)],
            covered: Vec::new(),
            different: Vec::new(),
        };
        let mut shared: Vec<_> = (a.fields.iter())
            .filter_map(|(path, field)| Some((path, field, b.fields.get(path)?)))
            .collect();
        shared.sort_by_key(|(_, field, _)| field.offset);
        for (path, old, new) in shared {
            match difference(old, new).map_err(|e| format!("{path}: {e}"))? {
                Difference::None => pair.copied.push(run(path, old, new)?),
                Difference::Value(reason) => pair.different.push((path.clone(), reason)),
                Difference::Class(reason) if row.expected.contains(path) => {
                    pair.different.push((path.clone(), reason));
                }
                Difference::Class(reason) => {
                    return Err(format!(
                        "{path}: {reason}: if that is right, add it to `expected` in layouts.toml"
                    ));
                }
            }
        }
        if pair.copied.is_empty() {
            return Err("no field is copied".into());
        }
        pair.check_shared_bytes([a, b])?;
        for (side, layout) in [a, b].into_iter().enumerate() {
            let runs = pair.runs(side);
            for path in std::mem::take(&mut pair.only[side]) {
                let (start, end) = layout.fields[&path].bytes();
                let is_covered = runs
                    .iter()
                    .any(|run| run.offsets[side] <= start && end <= run.end(side));
                if is_covered {
                    pair.covered.push(path);
                } else {
                    pair.only[side].push(path);
                }
            }
        }
        Ok(pair)
    }

    /// Checks that fields which share bytes, as in unions, agree on how these are copied.
    fn check_shared_bytes(&self, layouts: [&Layout; 2]) -> Result<(), String> {
        for (side, layout) in layouts.into_iter().enumerate() {
            for (index, run) in self.copied.iter().enumerate() {
                let is_conflict = self.copied[..index].iter().any(|earlier| {
                    overlap(run.range(side), earlier.range(side))
                        && run.distance() != earlier.distance()
                });
                if is_conflict {
                    let byte = format!("byte {} of {}", run.offsets[side], layout.mark);
                    return Err(conflict(&byte));
                }
            }
            for (path, _) in &self.different {
                if self.copies_byte_of(&layout.fields[path], side) {
                    return Err(conflict(path));
                }
            }
            // A bit-field is copied with the other bits of its bytes.
            for path in &self.only[side] {
                let field = &layout.fields[path];
                if field.is_bits() && self.copies_byte_of(field, side) {
                    return Err(conflict(path));
                }
            }
        }
        Ok(())
    }

    fn copies_byte_of(&self, field: &Field, side: usize) -> bool {
        self.copied
            .iter()
            .any(|run| overlap(run.range(side), field.bytes()))
    }

    /// Runs of bytes to copy, by their offsets in the layout `to`, 0 or 1.
    pub fn runs(&self, to: usize) -> Vec<Run> {
        let mut copied = self.copied.clone();
        copied.sort_by_key(|run| (run.offsets[to], run.size));
        let mut runs: Vec<Run> = Vec::new();
        for run in copied {
            match runs.last_mut() {
                Some(previous)
                    if run.offsets[to] <= previous.end(to)
                        && run.distance() == previous.distance() =>
                {
                    previous.size = previous.end(to).max(run.end(to)) - previous.offsets[to];
                }
                _ => runs.push(run),
            }
        }
        runs
    }

    /// Whether a copy leaves out a field.
    pub fn leaves_out(&self, path: &str) -> bool {
        self.only.iter().flatten().any(|only| only == path)
            || self
                .different
                .iter()
                .any(|(different, _)| different == path)
    }
}

fn conflict(bytes: &str) -> String {
    format!("{bytes} shares bytes with a field that is copied otherwise")
}

fn overlap(a: (u64, u64), b: (u64, u64)) -> bool {
    a.0 < b.1 && b.0 < a.1
}

/// Bytes of a field that is copied. Bit-fields keep their positions in their bytes.
fn run(path: &str, old: &Field, new: &Field) -> Result<Run, String> {
    if old.offset % 8 != new.offset % 8 {
        return Err(format!("{path}: bit {} -> {}", old.offset, new.offset));
    }
    let (start, end) = old.bytes();
    Ok(Run {
        offsets: [start, new.bytes().0],
        size: end - start,
    })
}

enum Difference {
    None,
    /// Another size, or other numbers of an enum.
    Value(String),
    /// Another class of types.
    Class(String),
}

/// Difference between the types of a field, in all versions.
fn difference(old: &Field, new: &Field) -> Result<Difference, String> {
    let mut difference = Difference::None;
    for (older, a) in &old.types {
        for (newer, b) in &new.types {
            let classes = [class(older, *a)?, class(newer, *b)?];
            if classes[0] != classes[1] {
                return Ok(Difference::Class(classes.join(" -> ")));
            }
            let values = if old.size == new.size {
                check_value((older, *a), (newer, *b))
            } else {
                Err(format!("{} -> {} bytes", old.size / 8, new.size / 8))
            };
            if let (Difference::None, Err(reason)) = (&difference, values) {
                difference = Difference::Value(reason);
            }
        }
    }
    Ok(difference)
}

/// Class of a type: values of one class and size can be copied.
fn class(types: &Types, id: TypeId) -> Result<String, String> {
    Ok(match types.get(id) {
        Type::Integer(_) | Type::Enum { .. } => "integer".into(),
        Type::Float(_) => "float".into(),
        Type::Pointer(_) => "pointer".into(),
        Type::Array { element, .. } => format!("array of {}", class(types, *element)?),
        // Copied whole, an element would take its padding along.
        Type::Record { .. } => {
            return Err("structs that would be copied with their padding".into());
        }
        Type::Void | Type::Function(_) => return Err("unknown type".into()),
    })
}
