//! Canonical bitcode: without target CPU and features, producer and source file name.
//!
//! Only the blocks of a module (`llvm/Bitcode/LLVMBitCodes.h`) with such contents are rewritten; the
//! others are copied unchanged. Offsets of other blocks are dropped if LLVM does not require them:
//! offsets of functions and of metadata, and the symbol table, which linkers create if there is
//! none.

use std::collections::HashSet;

use super::codes::{BLOB, MAGIC, attribute, block, identification, metadata, module, next, symbol};
use super::edit::{self, Edit, Source};
use super::ident;
use super::stream::{Block, BlockPart, Entry, Record, Stream};
use super::string_table::read_blob;
use super::writer::{OUTSIDE, Writer};
use crate::definitions::not_canonical::NotCanonical;

/// Function attributes that contain the processor; the module's user supplies it instead.
const DROPPED: [&[u8]; 3] = [b"target-cpu", b"target-features", b"tune-cpu"];

/// Blocks of a module without offsets of others.
const COPIED: [u64; 8] = [
    block::CONSTANTS,
    block::FUNCTION,
    block::METADATA_ATTACHMENT,
    block::TYPE_NEW,
    block::USELIST,
    block::OPERAND_BUNDLE_TAGS,
    block::METADATA_KIND,
    block::SYNC_SCOPE_NAMES,
];

/// Records of a module that have no name.
const KEPT: [u64; 6] = [
    module::TRIPLE,
    module::DATALAYOUT,
    module::ASM,
    module::SECTIONNAME,
    module::DEPLIB,
    module::GCNAME,
];

/// Records with a name: their code, the position of a second name's offset and size, and the number
/// of operands in LLVM 19. Groups have one name.
const NAMED: [(u64, usize, usize); 5] = [
    (module::GLOBALVAR, 16, 20),
    (module::FUNCTION, 19, 21),
    (module::ALIAS, 11, 13),
    (module::IFUNC, 7, 9),
    (module::COMDAT, 0, 3),
];

const OLD: NotCanonical =
    NotCanonical::UnsupportedForm("symbol names in the form of LLVM before 5");

type Result<T, E = NotCanonical> = std::result::Result<T, E>;

/// Canonical form of a module.
pub fn canonical(data: &[u8]) -> Result<Vec<u8>> {
    if !data.starts_with(MAGIC) {
        return Err(NotCanonical::UnsupportedForm("module is in a wrapper"));
    }
    let (stream, mut outside) = Stream::new(data)?;
    let mut source = Source { data, stream };
    let mut out = Writer::with_prefix(MAGIC);
    let (mut names, mut texts) = (None, None);
    while !source.stream.is_over() {
        let Entry::Block(inner) = source.stream.next(&mut outside)? else {
            return Err(NotCanonical::UnsupportedForm("bitcode is not in blocks"));
        };
        match inner.id {
            block::IDENTIFICATION if names.is_none() => {
                write_identification(&mut source, &mut out, inner)?;
            }
            block::MODULE if names.is_none() => {
                names = Some(write_module(&mut source, &mut out, inner)?);
            }
            block::STRTAB if texts.is_none() => texts = Some(read_blob(&mut source.stream, inner)?),
            block::SYMTAB => source.stream.skip(&inner)?,
            block::IDENTIFICATION | block::MODULE | block::STRTAB => {
                return Err(NotCanonical::UnsupportedForm("several modules in one file"));
            }
            _ => return Err(NotCanonical::UnsupportedForm("unknown block in the file")),
        }
    }
    let (Some(end), Some(texts)) = (names, texts) else {
        return Err(NotCanonical::UnsupportedForm(
            "no module, or no symbol names",
        ));
    };
    // The names of the symbol table follow those of the module.
    let texts = usize::try_from(end).ok().and_then(|end| texts.get(..end));
    let texts = texts.ok_or(NotCanonical::UnsupportedForm(
        "symbol name is outside the string table",
    ))?;
    let open = out.enter(OUTSIDE, block::STRTAB, 3);
    out.define_blob(3, BLOB);
    out.fixed(next::FIRST_APPLICATION_ABBREV, 3);
    out.blob(texts);
    out.end(open, 3);
    Ok(out.into_bytes())
}

