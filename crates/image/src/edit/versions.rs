//! The table of required versions (`.gnu.version_r`; LSB, "Symbol Versioning"), and edits of it.

use std::collections::{BTreeMap, BTreeSet};

use object::elf;

use super::problem::Problem;
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
    /// Place in the table; `None` for a new record.
    at: Option<usize>,
    /// `vn_file`.
    pub(super) file: u32,
    pub(super) nodes: Vec<Node>,
}

/// A required version.
#[derive(Debug, Clone)]
pub(super) struct Node {
    at: Option<usize>,
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
            at: None,
            file,
            nodes: vec![node],
        }
    }
}

impl Node {
    /// A new record.
    pub(super) fn new(name: u32, hash: u32, index: u16) -> Self {
        Self {
            at: None,
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
    pub(super) fn read(image: &ElfImage<'_>) -> Result<Option<Self>, Problem> {
        let Some(address) = image.tag(elf::DT_VERNEED) else {
            return Ok(None);
        };
        if image.tag(elf::DT_VERSYM).is_none() {
            return Err(Problem::Malformed("version needs without a version table"));
        }
        let mut needs = Self {
            bytes: Vec::new(),
            offset: image.offset_of(address, 1)?,
            entries: Vec::new(),
        };
        // Records must not overlap, or an edit of one would change another.
        let mut records = BTreeSet::new();
        let mut at = 0;
        loop {
            let record = claim(image, address, at, &mut records)?;
            if u16_at(record, 0) != 1 {
                return Err(Problem::Malformed("unknown format of version needs"));
            }
            let mut nodes = Vec::new();
            let mut node = at.saturating_add(u32_at(record, 8) as usize);
            loop {
                let record = claim(image, address, node, &mut records)?;
                nodes.push(Node {
                    at: Some(node),
                    hash: u32_at(record, 0),
                    flags: u16_at(record, 4),
                    index: u16_at(record, 6),
                    name: u32_at(record, 8),
                });
                match u32_at(record, 12) as usize {
                    0 => break,
                    next => node = node.saturating_add(next),
                }
            }
            if usize::from(u16_at(record, 2)) != nodes.len() {
                return Err(Problem::Malformed("count of version needs is wrong"));
            }
            needs.entries.push(Need {
                at: Some(at),
                file: u32_at(record, 4),
                nodes,
            });
            match u32_at(record, 12) as usize {
                0 => break,
                next => at = at.saturating_add(next),
            }
        }
        if image.tag(elf::DT_VERNEEDNUM) != Some(needs.entries.len() as u64) {
            return Err(Problem::Malformed("count of version needs is wrong"));
        }
        needs.check_indices()?;
        let end = records.last().map_or(0, |last| last + RECORD);
        needs.bytes = image.bytes_at(address, end as u64)?.to_vec();
        Ok(Some(needs))
    }

    fn check_indices(&self) -> Result<(), Problem> {
        let mut seen = BTreeSet::new();
        for node in self.entries.iter().flat_map(|need| &need.nodes) {
            // Bit 15 hides a version; references ignore it.
            if node.index & 0x7fff <= 1 || !seen.insert(node.index & 0x7fff) {
                return Err(Problem::Malformed("two versions have one index"));
            }
        }
        Ok(())
    }

    /// Library and version of each index, as offsets of their names.
    pub(super) fn by_index(&self) -> BTreeMap<u16, (u32, u32)> {
        let nodes = self.entries.iter().flat_map(|need| {
            let nodes = need.nodes.iter();
            nodes.map(|node| (node.index & 0x7fff, (need.file, node.name)))
        });
        nodes.collect()
    }

    /// An index that no version has; `defined` are those of the versions that the image defines.
    pub(super) fn free_index(&self, defined: &BTreeSet<u16>) -> Result<u16, Problem> {
        let used = self.by_index().into_keys().chain(defined.iter().copied());
        let next = used.max().unwrap_or(1) + 1;
        let next = Some(next).filter(|&next| usize::from(next) < INDICES);
        next.ok_or(Problem::Layout("all version indices are in use"))
    }

    /// Size of the table in the file.
    pub(super) fn size(&self) -> usize {
        self.bytes.len()
    }

    /// The table with its changes. With a new record, which makes it move, each library is followed by
    /// its versions: eu-elflint rejects other orders, of which lld's is one.
    pub(super) fn write(&mut self) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        if self.entries.iter().any(|need| need.at.is_none()) {
            bytes.clear();
            let mut place = |at: &mut Option<usize>| {
                *at = Some(bytes.len());
                bytes.resize(bytes.len() + RECORD, 0);
            };
            for need in &mut self.entries {
                place(&mut need.at);
                need.nodes.iter_mut().for_each(|node| place(&mut node.at));
            }
        }
        for (i, need) in self.entries.iter().enumerate() {
            let next = self.entries.get(i + 1).and_then(|next| next.at);
            let at = need.at.unwrap_or_default();
            let first = need.nodes.first().and_then(|node| node.at);
            put(&mut bytes, at, &1_u16.to_le_bytes());
            put(&mut bytes, at + 2, &(need.nodes.len() as u16).to_le_bytes());
            put(&mut bytes, at + 4, &need.file.to_le_bytes());
            put(&mut bytes, at + 8, &distance(at, first));
            put(&mut bytes, at + 12, &distance(at, next));
            for (j, node) in need.nodes.iter().enumerate() {
                let next = need.nodes.get(j + 1).and_then(|next| next.at);
                let at = node.at.unwrap_or_default();
                put(&mut bytes, at, &node.hash.to_le_bytes());
                put(&mut bytes, at + 4, &node.flags.to_le_bytes());
                put(&mut bytes, at + 6, &node.index.to_le_bytes());
                put(&mut bytes, at + 8, &node.name.to_le_bytes());
                put(&mut bytes, at + 12, &distance(at, next));
            }
        }
        bytes
    }
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

/// Distance between records: positive, because the order of records is that of their places.
fn distance(from: usize, to: Option<usize>) -> [u8; 4] {
    to.map_or(0, |to| (to - from) as u32).to_le_bytes()
}

/// Bytes of a record that no other record has.
fn claim<'s>(
    image: &ElfImage<'s>,
    table: u64,
    at: usize,
    records: &mut BTreeSet<usize>,
) -> Result<&'s [u8], Problem> {
    let record = image.bytes_at(table.saturating_add(at as u64), RECORD as u64)?;
    let near = at.saturating_sub(RECORD - 1)..at.saturating_add(RECORD);
    if at % 4 != 0 || records.range(near).next().is_some() || records.len() > 2 * INDICES {
        return Err(Problem::Malformed("version needs overlap"));
    }
    records.insert(at);
    Ok(record)
}

