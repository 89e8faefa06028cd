//! Layouts of a struct: each is the same in all of its versions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::rc::Rc;

use gpustub_cdecl::{
    Clang, DeclaredFunction, Leaf, Type, TypeId, Types, check_call, functions, leaves,
};
use gpustub_core::version::Version;

use super::data::Struct;
use crate::abi::recipes::{AbiRecipe, STAND_INS};

/// A struct in one version of the headers.
pub struct Sample {
    /// Version of the headers.
    pub version: Version,
    /// Version that introduced their contents.
    pub since: Version,
    pub tag: String,
    /// Function with a pointer to the struct as its argument.
    pub declared: DeclaredFunction,
}

/// Reads the structs from the headers of a version; one that the version lacks has no sample.
pub fn read(
    recipe: &AbiRecipe,
    version: Version,
    include: &Path,
    structs: &[Struct],
) -> Result<Vec<Vec<Sample>>, String> {
    let clang = Clang::new("clang").directory(STAND_INS).directory(include);
    let defines = recipe.headers()?.defines.first();
    let defines = defines.map_or(&[][..], Vec::as_slice);
    let source = format!("#include <{}>\n", recipe.row.header);
    let versions = (version, recipe.reviewed.introduced_in(version));
    samples(&clang, &source, defines, versions, structs)
        .map_err(|e| format!("`{}`: {e}", include.display()))
}

/// Reads the structs from a C source, of a version that another one introduced.
pub fn samples(
    clang: &Clang,
    source: &str,
    defines: &[String],
    (version, since): (Version, Version),
    structs: &[Struct],
) -> Result<Vec<Vec<Sample>>, String> {
    const PREFIX: &str = "gpustub_layout_";
    let mut source = source.to_owned();
    let mut tags = Vec::new();
    for (index, row) in structs.iter().enumerate() {
        for tag in row.tags() {
            if row.has(tag, since)? {
                // A tag that is not declared gives an incomplete type. Macros rename tags: HIP 6 has
                // `#define hipDeviceProp_t hipDeviceProp_tR0600`.
                source += &format!(
                    "\n#undef {tag}\nvoid {PREFIX}{}(struct {tag} *);\n",
                    tags.len()
                );
                tags.push((index, tag));
            }
        }
    }
    let mut functions: BTreeMap<String, DeclaredFunction> =
        functions(clang, &source, defines, &|name| name.starts_with(PREFIX))
            .map_err(|e| e.to_string())?
            .into_iter()
            .collect();
    let mut samples: Vec<Vec<Sample>> = structs.iter().map(|_| Vec::new()).collect();
    for (number, (index, tag)) in tags.into_iter().enumerate() {
        let declared = functions
            .remove(&format!("{PREFIX}{number}"))
            .ok_or_else(|| format!("clang gave no type of {tag}"))?;
        let sample = Sample {
            version,
            since,
            tag: tag.to_owned(),
            declared,
        };
        if sample.record().is_some() {
            samples[index].push(sample);
        }
    }
    Ok(samples)
}

impl Sample {
    fn types(&self) -> &Rc<Types> {
        &self.declared.types
    }

    /// Fields of the struct.
    pub fn leaves(&self) -> Result<Vec<Leaf>, String> {
        self.record()
            .map_or(Ok(Vec::new()), |record| leaves(self.types(), record))
    }

    /// The struct; `None` if it is incomplete.
    fn record(&self) -> Option<&Type> {
        let types = self.types();
        let Type::Function(parts) = types.get(self.declared.function) else {
            return None;
        };
        let Type::Pointer(pointee) = types.get(*parts.get(1)?) else {
            return None;
        };
        match types.get(*pointee) {
            Type::Record { members: None, .. } => None,
            record => Some(record),
        }
    }
}

/// A field of a layout. Sizes and offsets are in bits.
pub struct Field {
    pub offset: u64,
    pub size: u64,
    /// Type in each version that names the field.
    pub types: Vec<(Rc<Types>, TypeId)>,
}

impl Field {
    /// Bytes that the field is in: the first, and the one after the last.
    pub fn bytes(&self) -> (u64, u64) {
        (self.offset / 8, (self.offset + self.size).div_ceil(8))
    }

    /// Whether the field does not fill its bytes.
    pub fn is_bits(&self) -> bool {
        !self.offset.is_multiple_of(8) || !self.size.is_multiple_of(8)
    }
}

/// A layout of a struct.
pub struct Layout {
    /// Last part of its name: first version, or name of the variant.
    pub mark: String,
    /// Versions and tags with this layout.
    pub versions: Vec<(Version, String)>,
    /// Size in bytes.
    pub size: u64,
    /// Named fields of all versions, by path.
    pub fields: BTreeMap<String, Field>,
}

impl Layout {
    /// Layouts of a struct, in the order of their first versions.
    pub fn from_samples(row: &Struct, samples: Vec<Sample>) -> Result<Vec<Self>, String> {
        let mut paths = BTreeSet::new();
        for sample in &samples {
            paths.extend(sample.leaves()?.into_iter().map(|leaf| leaf.path));
        }
        if let Some(path) = row.renamed.keys().find(|path| !paths.contains(*path)) {
            return Err(format!("`renamed` has {path}, which no version has"));
        }
        let mut groups: Vec<Vec<Sample>> = Vec::new();
        for sample in samples {
            let mark = row.marks.get(&sample.tag);
            let group = groups.iter_mut().find(|group| {
                group.iter().all(|older| {
                    row.marks.get(&older.tag) == mark
                        && check_call(&older.declared, &sample.declared).is_ok()
                })
            });
            match group {
                Some(group) => group.push(sample),
                None => groups.push(vec![sample]),
            }
        }
        let mut layouts = Vec::new();
        for group in &groups {
            layouts.push(Self::new(row, group)?);
        }
        let mut marks = BTreeSet::new();
        for layout in &layouts {
            if !marks.insert(&layout.mark) {
                return Err(format!("two layouts are named {}", layout.mark));
            }
        }
        match layouts.len() {
            0 | 1 => Err(format!("{} layouts: nothing to adapt", layouts.len())),
            _ => Ok(layouts),
        }
    }

    /// The layout that all samples have.
    fn new(row: &Struct, samples: &[Sample]) -> Result<Self, String> {
        let mut layout = Self {
            mark: String::new(),
            versions: Vec::new(),
            size: 0,
            fields: BTreeMap::new(),
        };
        for sample in samples {
            if layout.versions.is_empty() {
                let mark = row.marks.get(&sample.tag).cloned();
                layout.mark = mark.unwrap_or_else(|| sample.since.to_string().replace('.', "_"));
            }
            layout.versions.push((sample.version, sample.tag.clone()));
            layout.add(row, sample)?;
        }
        Ok(layout)
    }

    fn add(&mut self, row: &Struct, sample: &Sample) -> Result<(), String> {
        let Some(Type::Record { size, .. }) = sample.record() else {
            return Ok(());
        };
        self.size = size / 8;
        for leaf in sample.leaves()? {
            if leaf.is_reserved() {
                continue;
            }
            let path = row.renamed.get(&leaf.path).unwrap_or(&leaf.path);
            let field = self.fields.entry(path.clone()).or_insert(Field {
                offset: leaf.offset,
                size: leaf.size,
                types: Vec::new(),
            });
            if (field.offset, field.size) != leaf.place() {
                return Err(format!("{}: {path} is in two places", sample.version));
            }
            field.types.push((Rc::clone(sample.types()), leaf.type_id));
        }
        Ok(())
    }
}