/// Writes the version of the format, without the producer.
fn write_identification(source: &mut Source<'_>, out: &mut Writer, mut outer: Block) -> Result<()> {
    let mut epoch = 0;
    loop {
        match source.stream.next(&mut outer)? {
            Entry::End => break,
            Entry::Block(_) => {
                return Err(NotCanonical::UnsupportedForm(
                    "identification contains blocks",
                ));
            }
            Entry::Record if source.stream.record.code == identification::EPOCH => {
                epoch = source.stream.record.operand(0)?;
            }
            Entry::Record => {}
        }
    }
    let open = out.enter(OUTSIDE, block::IDENTIFICATION, 3);
    out.record(3, identification::EPOCH, &[epoch]);
    out.end(open, 3);
    Ok(())
}

/// Writes a module. Returns the end of its last name in the texts.
fn write_module(source: &mut Source<'_>, out: &mut Writer, mut outer: Block) -> Result<u64> {
    source.stream.forget();
    let texts = ident::texts(source.data);
    let width = outer.width;
    let open = out.enter(OUTSIDE, block::MODULE, width);
    let (mut names_end, mut emptied, mut version) = (0, HashSet::new(), false);
    loop {
        source.limit(out)?;
        let from = source.stream.position();
        match source.stream.part(&mut outer)? {
            BlockPart::Info(inner) => {
                out.block(
                    width,
                    block::BLOCKINFO,
                    inner.width,
                    source.content(&inner)?,
                );
                source.stream.block_info(inner)?;
            }
            // The encoding depends on the characters of the name.
            BlockPart::Definition if outer.defined() == Some(module::SOURCE_FILENAME) => {
                out.define_text(width, module::SOURCE_FILENAME);
            }
            BlockPart::Definition => source.copy(out, from)?,
            BlockPart::Entry(Entry::End) => break,
            BlockPart::Entry(Entry::Block(inner)) => match inner.id {
                block::PARAMATTR_GROUP => edit::records(source, out, width, inner, |record| {
                    group(record, &mut emptied)
                })?,
                block::PARAMATTR => {
                    edit::records(source, out, width, inner, |record| list(record, &emptied))?;
                }
                block::METADATA => {
                    let mut named = false;
                    edit::records(source, out, width, inner, |record| {
                        metadata_edit(record, &mut named, &texts)
                    })?;
                }
                block::VALUE_SYMTAB => only_places(source, inner)?,
                id if COPIED.contains(&id) => {
                    out.block(width, id, inner.width, source.content(&inner)?);
                    source.stream.skip(&inner)?;
                }
                block::GLOBALVAL_SUMMARY | block::FULL_LTO_GLOBALVAL_SUMMARY => {
                    return Err(NotCanonical::UnsupportedForm("summary for ThinLTO"));
                }
                _ => return Err(NotCanonical::UnsupportedForm("unknown block in the module")),
            },
            BlockPart::Entry(Entry::Record) => {
                let record = &source.stream.record;
                match record.code {
                    module::VERSION if record.operand(0)? == 2 => version = true,
                    module::VERSION => return Err(OLD),
                    module::VSTOFFSET | module::HASH => continue,
                    module::SOURCE_FILENAME => {
                        out.record(width, module::SOURCE_FILENAME, &[]);
                        continue;
                    }
                    code if KEPT.contains(&code) => {}
                    _ => names_end = names_end.max(names_of(record)?),
                }
                if record.blob.is_some() {
                    return Err(NotCanonical::UnsupportedForm(
                        "unknown record in the module",
                    ));
                }
                source.copy(out, from)?;
            }
        }
    }
    // Version with names in a table of the file, the first such and still the latest.
    if !version {
        return Err(OLD);
    }
    out.end(open, width);
    Ok(names_end)
}

/// End of the names of a record.
fn names_of(record: &Record<'_>) -> Result<u64> {
    let unknown = NotCanonical::UnsupportedForm("unknown record in the module");
    let known = NAMED.iter().find(|(code, ..)| *code == record.code);
    let Some(&(_, second, _)) = known.filter(|(.., most)| record.operands.len() <= *most) else {
        return Err(unknown);
    };
    let end = |at: usize| match record.operands.get(at..at + 2) {
        Some(place) => place[0].checked_add(place[1]),
        None => Some(0),
    };
    let ends = end(0)
        .zip(end(second))
        .map(|(first, second)| first.max(second));
    ends.ok_or(unknown)
}

