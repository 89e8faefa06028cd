//! Finds the strings of a module's metadata that only `llvm.ident` uses: the names of its compilers.
//!
//! Strings come first among a module's metadata, and are identified by their numbers; references follow,
//! also in functions. So this pass precedes all writing.

use std::collections::{HashMap, HashSet};

use super::bits::Bits;
use super::codes::{block, metadata, types};
use super::edit::Edit;
use super::stream::{Block, Entry, MAX_KEPT_OPERANDS, Record, Stream};
use super::writer::Writer;
use crate::definitions::not_canonical::NotCanonical;

/// References to metadata.
#[derive(Default)]
struct Uses {
    /// Number of the module's metadata, and of the strings among them.
    metadata_count: u64,
    string_count: u64,
    /// Number of references to each, in total and from `llvm.ident`.
    references: HashMap<u64, u64>,
    ident_references: HashMap<u64, u64>,
    /// Nodes with a single string, by the string.
    string_nodes: HashMap<u64, u64>,
}

/// `None`: part of a block is unknown.
type Known = Option<()>;

/// Numbers of the strings that only `llvm.ident` refers to. Empty if that is unknown: in damaged modules,
/// in modules with debug information, which also names the compiler, and in modules that pass metadata
/// to functions.
pub fn ident_strings(data: &[u8]) -> HashSet<u64> {
    let mut uses = Uses::default();
    match uses.read_file(data) {
        Some(()) => uses.only_by_ident(),
        None => HashSet::new(),
    }
}

impl Uses {
    fn read_file(&mut self, data: &[u8]) -> Known {
        let (mut stream, mut outside) = Stream::new(data).ok()?;
        loop {
            match stream.next(&mut outside).ok()? {
                Entry::Block(inner) if inner.id == block::MODULE => {
                    return self.read_module(&mut stream, inner);
                }
                Entry::Block(inner) => stream.skip(&inner).ok()?,
                Entry::End | Entry::Record => return None,
            }
        }
    }

    fn read_module(&mut self, stream: &mut Stream<'_>, mut outer: Block) -> Known {
        loop {
            match stream.next(&mut outer).ok()? {
                Entry::End => return Some(()),
                Entry::Record => {}
                Entry::Block(inner) => match inner.id {
                    block::METADATA => self.read_metadata(stream, inner, true)?,
                    block::FUNCTION => self.read_function(stream, inner)?,
                    block::TYPE_NEW => check_function_types(stream, inner)?,
                    _ => stream.skip(&inner).ok()?,
                },
            }
        }
    }

    fn read_function(&mut self, stream: &mut Stream<'_>, mut outer: Block) -> Known {
        loop {
            match stream.next(&mut outer).ok()? {
                Entry::End => return Some(()),
                Entry::Record => {}
                Entry::Block(inner) => match inner.id {
                    block::METADATA => self.read_metadata(stream, inner, false)?,
                    block::METADATA_ATTACHMENT => self.read_attachments(stream, inner)?,
                    _ => stream.skip(&inner).ok()?,
                },
            }
        }
    }

    /// Reads the metadata of the module, or of a function, whose numbers follow the module's.
    fn read_metadata(
        &mut self,
        stream: &mut Stream<'_>,
        mut outer: Block,
        of_module: bool,
    ) -> Known {
        let mut is_named_ident = false;
        loop {
            match stream.next(&mut outer).ok()? {
                Entry::End => return Some(()),
                Entry::Block(_) => return None,
                Entry::Record => {}
            }
            let record = &stream.record;
            let operands = &record.operands[..];
            match record.code {
                _ if operands.len() == MAX_KEPT_OPERANDS => return None,
                metadata::STRINGS if !of_module => {}
                metadata::STRINGS if self.metadata_count == 0 => {
                    self.string_count = record.operand(0).ok()?;
                    self.metadata_count = self.string_count;
                }
                metadata::VALUE => self.count_metadata(of_module),
                metadata::NODE | metadata::DISTINCT_NODE => {
                    self.read_node(operands, of_module);
                    self.count_metadata(of_module);
                }
                metadata::NAME => is_named_ident = is_ident(record),
                metadata::NAMED_NODE => {
                    for &node in operands {
                        self.add_reference(node);
                        if is_named_ident {
                            *self.ident_references.entry(node).or_default() += 1;
                        }
                    }
                }
                metadata::GLOBAL_DECL_ATTACHMENT => {
                    self.add_attachments(operands.get(1..).unwrap_or_default());
                }
                metadata::KIND | metadata::INDEX_OFFSET | metadata::INDEX => {}
                _ => return None,
            }
        }
    }

