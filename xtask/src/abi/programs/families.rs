//! Functions of the programs, in families.

use std::collections::{BTreeMap, BTreeSet};

use gpustub_cdecl::{self as headers, DeclaredFunction};

use super::super::history::{Evidence, declarations};
use super::arguments::{Differences, Returned};
use super::sample;
use super::text::Function;

/// Functions of the programs.
pub struct Families {
    pub in_table: Vec<Family>,
    /// Functions of the samples, by name.
    pub sampled: BTreeMap<String, Family>,
    /// Functions that adapters call.
    pub called: Vec<Family>,
}

/// Functions that may be bound in place of each other.
pub struct Family {
    /// Declarations of each name by version.
    names: BTreeMap<String, Vec<Option<DeclaredFunction>>>,
    /// Differences that bytes do not show.
    differences: Differences,
    /// Whether callers and libraries know the fields of structs.
    has_fields: bool,
}

impl Families {
    /// Functions of the library of a version.
    pub fn functions(&self, index: usize) -> Vec<Function> {
        self.in_table
            .iter()
            .chain(self.sampled.values())
            .chain(&self.called)
            .flat_map(|family| family.functions(index))
            .collect()
    }
}

impl Family {
    pub fn new(names: &BTreeSet<String>, evidence: &[Evidence], has_fields: bool) -> Self {
        let mut known = BTreeMap::new();
        for name in names {
            if let Some(declarations) = declarations(name, evidence) {
                known.insert(name.clone(), declarations);
            }
        }
        let declarations: Vec<_> = known.values().flatten().flatten().cloned().collect();
        Self {
            names: known,
            differences: Differences::new(&declarations),
            has_fields,
        }
    }

    fn function(&self, source: &str, name: &str, declared: &DeclaredFunction) -> Function {
        Function {
            source: source.to_owned(),
            name: name.to_owned(),
            arguments: self.differences.arguments(declared),
            fields: if self.has_fields {
                self.differences.fields(declared)
            } else {
                Vec::new()
            },
            result: Returned::new(declared),
        }
    }

    /// Functions of a version's library.
    fn functions(&self, index: usize) -> impl Iterator<Item = Function> {
        self.names.iter().filter_map(move |(name, declarations)| {
            let declared = declarations[index].as_ref()?;
            Some(self.function(name, name, declared))
        })
    }

    /// The calls of a program for one set of macros.
    pub fn calls(&self, headers: &headers::Declarations) -> Vec<Function> {
        let mut calls = Vec::new();
        for name in self.names.keys() {
            let Some(declared) = headers.functions.get(name) else {
                continue;
            };
            for source in sample::sources(headers, name) {
                calls.push(self.function(source, name, declared));
            }
        }
        calls
    }
}
