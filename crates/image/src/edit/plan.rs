//! Plan of an edit: from requirements before and after to bytes.

use std::collections::BTreeMap;

use object::elf::{self, DynamicTag};

use super::dynamic::Dynamic;
use super::evict::{Evicted, MOVABLE};
use super::image::DYN;
use super::inspect::{Details, Inspection};
use super::layout::{Layout, Room};
use super::patch::{Patch, Piece};
use super::problem::Problem;
use super::request::Request;
use super::strings::NewStrings;
use super::symtab::moved_symbols;
use super::targets::Targets;
use super::versions::{Need, Needs, Node};
use super::words::u16_at;
use crate::elf::ElfImage;

/// Tags that name other libraries, of which the stub would have to be part.
const REFUSED: [(DynamicTag, &str); 5] = [
    (elf::DT_AUDIT, "DT_AUDIT"),
    (elf::DT_DEPAUDIT, "DT_DEPAUDIT"),
    (elf::DT_FILTER, "DT_FILTER"),
    (elf::DT_AUXILIARY, "DT_AUXILIARY"),
    (elf::DT_CONFIG, "DT_CONFIG"),
];

/// Tags of prelink.
const PRELINK: [DynamicTag; 3] = [
    elf::DT_GNU_PRELINKED,
    elf::DT_GNU_LIBLIST,
    elf::DT_GNU_CONFLICT,
];

/// Rejects an image that refers to other libraries in a way that an edit would not keep.
pub(super) fn refuse(image: &ElfImage<'_>) -> Result<(), Problem> {
    if PRELINK.iter().any(|&tag| image.tag(tag).is_some()) {
        return Err(Problem::Prelinked);
    }
    match REFUSED.iter().find(|(tag, _)| image.tag(*tag).is_some()) {
        Some((_, name)) => Err(Problem::Filter(name)),
        None => Ok(()),
    }
}

/// The parts of an edited image that may need new bytes.
struct Parts<'t> {
    dynamic: Dynamic,
    strings: NewStrings<'t>,
    /// The version needs, and their table.
    needs: Option<(Needs, Vec<u8>)>,
    /// Edits in the original's places.
    replaced: Vec<(u64, Vec<u8>)>,
}

/// The edited image, which has the requirements `after`.
pub(super) fn edit(
    image: &ElfImage<'_>,
    before: &Details<'_>,
    targets: &Targets,
    after: &Inspection,
    request: &Request,
) -> Result<Patch, Problem> {
    let (_, strings) = image.string_table()?;
    let mut parts = Parts {
        dynamic: Dynamic::new(image.dynamic()),
        strings: NewStrings::new(strings),
        needs: None,
        replaced: Vec::new(),
    };
    let (dynamic, strings) = (&mut parts.dynamic, &mut parts.strings);
    dynamic.set_needed(&before.inspection.needed, &after.needed, strings)?;
    let path = (after.runpath.as_ref()).filter(|_| after.runpath != before.inspection.runpath);
    if let Some(path) = path {
        let tag = if after.rpath {
            elf::DT_RPATH
        } else {
            elf::DT_RUNPATH
        };
        dynamic.set(tag, strings.intern(path)?.into());
    }
    if let Some(needs) = &before.needs {
        let (mut needs, table) = edit_versions(before, needs, targets, request, strings)?;
        if table != before.versions {
            parts.replaced.push((before.versions_offset, table));
        }
        dynamic.set(elf::DT_VERNEEDNUM, needs.entries.len() as u64);
        let table = needs.write();
        parts.needs = Some((needs, table));
    }
    place(image, before, parts)
}

/// Version needs and version table of the symbols after the edit.
fn edit_versions(
    before: &Details<'_>,
    needs: &Needs,
    targets: &Targets,
    request: &Request,
    strings: &mut NewStrings<'_>,
) -> Result<(Needs, Vec<u8>), Problem> {
    let mut needs = needs.clone();
    let mut table = before.versions.to_vec();
    // Index of each node of the stub.
    let mut indices: BTreeMap<&str, u16> = BTreeMap::new();
    for (need, node) in needs.entries.iter_mut().zip(&targets.nodes) {
        let Some(name) = node else { continue };
        need.file = strings.intern(&request.stub)?;
        let offset = strings.intern(name)?;
        // Several nodes of a library become one, since a node may occur once.
        need.nodes.retain_mut(|node| {
            (node.name, node.hash) = (offset, elf::hash(name.as_bytes()));
            let index = node.index & 0x7fff;
            *indices.entry(name).or_insert(index) == index
        });
    }
    needs.entries.retain(|need| !need.nodes.is_empty());
    for name in targets.added_nodes(&before.inspection) {
        let index = needs.free_index(&before.defined)?;
        let node = Node::new(strings.intern(name)?, elf::hash(name.as_bytes()), index);
        needs
            .entries
            .push(Need::new(strings.intern(&request.stub)?, node));
        indices.insert(name, index);
    }
    for (&symbol, node) in before.indices.iter().zip(&targets.imports) {
        let at = 2 * symbol as usize;
        let index = node.as_deref().and_then(|node| indices.get(node));
        if let (Some(index), Some(entry)) = (index, table.get_mut(at..at + 2)) {
            let hidden = u16_at(entry, 0) & 0x8000;
            entry.copy_from_slice(&(index | hidden).to_le_bytes());
        }
    }
    Ok((needs, table))
}

