//! Comparison of an edited image with the original and the request. The image is read again, so that a
//! fault of the editor is an error and not a file that does not load.

use object::elf::{self, DynamicTag};

use super::image::Image;
use super::inspect::{Details, Inspection, details};
use super::patch::{Edited, Patch, Piece};
use super::problem::Problem;
use super::source::{Source, u16_at};
use super::targets::Targets;

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
    source: &[u8],
    patch: &Patch,
    original: &Image<'_>,
    before: &Details,
    targets: &Targets,
    expected: &Inspection,
) -> Result<(), Problem> {
    let edited = Edited::new(source, patch);
    let bytes: &dyn Source = &edited;
    let wrong = |what: &str| Problem::Verification(what.to_owned());
    let unreadable = |problem| Problem::Verification(format!("the edited image {problem}"));
    let image = Image::read(bytes).map_err(unreadable)?;
    let after = details(&image).map_err(unreadable)?;
    if after.inspection != *expected {
        return Err(wrong(
            "the edited image has other requirements than requested",
        ));
    }
    let kept = |entry: &&(DynamicTag, u64)| !EDITED.contains(&entry.0);
    let kept =
        |image: &Image<'_>| -> Vec<_> { image.dynamic.iter().filter(kept).copied().collect() };
    if kept(&image) != kept(original) {
        return Err(wrong("other entries of the dynamic section changed"));
    }
    let (_, old) = original.strings()?;
    let (_, new) = image.strings().map_err(unreadable)?;
    if !new.starts_with(&old) {
        return Err(wrong("the string table changed"));
    }
    if before.indices != after.indices || !same_versions(before, &after, targets) {
        return Err(wrong("versions of other symbols changed"));
    }
    if !same_memory(original, &image, &edited) {
        return Err(wrong("a part of the image is at another address"));
    }
    Ok(())
}

/// Whether the version table of the symbols changed at the requested imports only.
fn same_versions(before: &Details, after: &Details, targets: &Targets) -> bool {
    let mut old = before.versions.clone();
    for (&symbol, target) in before.indices.iter().zip(&targets.imports) {
        let at = 2 * symbol as usize;
        if target.is_some() && at + 2 <= old.len() {
            let index = u16_at(&after.versions, at) & 0x7fff | u16_at(&old, at) & 0x8000;
            old[at..at + 2].copy_from_slice(&index.to_le_bytes());
        }
    }
    old == after.versions
}

/// Whether each byte of the original that was kept has its address.
fn same_memory(original: &Image<'_>, image: &Image<'_>, edited: &Edited<'_>) -> bool {
    let same = original
        .segments
        .iter()
        .zip(&image.segments)
        .all(|(old, new)| {
            let moved = old.kind == elf::PT_DYNAMIC;
            (old.kind, old.flags, old.align) == (new.kind, new.flags, new.align)
                && (moved || old.vaddr == new.vaddr && old.memsz <= new.memsz)
        });
    let mut done = 0;
    let kept = edited.pieces().filter_map(|(at, piece)| match piece {
        Piece::Copy(range) => Some((at, range)),
        Piece::New(_) => None,
    });
    let segments = original.segments.iter().zip(&image.segments);
    let loads: Vec<_> = segments.filter(|(old, _)| old.is_load()).collect();
    let mut in_place = true;
    for (at, range) in kept {
        // The copy of the string table.
        if range.start < done {
            continue;
        }
        done = range.end;
        in_place &= loads.iter().all(|(old, new)| {
            let (start, end) = (
                range.start.max(old.offset),
                range.end.min(old.offset + old.filesz),
            );
            // Same distance from the start of the segment.
            start >= end || at + (start - range.start) == new.offset + (start - old.offset)
        });
    }
    same && in_place && original.segments.len() == image.segments.len()
}
