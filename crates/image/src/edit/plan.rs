//! Plan of an edit: from requirements before and after to bytes.

use std::collections::BTreeMap;

use object::elf::{self, DynamicTag};

use super::dynamic::Dynamic;
use super::inspect::{Details, Inspection};
use super::patch::Patch;
use super::placement::{Parts, place};
use super::problem::EditProblem;
use super::request::EditRequest;
use super::strings::NewStrings;
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
pub(super) fn refuse(image: &ElfImage<'_>) -> Result<(), EditProblem> {
    if PRELINK.iter().any(|&tag| image.tag(tag).is_some()) {
        return Err(EditProblem::Prelinked);
    }
    match REFUSED.iter().find(|(tag, _)| image.tag(*tag).is_some()) {
        Some((_, name)) => Err(EditProblem::Filter(name)),
        None => Ok(()),
    }
}

/// The edited image, which has the requirements `after`.
pub(super) fn edit(
    image: &ElfImage<'_>,
    before: &Details<'_>,
    targets: &Targets,
    after: &Inspection,
    request: &EditRequest,
) -> Result<Patch, EditProblem> {
    let (_, strings) = image.string_table()?;
    let mut parts = Parts {
        dynamic: Dynamic::new(image.dynamic()),
        strings: NewStrings::new(strings),
        need_count: 0,
        needs: Vec::new(),
        replaced: Vec::new(),
    };
    let (dynamic, strings) = (&mut parts.dynamic, &mut parts.strings);
    dynamic.set_needed(&before.inspection.needed, &after.needed, strings)?;
    let is_changed = after.runpath != before.inspection.runpath;
    if let Some(path) = after.runpath.as_ref().filter(|_| is_changed) {
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
        parts.need_count = needs.entries.len();
        parts.needs = needs.write();
    }
    place(image, before, parts)
}

/// Version needs and version table of the symbols after the edit.
fn edit_versions(
    before: &Details<'_>,
    needs: &Needs,
    targets: &Targets,
    request: &EditRequest,
    strings: &mut NewStrings<'_>,
) -> Result<(Needs, Vec<u8>), EditProblem> {
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
        let offset = 2 * symbol as usize;
        let index = node.as_deref().and_then(|node| indices.get(node));
        if let (Some(index), Some(entry)) = (index, table.get_mut(offset..offset + 2)) {
            let hidden = u16_at(entry, 0) & 0x8000;
            entry.copy_from_slice(&(index | hidden).to_le_bytes());
        }
    }
    Ok((needs, table))
}
