//! Comparison of an edited image with the original and the request. The image is read again, so that a
//! fault of the editor is an error and not a file that does not load.

use object::elf::{self, DynamicTag};

use super::evict::MOVABLE;
use super::headers::read;
use super::inspect::{Details, Inspection, details};
use super::patch::{Patch, Piece};
use super::problem::Problem;
use super::targets::Targets;
use super::words::u16_at;
use crate::elf::{ElfImage, Segment, Source};

/// Tags whose entries an edit changes.
const EDITED: [DynamicTag; 7] = [
    elf::DT_NEEDED,
    elf::DT_RPATH,
    elf::DT_RUNPATH,
    elf::DT_STRTAB,
    elf::DT_STRSZ,
    elf::DT_VERNEED,
    elf::DT_VERNEEDNUM,
];

pub(super) fn verify(
    patch: &Patch,
    original: &ElfImage<'_>,
    before: &Details<'_>,
    targets: &Targets,
    expected: &Inspection,
) -> Result<(), Problem> {
    let wrong = |what: &str| Problem::Verification(what.to_owned());
    let unreadable = |problem| Problem::Verification(format!("the edited image {problem}"));
    let pieces = patch.apply(original.data());
    let pieces = pieces.ok_or_else(|| wrong("the patch has parts that are not in the image"))?;
    let image = read(Source::Pieces(&pieces)).map_err(unreadable)?;
    image.check_loadable().map_err(unreadable)?;
    let after = details(&image).map_err(unreadable)?;
    if after.inspection != *expected {
        return Err(wrong(
            "the edited image has other requirements than requested",
        ));
    }
    // The second layout moves some tables.
    let adds_segment = image.segments.len() != original.segments.len();
    let kept = |entry: &(DynamicTag, u64)| {
        let moves = adds_segment && MOVABLE.contains(&entry.0);
        !moves && !EDITED.contains(&entry.0)
    };
    if !image
        .dynamic()
        .filter(kept)
        .eq(original.dynamic().filter(kept))
    {
        return Err(wrong("other entries of the dynamic section changed"));
    }
    let (_, old) = original.string_table()?;
    let (_, new) = image.string_table().map_err(unreadable)?;
    if !new.starts_with(old) {
        return Err(wrong("the string table changed"));
    }
    if before.indices != after.indices || !same_versions(before, &after, targets) {
        return Err(wrong("versions of other symbols changed"));
    }
    if before.symbols.bytes() != after.symbols.bytes() {
        return Err(wrong("the symbol table changed"));
    }
    if !same_memory(original, &image, patch) {
        return Err(wrong("a part of the image is at another address"));
    }
    Ok(())
}

/// Whether the version table of the symbols changed at the requested imports only.
fn same_versions(before: &Details<'_>, after: &Details<'_>, targets: &Targets) -> bool {
    let mut old = before.versions.to_vec();
    for (&symbol, target) in before.indices.iter().zip(&targets.imports) {
        let at = 2 * symbol as usize;
        if target.is_some() && at + 2 <= old.len() {
            let index = u16_at(after.versions, at) & 0x7fff | u16_at(&old, at) & 0x8000;
            old[at..at + 2].copy_from_slice(&index.to_le_bytes());
        }
    }
    old == after.versions
}

/// Whether each byte of the original that was kept has its address.
fn same_memory(original: &ElfImage<'_>, image: &ElfImage<'_>, patch: &Patch) -> bool {
    let mut segments: Vec<_> = image.segments.iter().collect();
    if segments.len() == original.segments.len() + 1 {
        let added = segments.iter().rposition(|segment| segment.is_load());
        segments.remove(added.unwrap_or_default());
    }
    let pairs = original.segments.iter().zip(segments.iter().copied());
    let same_content = |old: &Segment, new: &Segment| {
        let old = original.source.bytes(old.offset, old.filesz);
        old.is_some() && old == image.source.bytes(new.offset, new.filesz)
    };
    let same_segments = pairs.clone().all(|(old, new)| {
        (old.kind, old.flags, old.align) == (new.kind, new.flags, new.align)
            && match old.kind {
                elf::PT_DYNAMIC => true,
                _ if old.vaddr == new.vaddr => old.memsz <= new.memsz,
                elf::PT_INTERP | elf::PT_NOTE | elf::PT_GNU_PROPERTY => same_content(old, new),
                _ => false,
            }
    });
    let loads: Vec<_> = pairs.filter(|(old, _)| old.is_load()).collect();
    let mut done = 0;
    let mut in_place = true;
    for (at, piece) in patch.placed_pieces() {
        let Piece::Copy(range) = piece else { continue };
        // Copies of tables are checked by what they contain.
        if range.start < done {
            continue;
        }
        done = range.end;
        in_place &= loads.iter().all(|(old, new)| {
            let end = old.offset + old.filesz;
            let (start, end) = (range.start.max(old.offset), range.end.min(end));
            // Same distance from the start of the segment.
            start >= end || at + (start - range.start) == new.offset + (start - old.offset)
        });
    }
    same_segments && in_place && original.segments.len() <= segments.len()
}