/// Removes the dropped attributes from a group. Groups without others are dropped; their numbers are
/// recorded in `emptied`.
fn group(record: &Record<'_>, emptied: &mut HashSet<u64>) -> Result<Edit> {
    if record.code != attribute::GRP_ENTRY {
        return Err(NotCanonical::UnsupportedForm("unknown form of attributes"));
    }
    let (number, at) = (record.operand(0)?, record.operand(1)?);
    if at != attribute::FUNCTION_INDEX {
        return Ok(Edit::Keep);
    }
    let mut kept = vec![number, at];
    let mut rest = &record.operands[2..];
    while !rest.is_empty() {
        let size = attribute_size(rest);
        let size = size.ok_or(NotCanonical::UnsupportedForm("unknown attribute"))?;
        let (one, others) = rest.split_at(size);
        if !is_dropped(one) {
            kept.extend(one);
        }
        rest = others;
    }
    Ok(match kept.len() {
        all if all == record.operands.len() => Edit::Keep,
        2 => {
            emptied.insert(number);
            Edit::Drop
        }
        _ => Edit::Write(kept),
    })
}

/// Number of operands of the first attribute.
fn attribute_size(operands: &[u64]) -> Option<usize> {
    let size = match *operands.first()? {
        attribute::ENUM | attribute::TYPE_WITHOUT_VALUE => 2,
        attribute::INTEGER | attribute::TYPE => 3,
        kind @ (attribute::KEY | attribute::KEY_VALUE) => {
            let zeros = operands
                .iter()
                .enumerate()
                .skip(1)
                .filter(|(_, byte)| **byte == 0);
            let last = zeros
                .map(|(at, _)| at)
                .nth((kind - attribute::KEY) as usize)?;
            last + 1
        }
        _ => return None,
    };
    (size <= operands.len()).then_some(size)
}

fn is_dropped(attribute: &[u64]) -> bool {
    let Some((&(attribute::KEY | attribute::KEY_VALUE), text)) = attribute.split_first() else {
        return false;
    };
    DROPPED.iter().any(|name| {
        let name = name.iter().chain(&[0]).map(|&byte| u64::from(byte));
        text.iter()
            .copied()
            .zip(name.clone())
            .filter(|(a, b)| a == b)
            .count()
            == name.count()
    })
}

/// Removes dropped groups from a list.
fn list(record: &Record<'_>, emptied: &HashSet<u64>) -> Result<Edit> {
    if record.code != attribute::ENTRY {
        return Err(NotCanonical::UnsupportedForm("unknown form of attributes"));
    }
    let kept = record.operands.iter().copied();
    let kept: Vec<u64> = kept.filter(|group| !emptied.contains(group)).collect();
    Ok(if kept.len() == record.operands.len() {
        Edit::Keep
    } else {
        Edit::Write(kept)
    })
}

/// Removes from metadata `llvm.ident`, which is a name and its node, the texts that only it uses, and
/// the index.
fn metadata_edit(record: &Record<'_>, named: &mut bool, texts: &HashSet<u64>) -> Result<Edit> {
    let drop = match record.code {
        metadata::STRINGS if !texts.is_empty() => return ident::clear_texts(record, texts),
        metadata::NAME => {
            *named = ident::is_ident(record);
            *named
        }
        metadata::NAMED_NODE => std::mem::take(named),
        metadata::INDEX_OFFSET | metadata::INDEX => true,
        _ => false,
    };
    Ok(if drop { Edit::Drop } else { Edit::Keep })
}

/// Reads the table of a module's symbols, which since LLVM 5 contains only the offsets of functions.
fn only_places(source: &mut Source<'_>, mut block: Block) -> Result<()> {
    loop {
        match source.stream.next(&mut block)? {
            Entry::End => return Ok(()),
            Entry::Record if source.stream.record.code == symbol::FNENTRY => {}
            _ => return Err(OLD),
        }
    }
}
