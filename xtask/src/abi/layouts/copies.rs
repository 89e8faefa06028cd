//! Fields that two layouts of a struct share, and the bytes that a copy between them moves.

use gpustub_cdecl::{Type, TypeId, Types, same_values};

use super::data::Struct;
use super::layout::{Field, Layout};

/// Bytes of fields in two layouts.
#[derive(Clone, Copy)]
pub struct Run {
    /// Offset in each layout.
    pub at: [u64; 2],
    pub size: u64,
}

impl Run {
    /// First byte in a layout, and the byte after the last.
    fn range(&self, side: usize) -> (u64, u64) {
        (self.at[side], self.at[side] + self.size)
    }

    fn distance(&self) -> u64 {
        self.at[1].wrapping_sub(self.at[0])
    }
}

/// Two layouts of a struct.
pub struct Pair {
    /// Index of each layout.
    pub of: [usize; 2],
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
pub fn pairs(of: &Struct, layouts: &[Layout]) -> Result<Vec<Pair>, String> {
    let mut pairs = Vec::new();
    for (first, a) in layouts.iter().enumerate() {
        for (second, b) in layouts.iter().enumerate().skip(first + 1) {
            let pair = Pair::new(of, [first, second], [a, b])
                .map_err(|e| format!("{} and {}: {e}", a.mark, b.mark))?;
            pairs.push(pair);
        }
    }
    for expected in &of.expected {
        let is_used = |pair: &Pair| pair.different.iter().any(|(path, _)| path == expected);
        if !pairs.iter().any(is_used) {
            return Err(format!("`expected` has {expected}, which needs no review"));
        }
    }
    Ok(pairs)
}

impl Pair {
    fn new(of: &Struct, indices: [usize; 2], [a, b]: [&Layout; 2]) -> Result<Self, String> {
        let lacks = |layout: &Layout, other: &Layout| {
            let paths = layout.fields.keys();
            let lacking = paths.filter(|path| !other.fields.contains_key(*path));
            let mut lacking: Vec<_> = lacking.cloned().collect();
            lacking.sort_by_key(|path| layout.fields[path].offset);
            lacking
        };
        let mut pair = Self {
            of: indices,
            copied: Vec::new(),
            only: [lacks(a, b), lacks(b, a)],
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
                Difference::Value(why) => pair.different.push((path.clone(), why)),
                Difference::Class(why) if of.expected.contains(path) => {
                    pair.different.push((path.clone(), why));
                }
                Difference::Class(why) => {
                    return Err(format!(
                        "{path}: {why}: if that is right, add it to `expected` in layouts.toml"
                    ));
                }
            }
        }
        if pair.copied.is_empty() {
            return Err("no field is copied".into());
        }
        pair.agree([a, b])?;
        for (side, layout) in [a, b].into_iter().enumerate() {
            let runs = pair.runs(side);
            let is_covered = |path: &String| {
                let (start, end) = layout.fields[path].bytes();
                let holds = |run: &Run| run.at[side] <= start && end <= run.range(side).1;
                runs.iter().any(holds)
            };
            let only = std::mem::take(&mut pair.only[side]);
            let (covered, only) = only.into_iter().partition(is_covered);
            pair.only[side] = only;
            pair.covered.extend::<Vec<_>>(covered);
        }
        Ok(pair)
    }

    /// Checks that fields which share bytes, as in unions, agree on how these are copied.
    fn agree(&self, layouts: [&Layout; 2]) -> Result<(), String> {
        let conflict = |what: String| {
            Err(format!(
                "{what} shares bytes with a field that is copied otherwise"
            ))
        };
        for (side, layout) in layouts.into_iter().enumerate() {
            for (index, run) in self.copied.iter().enumerate() {
                let mut others = self.copied[..index].iter();
                if others.any(|other| {
                    overlap(run.range(side), other.range(side))
                        && run.distance() != other.distance()
                }) {
                    return conflict(format!("byte {} of {}", run.at[side], layout.mark));
                }
            }
            for (path, _) in &self.different {
                let range = layout.fields[path].bytes();
                let overlaps = |run: &Run| overlap(run.range(side), range);
                if self.copied.iter().any(overlaps) {
                    return conflict(path.clone());
                }
            }
            // A bit-field is copied with the other bits of its bytes.
            for path in &self.only[side] {
                let field = &layout.fields[path];
                let overlaps = |run: &Run| overlap(run.range(side), field.bytes());
                if field.is_bits() && self.copied.iter().any(overlaps) {
                    return conflict(path.clone());
                }
            }
        }
        Ok(())
    }

    /// Runs of bytes to copy, by their offsets in the layout `to`, 0 or 1.
    pub fn runs(&self, to: usize) -> Vec<Run> {
        let mut copied = self.copied.clone();
        copied.sort_by_key(|run| (run.at[to], run.size));
        let mut runs: Vec<Run> = Vec::new();
        for run in copied {
            match runs.last_mut() {
                Some(last)
                    if run.at[to] <= last.range(to).1 && run.distance() == last.distance() =>
                {
                    last.size = last.range(to).1.max(run.range(to).1) - last.at[to];
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
        at: [start, new.bytes().0],
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
    let mut found = Difference::None;
    for (older, a) in &old.types {
        for (newer, b) in &new.types {
            let classes = [class(older, *a)?, class(newer, *b)?];
            if classes[0] != classes[1] {
                return Ok(Difference::Class(classes.join(" -> ")));
            }
            let (m, n) = (old.size, new.size);
            let value = if m != n {
                Err(format!("{} -> {} bytes", m / 8, n / 8))
            } else {
                same_values((older, *a), (newer, *b))
            };
            if let (Difference::None, Err(why)) = (&found, value) {
                found = Difference::Value(why);
            }
        }
    }
    Ok(found)
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