/// Puts the parts into their old places where they fit, and the others into new bytes.
fn place(
    image: &ElfImage<'_>,
    before: &Details<'_>,
    mut parts: Parts<'_>,
) -> Result<Patch, Problem> {
    let mut replaced = std::mem::take(&mut parts.replaced);
    let mut layout = Layout::new(image);
    let mut block = Block::default();

    let segment = image.own_dynamic_segment()?;
    let dynamic_moves = parts.dynamic.size() > segment.filesz;
    // Spare entries, as linkers leave them for such edits.
    let dynamic_size = if dynamic_moves {
        parts.dynamic.size() + 3 * DYN
    } else {
        segment.filesz
    };
    let symbols = before.symbols.len() as u64;
    let evicted = (!layout.can_grow(image, dynamic_moves))
        .then(|| Evicted::find(image, symbols))
        .transpose()?;
    let evicted_at = evicted.as_ref().map(|evicted| {
        // Tables keep their alignment, which is 16 at most. Not at the segment's start: llvm-strip 14 places
        // one of two segments of the same offset by the other, and aligns it to no page.
        block.size = 16 + evicted.range.start % 16;
        let at = block.reserve_at(block.size, evicted.size());
        block.fill(Some(at), [Piece::Copy(evicted.range.clone())]);
        at
    });

    let (strings_address, old_strings) = image.string_table()?;
    let strings_offset = image.offset_of(strings_address, old_strings.len() as u64)?;
    let strings_size = parts.strings.size();
    let strings_at = (!parts.strings.added.is_empty()).then(|| block.reserve(strings_size));

    let old_versions = before
        .needs
        .as_ref()
        .map_or((0, 0), |old| (old.offset, old.size()));
    let versions_address = image.tag(elf::DT_VERNEED).unwrap_or(0);
    let (count, versions) = parts.needs.map_or((0, Vec::new()), |(needs, table)| {
        (needs.entries.len(), table)
    });
    let versions_size = versions.len() as u64;
    let versions_at = (versions.len() > old_versions.1).then(|| block.reserve(versions_size));

    let dynamic_at = dynamic_moves.then(|| block.reserve(dynamic_size));

    let grows = strings_at.or(versions_at).or(dynamic_at).is_some();
    let place = match (&evicted, evicted_at) {
        _ if !grows => None,
        (Some(evicted), Some(at)) => {
            let place = layout.add_segment(image, block.size, dynamic_moves, evicted, at)?;
            for tag in MOVABLE {
                let address = image.tag(tag);
                let moved = address.and_then(|a| evicted.moved(a, place.address + at));
                if let Some(address) = moved {
                    parts.dynamic.set(tag, address);
                }
            }
            Some(place)
        }
        _ => Some(layout.grow(image, block.size)?),
    };
    let at = |part: Option<u64>| {
        let (part, place) = part.zip(place.as_ref())?;
        Some((place.address + part, place.offset + part))
    };
    if let Some((address, offset)) = at(strings_at) {
        parts.dynamic.set(elf::DT_STRTAB, address);
        parts.dynamic.set(elf::DT_STRSZ, strings_size);
        layout.update(image, elf::SHT_STRTAB, strings_address, |s| {
            (s.addr, s.offset, s.size) = (address, offset, strings_size);
        });
        let old = strings_offset..strings_offset + old_strings.len() as u64;
        block.fill(
            strings_at,
            [Piece::Copy(old), Piece::New(parts.strings.added)],
        );
    }
    layout.update(image, elf::SHT_GNU_VERNEED, versions_address, |s| {
        s.info = count as u32
    });
    match at(versions_at) {
        Some((address, offset)) => {
            parts.dynamic.set(elf::DT_VERNEED, address);
            layout.update(image, elf::SHT_GNU_VERNEED, versions_address, |s| {
                (s.addr, s.offset, s.size) = (address, offset, versions_size);
            });
            block.fill(versions_at, [Piece::New(versions)]);
        }
        None if versions.is_empty() => {}
        None => replaced.push((old_versions.0, versions)),
    }
    match at(dynamic_at) {
        Some((address, offset)) => {
            layout.move_dynamic(image, (address, offset, dynamic_size))?;
            block.fill(dynamic_at, [Piece::New(parts.dynamic.write(dynamic_size))]);
        }
        None => replaced.push((segment.offset, parts.dynamic.write(dynamic_size))),
    }
    replaced.extend(moved_symbols(image, &layout.sections));
    replaced.extend(layout.write(image));
    let inserted = match place {
        Some(place) => (place.insert_at, block.finish(&place)),
        None => (image.source.len(), Vec::new()),
    };
    Patch::new(image.source.len(), replaced, inserted)
}

/// New bytes: parts in the order of their offsets.
#[derive(Default)]
struct Block {
    size: u64,
    parts: Vec<(u64, Vec<Piece>)>,
}

impl Block {
    /// Offset of a new part.
    fn reserve(&mut self, size: u64) -> u64 {
        self.reserve_at(self.size.next_multiple_of(16), size)
    }

    fn reserve_at(&mut self, at: u64, size: u64) -> u64 {
        self.size = at + size;
        at
    }

    fn fill<const N: usize>(&mut self, at: Option<u64>, pieces: [Piece; N]) {
        self.parts.extend(at.map(|at| (at, pieces.into())));
    }

    /// The bytes to insert.
    fn finish(self, place: &Room) -> Vec<Piece> {
        let zeros = |count: u64| Piece::New(vec![0; count as usize]);
        let mut pieces = vec![zeros(place.zeros)];
        let mut done = 0;
        for (at, part) in self.parts {
            pieces.push(zeros(at - done));
            done = at + part.iter().map(Piece::len).sum::<u64>();
            pieces.extend(part);
        }
        pieces.push(zeros(place.inserted - place.zeros - done));
        pieces
    }
}