    /// Counts a node or a value, which takes the next number.
    fn count_metadata(&mut self, of_module: bool) {
        if of_module {
            self.metadata_count = self.metadata_count.saturating_add(1);
        }
    }

    fn read_node(&mut self, operands: &[u64], of_module: bool) {
        // Zero is null; other operands are the number plus one.
        for number in operands.iter().filter_map(|operand| operand.checked_sub(1)) {
            self.add_reference(number);
        }
        match *operands {
            [operand] if of_module && (1..=self.string_count).contains(&operand) => {
                self.string_nodes.insert(operand - 1, self.metadata_count);
            }
            _ => {}
        }
    }

    fn read_attachments(&mut self, stream: &mut Stream<'_>, mut outer: Block) -> Known {
        loop {
            match stream.next(&mut outer).ok()? {
                Entry::End => return Some(()),
                Entry::Record if stream.record.code == metadata::ATTACHMENT => {
                    let operands = &stream.record.operands;
                    if operands.len() == MAX_KEPT_OPERANDS {
                        return None;
                    }
                    // The number of the instruction, if any, precedes its attachments.
                    let pairs = operands.get(operands.len() % 2..);
                    self.add_attachments(pairs.unwrap_or_default());
                }
                _ => return None,
            }
        }
    }

    /// Records the references of pairs of a kind and a node.
    fn add_attachments(&mut self, pairs: &[u64]) {
        for pair in pairs.chunks(2) {
            if let Some(&node) = pair.last() {
                self.add_reference(node);
            }
        }
    }

    fn add_reference(&mut self, number: u64) {
        *self.references.entry(number).or_default() += 1;
    }

    /// Strings whose only reference is a node to which only `llvm.ident` refers.
    fn only_by_ident(&self) -> HashSet<u64> {
        self.string_nodes
            .iter()
            .filter(|(string, node)| {
                let ident_references = self.ident_references.get(node);
                self.references.get(string) == Some(&1)
                    && ident_references.is_some()
                    && ident_references == self.references.get(node)
            })
            .map(|(string, _)| *string)
            .collect()
    }
}

/// Whether a record is the name `llvm.ident`.
pub fn is_ident(record: &Record<'_>) -> bool {
    record
        .operands
        .iter()
        .copied()
        .eq(b"llvm.ident".map(u64::from))
}

/// Checks that no function type has a metadata parameter: the operands of calls are not parsed.
fn check_function_types(stream: &mut Stream<'_>, mut outer: Block) -> Known {
    let (mut type_count, mut metadata_type) = (0, None);
    loop {
        match stream.next(&mut outer).ok()? {
            Entry::End => return Some(()),
            Entry::Block(_) => return None,
            Entry::Record => {}
        }
        let record = &stream.record;
        match record.code {
            types::NUMENTRY | types::STRUCT_NAME => continue,
            types::METADATA => metadata_type = Some(type_count),
            types::FUNCTION => {
                // Operands: variadic or not, the return type, the parameter types.
                let parameters = record.operands.get(2..).unwrap_or_default();
                if metadata_type.is_some_and(|metadata| parameters.contains(&metadata)) {
                    return None;
                }
            }
            _ => {}
        }
        type_count += 1;
    }
}

/// Empties some strings of the record of all strings.
pub fn clear_strings(record: &Record<'_>, emptied: &HashSet<u64>) -> Result<Edit, NotCanonical> {
    const UNKNOWN: NotCanonical = NotCanonical::UnsupportedForm("unknown form of metadata strings");
    let (count, offset) = (record.operand(0)?, record.operand(1)?);
    let (sizes, mut characters) = record
        .blob
        .zip(usize::try_from(offset).ok())
        .and_then(|(blob, offset)| blob.split_at_checked(offset))
        .ok_or(UNKNOWN)?;
    let mut sizes = Bits::new(sizes);
    let (mut kept_sizes, mut kept_characters) = (Writer::default(), Vec::<u8>::new());
    for number in 0..count {
        let (mut string, rest) = usize::try_from(sizes.vbr(6)?)
            .ok()
            .and_then(|size| characters.split_at_checked(size))
            .ok_or(UNKNOWN)?;
        if emptied.contains(&number) {
            string = &[];
        }
        kept_sizes.vbr(string.len() as u64, 6);
        kept_characters.extend(string);
        characters = rest;
    }
    kept_sizes.align();
    let mut blob = kept_sizes.into_bytes();
    let offset = blob.len() as u64;
    blob.extend(kept_characters);
    Ok(Edit::WriteBlob(vec![count, offset], blob))
}