/// Indices of the versions that an image defines (`Verdef`), the file's own name included. `strings` is the
/// string table.
pub(super) fn defined_indices(
    image: &ElfImage<'_>,
    strings: &[u8],
) -> Result<BTreeSet<u16>, Problem> {
    let mut found = BTreeSet::new();
    let Some(address) = image.tag(elf::DT_VERDEF) else {
        return Ok(found);
    };
    let strings = Strings::new(strings);
    let mut at = address;
    // As in glibc, the chain ends the table.
    for count in 1..=INDICES as u64 {
        let record = image.bytes_at(at, 20)?;
        if u16_at(record, 0) != 1 {
            return Err(Problem::Malformed("unknown format of version definitions"));
        }
        found.insert(u16_at(record, 4) & 0x7fff);
        let name = image.bytes_at(at.saturating_add(u32_at(record, 12).into()), 8)?;
        let name = strings.bytes(u32_at(name, 0).into());
        if !name.is_ok_and(|name| elf::hash(name) == u32_at(record, 8)) {
            return Err(Problem::Malformed("version has the hash of another one"));
        }
        match u32_at(record, 16) {
            0 if image.tag(elf::DT_VERDEFNUM) != Some(count) => {
                return Err(Problem::Malformed("count of version definitions is wrong"));
            }
            0 => return Ok(found),
            next => at = at.saturating_add(next.into()),
        }
    }
    Err(Problem::Malformed("too many version definitions"))
}
