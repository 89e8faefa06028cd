//! Comparison of an edited image with the original and the request. The image is read again, so that a
//! fault of the editor is an error and not a file that does not load.

use object::elf::{self, DynamicTag};

use super::evict::MOVABLE;
use super::headers::read;
use super::inspect::{Details, Inspection, read_details};
use super::patch::{Patch, Piece};
use super::problem::EditProblem;
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
) -> Result<(), EditProblem> {
    let pieces = patch
        .apply(original.data())
        .ok_or_else(|| wrong("the patch has parts that are not in the image"))?;
    let mut image = read(Source::Pieces(&pieces)).map_err(unreadable)?;
    image.consumed = original.consumed;
    image.check_loadable().map_err(unreadable)?;
    let after = read_details(&image).map_err(unreadable)?;
    if after.inspection != *expected {
        return Err(wrong(
            "the edited image has other requirements than requested",
        ));
    }
    // The second layout moves some tables.
    let adds_segment = image.segments.len() != original.segments.len();
    let is_kept = |(tag, _): &(DynamicTag, u64)| {
        !EDITED.contains(tag) && (!adds_segment || !MOVABLE.contains(tag))
    };
    if !image
        .dynamic()
        .filter(is_kept)
        .eq(original.dynamic().filter(is_kept))
    {
        return Err(wrong("other entries of the dynamic section changed"));
    }
    let (_, old_strings) = original.string_table()?;
    let (_, new_strings) = image.string_table().map_err(unreadable)?;
    if !new_strings.starts_with(old_strings) {
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

fn wrong(what: &str) -> EditProblem {
    EditProblem::Verification(what.to_owned())
}

fn unreadable(problem: EditProblem) -> EditProblem {
    EditProblem::Verification(format!("the edited image {problem}"))
}

/// Whether the version table of the symbols changed at the requested imports only.
fn same_versions(before: &Details<'_>, after: &Details<'_>, targets: &Targets) -> bool {
    let mut expected = before.versions.to_vec();
    for (&symbol, target) in before.indices.iter().zip(&targets.imports) {
        let offset = 2 * symbol as usize;
        if target.is_none() {
            continue;
        }
        if let Some(entry) = expected.get_mut(offset..offset + 2) {
            let version = u16_at(after.versions, offset) & 0x7fff | u16_at(entry, 0) & 0x8000;
            entry.copy_from_slice(&version.to_le_bytes());
        }
    }
    expected == after.versions
}

/// Whether each byte of the original that was kept has its address.
fn same_memory(original: &ElfImage<'_>, image: &ElfImage<'_>, patch: &Patch) -> bool {
    let mut segments: Vec<_> = image.segments.iter().collect();
    if segments.len() == original.segments.len() + 1 {
        let added = segments.iter().rposition(|segment| segment.is_load());
        segments.remove(added.unwrap_or_default());
    }
    if segments.len() < original.segments.len() {
        return false;
    }
    let mut loads = Vec::new();
    for (old, new) in original.segments.iter().zip(segments) {
        if !same_segment(original, old, image, new) {
            return false;
        }
        if old.is_load() {
            loads.push((old, new));
        }
    }
    let mut checked = 0;
    for (offset, piece) in patch.placed_pieces() {
        let Piece::Copy(range) = piece else { continue };
        // Copies of tables are checked by what they contain.
        if range.start < checked {
            continue;
        }
        checked = range.end;
        for (old, new) in &loads {
            let start = range.start.max(old.offset);
            let end = range.end.min(old.offset + old.filesz);
            // Same distance from the start of the segment.
            if start < end && offset + (start - range.start) != new.offset + (start - old.offset) {
                return false;
            }
        }
    }
    true
}

/// Whether a segment has its address and attributes; the second layout moves some whose content nothing refers to.
fn same_segment(
    original: &ElfImage<'_>,
    old: &Segment,
    image: &ElfImage<'_>,
    new: &Segment,
) -> bool {
    if (old.kind, old.flags, old.align) != (new.kind, new.flags, new.align) {
        return false;
    }
    match old.kind {
        elf::PT_DYNAMIC => true,
        _ if old.vaddr == new.vaddr => old.memsz <= new.memsz,
        elf::PT_INTERP | elf::PT_NOTE | elf::PT_GNU_PROPERTY => {
            let old_content = original.source.bytes(old.offset, old.filesz);
            old_content.is_some() && old_content == image.source.bytes(new.offset, new.filesz)
        }
        _ => false,
    }
}
