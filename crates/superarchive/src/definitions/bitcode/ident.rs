//! Which texts of a module's metadata only `llvm.ident` has: who compiled it.
//!
//! Texts come first among a module's metadata, and are told by their numbers; who names them comes
//! behind, and in functions. So this is read once before anything is written.

use std::collections::{HashMap, HashSet};

use super::bits::Bits;
use super::codes::{block, metadata, types};
use super::edit::Edit;
use super::stream::{Block, Entry, KEPT, Record, Stream};
use super::writer::Writer;
use crate::definitions::not_canonical::NotCanonical;

/// Who names which metadata.
#[derive(Default)]
struct Uses {
    /// How many there are of the module's own, and how many of these are texts.
    count: u64,
    texts: u64,
    /// How often each is named, and how often by `llvm.ident`.
    named: HashMap<u64, u64>,
    by_ident: HashMap<u64, u64>,
    /// Nodes of one text alone, by the text.
    nodes: HashMap<u64, u64>,
}

/// `None`: not all of a block is understood.
type Known = Option<()>;

/// The numbers of the texts that nothing but `llvm.ident` names. There are none where that cannot be
/// told: in damaged modules, in those with debug information, which names the compiler, too, and in
/// those that give metadata to functions.
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

    /// Metadata of the module, or of a function, whose numbers are behind the module's.
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
                _ if operands.len() == KEPT => return None,
                metadata::STRINGS if !of_module => {}
                metadata::STRINGS if self.count == 0 => {
                    self.texts = record.operand(0).ok()?;
                    self.count = self.texts;
                }
                metadata::VALUE => self.count = self.count.saturating_add(own),
                metadata::NODE | metadata::DISTINCT_NODE => {
                    // Zero is nothing, and others are one more than what they name.
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
                    if operands.len() == KEPT {
                        return None;
                    }
                    // Those of an instruction have its number before them.
                    self.name_attached(operands.get(operands.len() % 2..));
                }
                _ => return None,
            }
        }
    }

    /// Pairs of a kind and a node.
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

/// That no function of these types takes metadata: what calls give, only their types tell.
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
                // Whether it takes more, what it gives back, and what it takes.
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

/// The record of all texts, with some of them empty.
pub fn without(record: &Record<'_>, emptied: &HashSet<u64>) -> Result<Edit, NotCanonical> {
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
