//! Finds the texts of a module's metadata that only `llvm.ident` uses: the names of its compilers.
//!
//! Texts come first among a module's metadata, and are identified by their numbers; references follow,
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
    /// Number of the module's metadata, and of the texts among them.
    count: u64,
    texts: u64,
    /// Number of references to each, in total and from `llvm.ident`.
    named: HashMap<u64, u64>,
    by_ident: HashMap<u64, u64>,
    /// Nodes with a single text, by the text.
    nodes: HashMap<u64, u64>,
}

/// `None`: part of a block is unknown.
type Known = Option<()>;

/// Numbers of the texts that only `llvm.ident` refers to. Empty if that is unknown: in damaged modules,
/// in modules with debug information, which also names the compiler, and in modules that pass metadata
/// to functions.
pub fn texts(data: &[u8]) -> HashSet<u64> {
    let mut uses = Uses::default();
    match uses.read_file(data) {
        Some(()) => uses.only_ident(),
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
                    block::METADATA => self.read(stream, inner, true)?,
                    block::FUNCTION => self.read_function(stream, inner)?,
                    block::TYPE_NEW => takes_no_metadata(stream, inner)?,
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
                    block::METADATA => self.read(stream, inner, false)?,
                    block::METADATA_ATTACHMENT => self.read_attachments(stream, inner)?,
                    _ => stream.skip(&inner).ok()?,
                },
            }
        }
    }

    /// Reads the metadata of the module, or of a function, whose numbers follow the module's.
    fn read(&mut self, stream: &mut Stream<'_>, mut outer: Block, of_module: bool) -> Known {
        let mut ident = false;
        loop {
            match stream.next(&mut outer).ok()? {
                Entry::End => return Some(()),
                Entry::Block(_) => return None,
                Entry::Record => {}
            }
            let record = &stream.record;
            let operands = &record.operands[..];
            let own = u64::from(of_module);
            match record.code {
                _ if operands.len() == MAX_KEPT_OPERANDS => return None,
                metadata::STRINGS if !of_module => {}
                metadata::STRINGS if self.count == 0 => {
                    self.texts = record.operand(0).ok()?;
                    self.count = self.texts;
                }
                metadata::VALUE => self.count = self.count.saturating_add(own),
                metadata::NODE | metadata::DISTINCT_NODE => {
                    // Zero is null; other operands are the number plus one.
                    let named = operands.iter().filter_map(|one| one.checked_sub(1));
                    named.for_each(|one| self.name(one));
                    match *operands {
                        [one] if of_module && (1..=self.texts).contains(&one) => {
                            self.nodes.insert(one - 1, self.count);
                        }
                        _ => {}
                    }
                    self.count = self.count.saturating_add(own);
                }
                metadata::NAME => ident = is_ident(record),
                metadata::NAMED_NODE => {
                    for &node in operands {
                        self.name(node);
                        if ident {
                            *self.by_ident.entry(node).or_default() += 1;
                        }
                    }
                }
                metadata::GLOBAL_DECL_ATTACHMENT => self.name_attached(operands.get(1..)),
                metadata::KIND | metadata::INDEX_OFFSET | metadata::INDEX => {}
                _ => return None,
            }
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
                    self.name_attached(operands.get(operands.len() % 2..));
                }
                _ => return None,
            }
        }
    }

    /// Records the references of pairs of a kind and a node.
    fn name_attached(&mut self, pairs: Option<&[u64]>) {
        for pair in pairs.unwrap_or_default().chunks(2) {
            pair.last().into_iter().for_each(|&node| self.name(node));
        }
    }

    fn name(&mut self, one: u64) {
        *self.named.entry(one).or_default() += 1;
    }

    fn only_ident(&self) -> HashSet<u64> {
        let nodes = self.nodes.iter().filter(|(text, node)| {
            let by_ident = self.by_ident.get(node);
            self.named.get(text) == Some(&1)
                && by_ident.is_some()
                && by_ident == self.named.get(node)
        });
        nodes.map(|(text, _)| *text).collect()
    }
}

/// Whether a record is the name `llvm.ident`.
pub fn is_ident(record: &Record<'_>) -> bool {
    let name = record.operands.iter().copied();
    name.eq(b"llvm.ident".map(u64::from))
}

/// Checks that no function type has a metadata parameter: the operands of calls are not parsed.
fn takes_no_metadata(stream: &mut Stream<'_>, mut outer: Block) -> Known {
    let (mut count, mut of_metadata) = (0, None);
    loop {
        match stream.next(&mut outer).ok()? {
            Entry::End => return Some(()),
            Entry::Block(_) => return None,
            Entry::Record => {}
        }
        let record = &stream.record;
        match record.code {
            types::NUMENTRY | types::STRUCT_NAME => continue,
            types::METADATA => of_metadata = Some(count),
            types::FUNCTION => {
                // Operands: variadic or not, the return type, the parameter types.
                let taken = record.operands.get(2..).unwrap_or_default();
                if of_metadata.is_some_and(|metadata| taken.contains(&metadata)) {
                    return None;
                }
            }
            _ => {}
        }
        count += 1;
    }
}

/// Empties some texts of the record of all texts.
pub fn clear_texts(record: &Record<'_>, emptied: &HashSet<u64>) -> Result<Edit, NotCanonical> {
    let unknown = NotCanonical::UnsupportedForm("unknown form of metadata strings");
    let (count, at) = (record.operand(0)?, record.operand(1)?);
    let at = usize::try_from(at).ok();
    let parts = record
        .blob
        .zip(at)
        .and_then(|(blob, at)| blob.split_at_checked(at));
    let (sizes, mut texts) = parts.ok_or(unknown.clone())?;
    let mut sizes = Bits::new(sizes);
    let (mut kept_sizes, mut kept) = (Writer::default(), Vec::<u8>::new());
    for number in 0..count {
        let size = usize::try_from(sizes.vbr(6)?).ok();
        let parts = size.and_then(|size| texts.split_at_checked(size));
        let (mut text, rest) = parts.ok_or(unknown.clone())?;
        if emptied.contains(&number) {
            text = &[];
        }
        kept_sizes.vbr(text.len() as u64, 6);
        kept.extend(text);
        texts = rest;
    }
    kept_sizes.align();
    let mut blob = kept_sizes.into_bytes();
    let at = blob.len() as u64;
    blob.extend(kept);
    Ok(Edit::WriteBlob(vec![count, at], blob))
}
