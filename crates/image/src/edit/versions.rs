//! The table of required versions (`.gnu.version_r`; LSB, "Symbol Versioning"), and edits of it.

use std::collections::{BTreeMap, BTreeSet};

use object::elf;

use super::problem::EditProblem;
use super::words::{u16_at, u32_at};
use crate::elf::ElfImage;
use crate::strings::Strings;

/// Size of `Verneed` and of `Vernaux`.
const RECORD: usize = 16;

/// Number of version indices, which have 15 bits.
const INDICES: usize = 0x7fff;

/// The required versions of an image.
#[derive(Debug, Clone, Default)]
pub(super) struct Needs {
    /// The table as it is in the file, up to its last record.
    bytes: Vec<u8>,
    /// Offset of the table in the file.
    pub(super) offset: u64,
    pub(super) entries: Vec<Need>,
}

/// A library and its versions.
#[derive(Debug, Clone)]
pub(super) struct Need {
    /// Offset in the table; `None` for a new record.
    offset: Option<usize>,
    /// `vn_file`.
    pub(super) file: u32,
    pub(super) nodes: Vec<Node>,
}

/// A required version.
#[derive(Debug, Clone)]
pub(super) struct Node {
    offset: Option<usize>,
    pub(super) hash: u32,
    pub(super) flags: u16,
    /// Index in the version table of the symbols (`vna_other`).
    pub(super) index: u16,
    /// `vna_name`.
    pub(super) name: u32,
}

impl Need {
    /// A new record.
    pub(super) fn new(file: u32, node: Node) -> Self {
        Self {
            offset: None,
            file,
            nodes: vec![node],
        }
    }
}

impl Node {
    /// A new record.
    pub(super) fn new(name: u32, hash: u32, index: u16) -> Self {
        Self {
            offset: None,
            hash,
            flags: 0,
            index,
            name,
        }
    }
}

impl Needs {
    /// Reads the table; `None` for an image without versions. The counts must agree with the chains:
    /// glibc follows the chains and ignores the counts.
    pub(super) fn read(image: &ElfImage<'_>) -> Result<Option<Self>, EditProblem> {
        let Some(address) = image.tag(elf::DT_VERNEED) else {
            return Ok(None);
        };
        if image.tag(elf::DT_VERSYM).is_none() {
            return Err(EditProblem::Malformed(
                "version needs without a version table",
            ));
        }
        let mut needs = Self {
            bytes: Vec::new(),
            offset: image.offset_of(address, 1)?,
            entries: Vec::new(),
        };
        // Records must not overlap, or an edit of one would change another.
        let mut records = BTreeSet::new();
        let mut offset = 0;
        loop {
            let record = claim(image, address, offset, &mut records)?;
            if u16_at(record, 0) != 1 {
                return Err(EditProblem::Malformed("unknown format of version needs"));
            }
            let first_node = offset.saturating_add(u32_at(record, 8) as usize);
            let nodes = read_nodes(image, address, first_node, &mut records)?;
            if usize::from(u16_at(record, 2)) != nodes.len() {
                return Err(EditProblem::Malformed("count of version needs is wrong"));
            }
            needs.entries.push(Need {
                offset: Some(offset),
                file: u32_at(record, 4),
                nodes,
            });
            match u32_at(record, 12) as usize {
                0 => break,
                distance => offset = offset.saturating_add(distance),
            }
        }
        if image.tag(elf::DT_VERNEEDNUM) != Some(needs.entries.len() as u64) {
            return Err(EditProblem::Malformed("count of version needs is wrong"));
        }
        needs.check_indices()?;
        let end = records.last().map_or(0, |last| last + RECORD);
        needs.bytes = image.bytes_at(address, end as u64)?.to_vec();
        Ok(Some(needs))
    }

    fn check_indices(&self) -> Result<(), EditProblem> {
        let mut indices = BTreeSet::new();
        for node in self.entries.iter().flat_map(|need| &need.nodes) {
            // Bit 15 hides a version; references ignore it.
            if node.index & 0x7fff <= 1 || !indices.insert(node.index & 0x7fff) {
                return Err(EditProblem::Malformed("two versions have one index"));
            }
        }
        Ok(())
    }

    /// Library and version of each index, as offsets of their names.
    pub(super) fn by_index(&self) -> BTreeMap<u16, (u32, u32)> {
        let mut versions = BTreeMap::new();
        for need in &self.entries {
            for node in &need.nodes {
                versions.insert(node.index & 0x7fff, (need.file, node.name));
            }
        }
        versions
    }

    /// An index that no version has; `defined` are those of the versions that the image defines.
    pub(super) fn free_index(&self, defined: &BTreeSet<u16>) -> Result<u16, EditProblem> {
        let used = self.by_index().into_keys().chain(defined.iter().copied());
        let index = used.max().unwrap_or(1) + 1;
        if usize::from(index) < INDICES {
            Ok(index)
        } else {
            Err(EditProblem::Layout("all version indices are in use"))
        }
    }

    /// Size of the table in the file.
    pub(super) fn size(&self) -> usize {
        self.bytes.len()
    }

