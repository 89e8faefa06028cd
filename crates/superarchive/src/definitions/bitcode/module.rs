//! The global values of a module (the comments on `parseGlobalVarRecord` and similar functions in
//! LLVM's `BitcodeReader.cpp`).

use std::borrow::Cow;
use std::collections::HashMap;

use super::codes::{block, module as code, symbol};
use super::stream::{Block, Entry, Record, Stream};
use super::string_table::string_at;
use crate::definitions::collector::{Binding, Collector};
use crate::error::Problem;

/// Definitions of a module, whose names may still be unknown.
#[derive(Default)]
pub struct Module {
    /// Values in the order of their numbers.
    values: Vec<Value>,
    /// Names of values by their numbers, in modules before LLVM 5.
    names: HashMap<u64, Vec<u8>>,
    sections: Vec<Vec<u8>>,
    mangling: Mangling,
    version: u64,
}

/// A global value.
struct Value {
    kind: ValueKind,
    /// Offset and size in the table of texts, since LLVM 5.
    name: (u64, u64),
    linkage: Linkage,
    declared_only: bool,
    /// The number of its section; 0: none.
    section: u64,
}

/// Kinds of values, in LLVM's order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ValueKind {
    Function,
    Variable,
    Alias,
    Resolved,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Linkage {
    Strong,
    /// A definition that another may replace.
    Weak,
    /// Local to the module, or defined elsewhere.
    None,
}

/// Prefix of names.
#[derive(Default, Clone, Copy)]
enum Mangling {
    #[default]
    None,
    Underscore,
    /// The prefix of 32-bit Windows: not for C++ names.
    UnderscoreUnlessCpp,
}

impl Module {
    pub fn read(stream: &mut Stream<'_>, mut outer: Block) -> Result<Self, Problem> {
        stream.forget();
        let mut module = Self::default();
        loop {
            match stream.next(&mut outer)? {
                Entry::End => return Ok(module),
                Entry::Block(inner) if inner.id == block::VALUE_SYMTAB && !module.has_texts() => {
                    module.read_names(stream, inner)?;
                }
                Entry::Block(inner) => stream.skip(&inner)?,
                Entry::Record => module.record(&stream.record)?,
            }
        }
    }

    /// Whether the names are in a table of the file.
    fn has_texts(&self) -> bool {
        self.version >= 2
    }

    fn record(&mut self, record: &Record<'_>) -> Result<(), Problem> {
        let kind = match record.code {
            code::VERSION => {
                self.version = record.operand(0)?;
                return Ok(());
            }
            code::DATALAYOUT => {
                self.mangling = Mangling::from_data_layout(&record.text(0)?);
                return Ok(());
            }
            code::SECTIONNAME => {
                self.sections.push(record.text(0)?);
                return Ok(());
            }
            code::GLOBALVAR => ValueKind::Variable,
            code::FUNCTION => ValueKind::Function,
            code::ALIAS | code::ALIAS_OLD => ValueKind::Alias,
            code::IFUNC => ValueKind::Resolved,
            _ => return Ok(()),
        };
        let (name, first) = if self.has_texts() {
            ((record.operand(0)?, record.operand(1)?), 2)
        } else {
            ((0, 0), 0)
        };
        let operand = |at: usize| record.operand(first + at);
        self.values.push(Value {
            kind,
            name,
            linkage: Linkage::from_code(operand(if record.code == code::ALIAS_OLD {
                2
            } else {
                3
            })?),
            declared_only: match kind {
                // A variable without an initializer is a declaration.
                ValueKind::Variable => operand(2)? == 0,
                ValueKind::Function => operand(2)? != 0,
                _ => false,
            },
            section: match kind {
                ValueKind::Variable => operand(5)?,
                _ => 0,
            },
        });
        Ok(())
    }

    fn read_names(&mut self, stream: &mut Stream<'_>, mut outer: Block) -> Result<(), Problem> {
        loop {
            match stream.next(&mut outer)? {
                Entry::End => return Ok(()),
                Entry::Block(inner) => stream.skip(&inner)?,
                Entry::Record => {
                    let from = match stream.record.code {
                        symbol::ENTRY => 1,
                        // The offset of its code is between them.
                        symbol::FNENTRY => 2,
                        _ => continue,
                    };
                    let record = &stream.record;
                    self.names.insert(record.operand(0)?, record.text(from)?);
                }
            }
        }
    }

    /// Adds the module's definitions; `texts` has the names since LLVM 5.
    pub fn definitions<'d>(
        &self,
        texts: &'d [u8],
        found: &mut Collector<'d>,
    ) -> Result<(), Problem> {
        let mut values: Vec<(&Value, u64)> = self.values.iter().zip(0..).collect();
        values.sort_by_key(|(value, _)| value.kind);
        for (value, number) in values {
            if value.declared_only || value.linkage == Linkage::None {
                continue;
            }
            let name: Cow<'d, [u8]> = if self.has_texts() {
                string_at(texts, value.name)?.into()
            } else {
                (self.names.get(&number).cloned().unwrap_or_default()).into()
            };
            let section = (value.section.checked_sub(1))
                .and_then(|section| self.sections.get(usize::try_from(section).ok()?));
            // Intrinsics and metadata for the compiler.
            if name.starts_with(b"llvm.") || section.is_some_and(|name| name == b"llvm.metadata") {
                continue;
            }
            let binding = Binding::weak_if(value.linkage == Linkage::Weak);
            found.add(self.mangling.apply(name), binding)?;
        }
        Ok(())
    }
}

impl Linkage {
    /// Decodes linkage codes of all versions, as `getDecodedLinkage` of LLVM's `BitcodeReader.cpp`.
    fn from_code(number: u64) -> Self {
        match number {
            // Weak, linkonce, both in the form with a comdat group, and common.
            1 | 4 | 8 | 10 | 11 | 16..=19 => Self::Weak,
            // Internal, extern_weak, private, available_externally, linker_private.
            3 | 7 | 9 | 12..=14 => Self::None,
            _ => Self::Strong,
        }
    }
}

impl Mangling {
    /// Reads the mangling of a data layout: `m:` and a letter, in a list separated by dashes.
    fn from_data_layout(layout: &[u8]) -> Self {
        let mut parts = layout.split(|&byte| byte == b'-');
        match parts.find_map(|part| part.strip_prefix(b"m:")) {
            Some(b"o") => Self::Underscore,
            Some(b"x") => Self::UnderscoreUnlessCpp,
            _ => Self::None,
        }
    }

    fn apply(self, name: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
        match (self, &*name) {
            (_, []) => name,
            // The prefix "\x01" means an unmangled name.
            (_, [1, ..]) => match name {
                Cow::Borrowed(name) => name[1..].into(),
                Cow::Owned(name) => name[1..].to_vec().into(),
            },
            (Self::None, _) | (Self::UnderscoreUnlessCpp, [b'?', ..]) => name,
            _ => [b"_", &*name].concat().into(),
        }
    }
}
