//! Comparison of an edited image with the original and the request. The image is read again, so that a
//! fault of the editor is an error and not a file that does not load.

use object::elf::{self, DynamicTag};

use super::evict::MOVABLE;
use super::headers::Segment;
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
    before: &Details<'_>,
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
    // The second layout moves some tables.
    let adds_segment = image.segments.len() != original.segments.len();
    let kept = |entry: &&(DynamicTag, u64)| {
        let moves = adds_segment && MOVABLE.contains(&entry.0);
        !moves && !EDITED.contains(&entry.0)
    };
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
    if before.symbols != after.symbols {
        return Err(wrong("the symbol table changed"));
    }
    if !same_memory(original, &image, &edited) {
        return Err(wrong("a part of the image is at another address"));
    }
    Ok(())
}

/// Whether the version table of the symbols changed at the requested imports only.
fn same_versions(before: &Details<'_>, after: &Details<'_>, targets: &Targets) -> bool {
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
    let mut segments: Vec<_> = image.segments.iter().collect();
    if segments.len() == original.segments.len() + 1 {
        let added = segments.iter().rposition(|segment| segment.is_load());
        segments.remove(added.unwrap_or_default());
    }
    let pairs = original.segments.iter().zip(segments.iter().copied());
    let same_content = |old: &Segment, new: &Segment| {
        let old = original.source.bytes(old.offset, old.filesz);
        old.is_some() && old == edited.bytes(new.offset, new.filesz)
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
    for (at, piece) in edited.pieces() {
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