    /// The table with its changes. With a new record, which makes it move, each library is followed by
    /// its versions: eu-elflint rejects other orders, of which lld's is one.
    pub(super) fn write(&mut self) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        if self.entries.iter().any(|need| need.offset.is_none()) {
            bytes = vec![0; self.place_records()];
        }
        for (i, need) in self.entries.iter().enumerate() {
            let next = self.entries.get(i + 1).and_then(|next| next.offset);
            let offset = need.offset.unwrap_or_default();
            let first = need.nodes.first().and_then(|node| node.offset);
            put(&mut bytes, offset, &1_u16.to_le_bytes());
            put(
                &mut bytes,
                offset + 2,
                &(need.nodes.len() as u16).to_le_bytes(),
            );
            put(&mut bytes, offset + 4, &need.file.to_le_bytes());
            put(&mut bytes, offset + 8, &distance(offset, first));
            put(&mut bytes, offset + 12, &distance(offset, next));
            for (j, node) in need.nodes.iter().enumerate() {
                let next = need.nodes.get(j + 1).and_then(|next| next.offset);
                let offset = node.offset.unwrap_or_default();
                put(&mut bytes, offset, &node.hash.to_le_bytes());
                put(&mut bytes, offset + 4, &node.flags.to_le_bytes());
                put(&mut bytes, offset + 6, &node.index.to_le_bytes());
                put(&mut bytes, offset + 8, &node.name.to_le_bytes());
                put(&mut bytes, offset + 12, &distance(offset, next));
            }
        }
        bytes
    }

    /// Gives all records new offsets, and returns the size of the table.
    fn place_records(&mut self) -> usize {
        let mut size = 0;
        for need in &mut self.entries {
            need.offset = Some(size);
            size += RECORD;
            for node in &mut need.nodes {
                node.offset = Some(size);
                size += RECORD;
            }
        }
        size
    }
}

fn put(bytes: &mut [u8], offset: usize, field: &[u8]) {
    bytes[offset..offset + field.len()].copy_from_slice(field);
}

/// Distance between records: positive, because the order of records is that of their offsets.
fn distance(from: usize, to: Option<usize>) -> [u8; 4] {
    to.map_or(0, |to| (to - from) as u32).to_le_bytes()
}

/// Reads the nodes of a library, whose first record is at `offset` of the table.
fn read_nodes(
    image: &ElfImage<'_>,
    table: u64,
    mut offset: usize,
    records: &mut BTreeSet<usize>,
) -> Result<Vec<Node>, EditProblem> {
    let mut nodes = Vec::new();
    loop {
        let record = claim(image, table, offset, records)?;
        nodes.push(Node {
            offset: Some(offset),
            hash: u32_at(record, 0),
            flags: u16_at(record, 4),
            index: u16_at(record, 6),
            name: u32_at(record, 8),
        });
        match u32_at(record, 12) as usize {
            0 => return Ok(nodes),
            distance => offset = offset.saturating_add(distance),
        }
    }
}

/// Bytes of a record that no other record has.
fn claim<'s>(
    image: &ElfImage<'s>,
    table: u64,
    offset: usize,
    records: &mut BTreeSet<usize>,
) -> Result<&'s [u8], EditProblem> {
    let record = image.bytes_at(table.saturating_add(offset as u64), RECORD as u64)?;
    let near = offset.saturating_sub(RECORD - 1)..offset.saturating_add(RECORD);
    if offset % 4 != 0 || records.range(near).next().is_some() || records.len() > 2 * INDICES {
        return Err(EditProblem::Malformed("version needs overlap"));
    }
    records.insert(offset);
    Ok(record)
}

/// Indices of the versions that an image defines (`Verdef`), the file's own name included. `strings` is the
/// string table.
pub(super) fn defined_indices(
    image: &ElfImage<'_>,
    strings: &[u8],
) -> Result<BTreeSet<u16>, EditProblem> {
    let mut indices = BTreeSet::new();
    let Some(mut record_address) = image.tag(elf::DT_VERDEF) else {
        return Ok(indices);
    };
    let strings = Strings::new(strings);
    // As in glibc, the chain ends the table.
    for count in 1..=INDICES as u64 {
        let record = image.bytes_at(record_address, 20)?;
        if u16_at(record, 0) != 1 {
            return Err(EditProblem::Malformed(
                "unknown format of version definitions",
            ));
        }
        indices.insert(u16_at(record, 4) & 0x7fff);
        let name_address = record_address.saturating_add(u32_at(record, 12).into());
        let name_offset = u32_at(image.bytes_at(name_address, 8)?, 0);
        let name = strings.bytes(name_offset.into());
        if !name.is_ok_and(|name| elf::hash(name) == u32_at(record, 8)) {
            return Err(EditProblem::Malformed(
                "version has the hash of another one",
            ));
        }
        match u32_at(record, 16) {
            0 if image.tag(elf::DT_VERDEFNUM) != Some(count) => {
                return Err(EditProblem::Malformed(
                    "count of version definitions is wrong",
                ));
            }
            0 => return Ok(indices),
            distance => record_address = record_address.saturating_add(distance.into()),
        }
    }
    Err(EditProblem::Malformed("too many version definitions"))
}
