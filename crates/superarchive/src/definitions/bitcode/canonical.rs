//! Canonical bitcode: without target CPU and features, producer and source file name.
//!
//! Only the blocks of a module (`llvm/Bitcode/LLVMBitCodes.h`) with such contents are rewritten; the
//! others are copied unchanged. Offsets of other blocks are dropped if LLVM does not require them:
//! offsets of functions and of metadata, and the symbol table, which linkers create if there is
//! none.

use std::collections::HashSet;

use super::codes::{BLOB, MAGIC, attribute, block, identification, metadata, module, next, symbol};
use super::edit::{BitcodeInput, Edit, edit_records};
use super::ident;
use super::stream::{Block, BlockPart, Entry, Record, Stream};
use super::string_table::read_blob;
use super::writer::{OUTSIDE, Writer};
use crate::definitions::not_canonical::NotCanonical;

/// Function attributes that contain the processor; the module's user supplies it instead.
const DROPPED_ATTRIBUTES: [&[u8]; 3] = [b"target-cpu", b"target-features", b"tune-cpu"];

/// Blocks of a module without offsets of others.
const COPIED_BLOCKS: [u64; 8] = [
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
const UNNAMED_RECORDS: [u64; 6] = [
    module::TRIPLE,
    module::DATALAYOUT,
    module::ASM,
    module::SECTIONNAME,
    module::DEPLIB,
    module::GCNAME,
];

/// Records with a name: their code, the position of a second name's offset and size, and the number
/// of operands in LLVM 19. Groups have one name.
const NAMED_RECORDS: [(u64, usize, usize); 5] = [
    (module::GLOBALVAR, 16, 20),
    (module::FUNCTION, 19, 21),
    (module::ALIAS, 11, 13),
    (module::IFUNC, 7, 9),
    (module::COMDAT, 0, 3),
];

const OLD_NAMES: NotCanonical =
    NotCanonical::UnsupportedForm("symbol names in the form of LLVM before 5");

type Result<T, E = NotCanonical> = std::result::Result<T, E>;

/// Canonical form of a module.
pub fn canonical(data: &[u8]) -> Result<Vec<u8>> {
    if !data.starts_with(MAGIC) {
        return Err(NotCanonical::UnsupportedForm("module is in a wrapper"));
    }
    let (stream, mut outside) = Stream::new(data)?;
    let mut input = BitcodeInput { data, stream };
    let mut out = Writer::with_prefix(MAGIC);
    let (mut names_end, mut strings) = (None, None);
    while !input.stream.is_at_end() {
        let Entry::Block(inner) = input.stream.next(&mut outside)? else {
            return Err(NotCanonical::UnsupportedForm("bitcode is not in blocks"));
        };
        match inner.id {
            block::IDENTIFICATION if names_end.is_none() => {
                write_identification(&mut input, &mut out, inner)?;
            }
            block::MODULE if names_end.is_none() => {
                names_end = Some(write_module(&mut input, &mut out, inner)?);
            }
            block::STRTAB if strings.is_none() => {
                strings = Some(read_blob(&mut input.stream, inner)?);
            }
            block::SYMTAB => input.stream.skip(&inner)?,
            block::IDENTIFICATION | block::MODULE | block::STRTAB => {
                return Err(NotCanonical::UnsupportedForm("several modules in one file"));
            }
            _ => return Err(NotCanonical::UnsupportedForm("unknown block in the file")),
        }
    }
    let (Some(names_end), Some(strings)) = (names_end, strings) else {
        return Err(NotCanonical::UnsupportedForm(
            "no module, or no symbol names",
        ));
    };
    // The names of the symbol table follow those of the module.
    let names = usize::try_from(names_end)
        .ok()
        .and_then(|end| strings.get(..end))
        .ok_or(NotCanonical::UnsupportedForm(
            "symbol name is outside the string table",
        ))?;
    let string_table = out.enter(OUTSIDE, block::STRTAB, 3);
    out.define_blob(3, BLOB);
    out.fixed(next::FIRST_APPLICATION_ABBREV, 3);
    out.blob(names);
    out.end(string_table, 3);
    Ok(out.into_bytes())
}

/// Writes the version of the format, without the producer.
fn write_identification(
    input: &mut BitcodeInput<'_>,
    out: &mut Writer,
    mut outer: Block,
) -> Result<()> {
    let mut epoch = 0;
    loop {
        match input.stream.next(&mut outer)? {
            Entry::End => break,
            Entry::Block(_) => {
                return Err(NotCanonical::UnsupportedForm(
                    "identification contains blocks",
                ));
            }
            Entry::Record if input.stream.record.code == identification::EPOCH => {
                epoch = input.stream.record.operand(0)?;
            }
            Entry::Record => {}
        }
    }
    let open_block = out.enter(OUTSIDE, block::IDENTIFICATION, 3);
    out.record(3, identification::EPOCH, &[epoch]);
    out.end(open_block, 3);
    Ok(())
}

/// Writes a module. Returns the end of its last name in the string table.
fn write_module(input: &mut BitcodeInput<'_>, out: &mut Writer, mut outer: Block) -> Result<u64> {
    input.stream.clear_block_info();
    let ident_strings = ident::ident_strings(input.data);
    let width = outer.width;
    let open_block = out.enter(OUTSIDE, block::MODULE, width);
    let (mut names_end, mut dropped_groups, mut has_version) = (0, HashSet::new(), false);
    loop {
        input.check_output_size(out)?;
        let start = input.stream.position();
        match input.stream.next_part(&mut outer)? {
            BlockPart::BlockInfo(inner) => {
                let content = input.content(&inner)?;
                out.block(width, block::BLOCKINFO, inner.width, content);
                input.stream.read_block_info(inner)?;
            }
            // The encoding depends on the characters of the name.
            BlockPart::Abbreviation
                if outer.newest_abbreviation_code() == Some(module::SOURCE_FILENAME) =>
            {
                out.define_text(width, module::SOURCE_FILENAME);
            }
            BlockPart::Abbreviation => input.copy(out, start)?,
            BlockPart::Entry(Entry::End) => break,
            BlockPart::Entry(Entry::Block(inner)) => {
                write_block(
                    input,
                    out,
                    width,
                    inner,
                    &mut dropped_groups,
                    &ident_strings,
                )?;
            }
            BlockPart::Entry(Entry::Record) => {
                let record = &input.stream.record;
                match record.code {
                    module::VERSION if record.operand(0)? == 2 => has_version = true,
                    module::VERSION => return Err(OLD_NAMES),
                    module::VSTOFFSET | module::HASH => continue,
                    module::SOURCE_FILENAME => {
                        out.record(width, module::SOURCE_FILENAME, &[]);
                        continue;
                    }
                    code if UNNAMED_RECORDS.contains(&code) => {}
                    _ => names_end = names_end.max(record_names_end(record)?),
                }
                if record.blob.is_some() {
                    return Err(NotCanonical::UnsupportedForm(
                        "unknown record in the module",
                    ));
                }
                input.copy(out, start)?;
            }
        }
    }
    // Version with names in a table of the file, the first such and still the latest.
    if !has_version {
        return Err(OLD_NAMES);
    }
    out.end(open_block, width);
    Ok(names_end)
}

/// Writes a block inside a module, whose width is `outer_width`.
fn write_block(
    input: &mut BitcodeInput<'_>,
    out: &mut Writer,
    outer_width: u32,
    block: Block,
    dropped_groups: &mut HashSet<u64>,
    ident_strings: &HashSet<u64>,
) -> Result<()> {
    match block.id {
        block::PARAMATTR_GROUP => edit_records(input, out, outer_width, block, |record| {
            edit_group(record, dropped_groups)
        }),
        block::PARAMATTR => edit_records(input, out, outer_width, block, |record| {
            edit_group_list(record, dropped_groups)
        }),
        block::METADATA => {
            let mut is_named_ident = false;
            edit_records(input, out, outer_width, block, |record| {
                edit_metadata(record, &mut is_named_ident, ident_strings)
            })
        }
        block::VALUE_SYMTAB => check_function_offsets(input, block),
        id if COPIED_BLOCKS.contains(&id) => {
            out.block(outer_width, id, block.width, input.content(&block)?);
            input.stream.skip(&block)?;
            Ok(())
        }
        block::GLOBALVAL_SUMMARY | block::FULL_LTO_GLOBALVAL_SUMMARY => {
            Err(NotCanonical::UnsupportedForm("summary for ThinLTO"))
        }
        _ => Err(NotCanonical::UnsupportedForm("unknown block in the module")),
    }
}

/// End of the names of a record.
fn record_names_end(record: &Record<'_>) -> Result<u64> {
    NAMED_RECORDS
        .iter()
        .find(|(code, ..)| *code == record.code)
        .filter(|(.., max_operands)| record.operands.len() <= *max_operands)
        .and_then(|&(_, second_name, _)| {
            let first_end = name_end(&record.operands, 0)?;
            Some(first_end.max(name_end(&record.operands, second_name)?))
        })
        .ok_or(NotCanonical::UnsupportedForm(
            "unknown record in the module",
        ))
}

/// End of the name whose offset and size are the operands from an index on; 0 without such operands.
fn name_end(operands: &[u64], index: usize) -> Option<u64> {
    match operands.get(index..index + 2) {
        Some(range) => range[0].checked_add(range[1]),
        None => Some(0),
    }
}

/// Removes the dropped attributes from a group. Groups without others are dropped; their numbers are
/// recorded in `dropped_groups`.
fn edit_group(record: &Record<'_>, dropped_groups: &mut HashSet<u64>) -> Result<Edit> {
    if record.code != attribute::GRP_ENTRY {
        return Err(NotCanonical::UnsupportedForm("unknown form of attributes"));
    }
    let (group, parameter) = (record.operand(0)?, record.operand(1)?);
    if parameter != attribute::FUNCTION_INDEX {
        return Ok(Edit::Keep);
    }
    let mut kept = vec![group, parameter];
    let mut rest = &record.operands[2..];
    while !rest.is_empty() {
        let size =
            attribute_size(rest).ok_or(NotCanonical::UnsupportedForm("unknown attribute"))?;
        let (attribute, next) = rest.split_at(size);
        if !is_dropped(attribute) {
            kept.extend(attribute);
        }
        rest = next;
    }
    Ok(match kept.len() {
        size if size == record.operands.len() => Edit::Keep,
        2 => {
            dropped_groups.insert(group);
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
            let (terminator, _) = operands
                .iter()
                .enumerate()
                .skip(1)
                .filter(|(_, character)| **character == 0)
                .nth((kind - attribute::KEY) as usize)?;
            terminator + 1
        }
        _ => return None,
    };
    (size <= operands.len()).then_some(size)
}

fn is_dropped(attribute: &[u64]) -> bool {
    let Some((&(attribute::KEY | attribute::KEY_VALUE), text)) = attribute.split_first() else {
        return false;
    };
    DROPPED_ATTRIBUTES.iter().any(|name| {
        let key = name.iter().copied().chain([0]).map(u64::from);
        text.iter().copied().take(name.len() + 1).eq(key)
    })
}

/// Removes dropped groups from a list.
fn edit_group_list(record: &Record<'_>, dropped_groups: &HashSet<u64>) -> Result<Edit> {
    if record.code != attribute::ENTRY {
        return Err(NotCanonical::UnsupportedForm("unknown form of attributes"));
    }
    let groups: Vec<u64> = record
        .operands
        .iter()
        .copied()
        .filter(|group| !dropped_groups.contains(group))
        .collect();
    Ok(if groups.len() == record.operands.len() {
        Edit::Keep
    } else {
        Edit::Write(groups)
    })
}

/// Removes from metadata `llvm.ident`, which is a name and its node, the strings that only it uses, and
/// the index.
fn edit_metadata(
    record: &Record<'_>,
    is_named_ident: &mut bool,
    ident_strings: &HashSet<u64>,
) -> Result<Edit> {
    let is_dropped = match record.code {
        metadata::STRINGS if !ident_strings.is_empty() => {
            return ident::clear_strings(record, ident_strings);
        }
        metadata::NAME => {
            *is_named_ident = ident::is_ident(record);
            *is_named_ident
        }
        metadata::NAMED_NODE => std::mem::take(is_named_ident),
        metadata::INDEX_OFFSET | metadata::INDEX => true,
        _ => false,
    };
    Ok(if is_dropped { Edit::Drop } else { Edit::Keep })
}

/// Reads the table of a module's symbols, which since LLVM 5 contains only the offsets of functions.
fn check_function_offsets(input: &mut BitcodeInput<'_>, mut block: Block) -> Result<()> {
    loop {
        match input.stream.next(&mut block)? {
            Entry::End => return Ok(()),
            Entry::Record if input.stream.record.code == symbol::FNENTRY => {}
            _ => return Err(OLD_NAMES),
        }
    }
}
