//! Overlaps of what an edit changes in its place with tables that the loader reads.

use std::ops::Range;

use object::elf::{self, DynamicTag};

use super::hashes;
use super::headers::{HEADER, SECTION, SEGMENT};
use super::initializers::arrays;
use super::inspect::Details;
use super::problem::Problem;
use crate::elf::ElfImage;

/// Tables with their sizes.
const TABLES: [(DynamicTag, DynamicTag); 3] = [
    (elf::DT_RELA, elf::DT_RELASZ),
    (elf::DT_JMPREL, elf::DT_PLTRELSZ),
    (elf::DT_RELR, elf::DT_RELRSZ),
];

/// Rejects an image in which an edit of one table would change another.
pub(super) fn check(image: &ElfImage<'_>, details: &Details<'_>) -> Result<(), Problem> {
    let range = |start: u64, size: u64| start..start.saturating_add(size);
    let dynamic = image.own_dynamic_segment()?;
    let needs = details.needs.as_ref();
    let edited = [
        range(0, HEADER),
        range(image.header.phoff, image.segments.len() as u64 * SEGMENT),
        range(
            image.header.shoff,
            image.counted_sections().len() as u64 * SECTION,
        ),
        range(dynamic.offset, dynamic.filesz),
        range(details.versions_offset, details.versions.len() as u64),
        needs.map_or(0..0, |needs| range(needs.offset, needs.size() as u64)),
    ];
    let mut read = Vec::new();
    let mut add = |address: u64, size: u64| -> Result<(), Problem> {
        if size != 0 {
            read.push(range(image.offset_of(address, size)?, size));
        }
        Ok(())
    };
    let (strings, bytes) = image.string_table()?;
    add(strings, bytes.len() as u64)?;
    let symbols = image.required(elf::DT_SYMTAB, "no symbol table")?;
    add(symbols, details.symbols.bytes().len() as u64)?;
    for (table, size) in TABLES {
        if let (Some(address), Some(size)) = (image.tag(table), image.tag(size)) {
            add(address, size)?;
        }
    }
    for Range { start, end } in hashes::ranges(image)?.into_iter().chain(arrays(image)?) {
        add(start, end - start)?;
    }
    if let Some(address) = image.tag(elf::DT_VERDEF) {
        add(address, 20)?;
    }
    let overlaps = |a: &Range<u64>, b: &Range<u64>| {
        !a.is_empty() && !b.is_empty() && a.start < b.end && b.start < a.end
    };
    for (i, one) in edited.iter().enumerate() {
        let mut others = edited[i + 1..].iter().chain(&read);
        if others.any(|other| overlaps(one, other)) {
            return Err(Problem::Malformed("tables overlap"));
        }
    }
    Ok(())
}
