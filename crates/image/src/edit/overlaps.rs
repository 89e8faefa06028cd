//! Overlaps of what an edit changes in its place with tables that the loader reads.

use std::ops::Range;

use object::elf::{self, DynamicTag};

use super::hashes;
use super::headers::{HEADER, SECTION, SEGMENT};
use super::initializers::arrays;
use super::inspect::Details;
use super::problem::EditProblem;
use crate::elf::ElfImage;

/// Tables with their sizes.
const TABLES: [(DynamicTag, DynamicTag); 3] = [
    (elf::DT_RELA, elf::DT_RELASZ),
    (elf::DT_JMPREL, elf::DT_PLTRELSZ),
    (elf::DT_RELR, elf::DT_RELRSZ),
];

/// Rejects an image in which an edit of one table would change another.
pub(super) fn check(image: &ElfImage<'_>, details: &Details<'_>) -> Result<(), EditProblem> {
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
    let read = read_ranges(image, details)?;
    for (i, range) in edited.iter().enumerate() {
        let mut further_ranges = edited[i + 1..].iter().chain(&read);
        if further_ranges.any(|further| overlaps(range, further)) {
            return Err(EditProblem::Malformed("tables overlap"));
        }
    }
    Ok(())
}

/// Offsets of tables that the loader reads, and no edit changes.
fn read_ranges(
    image: &ElfImage<'_>,
    details: &Details<'_>,
) -> Result<Vec<Range<u64>>, EditProblem> {
    let (strings_address, strings) = image.string_table()?;
    let symbols_address = image.required(elf::DT_SYMTAB, "no symbol table")?;
    let mut tables = vec![
        range(strings_address, strings.len() as u64),
        range(symbols_address, details.symbols.bytes().len() as u64),
    ];
    for (table, size) in TABLES {
        if let (Some(address), Some(size)) = (image.tag(table), image.tag(size)) {
            tables.push(range(address, size));
        }
    }
    tables.extend(hashes::ranges(image)?);
    tables.extend(arrays(image)?);
    if let Some(address) = image.tag(elf::DT_VERDEF) {
        tables.push(range(address, 20));
    }
    let mut ranges = Vec::new();
    for Range { start, end } in tables {
        let size = end - start;
        if size != 0 {
            ranges.push(range(image.offset_of(start, size)?, size));
        }
    }
    Ok(ranges)
}

fn range(start: u64, size: u64) -> Range<u64> {
    start..start.saturating_add(size)
}

fn overlaps(a: &Range<u64>, b: &Range<u64>) -> bool {
    !a.is_empty() && !b.is_empty() && a.start < b.end && b.start < a.end
}
