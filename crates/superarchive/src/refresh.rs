//! Repairs super-archives whose ordinary members another tool has stripped.

use std::collections::{HashMap, HashSet};

use gpustub_archive::hash::hash_bytes;
use gpustub_archive::{OrdinaryMember, SuperArchive};

use crate::definitions::definitions;
use crate::error::{Error, Problem};
use crate::tables::{put, seal};

/// Offsets in a record of contents, as `FORMAT.md` specifies.
mod field {
    pub const OFFSET: usize = 0;
    pub const STORED_SIZE: usize = 8;
    pub const SIZE: usize = 16;
    pub const HASH: usize = 24;
    pub const HEADER_HASH: usize = 44;
}

/// Updates the tables for ordinary members that `strip -g` or a similar tool has moved or changed; returns the
/// number of changed contents. Names, order and symbols must be the same as before. Views that share these
/// members have the changed ones afterwards.
///
/// # Errors
///
/// If the archive is no super-archive, a member is missing, added or renamed, or lacks a symbol of a view.
pub fn refresh(bytes: &mut [u8]) -> Result<usize, Error> {
    let archive = SuperArchive::parse(bytes).map_err(Problem::SuperArchive)?;
    let changes = changes(&archive)?;
    let tables = archive.tables_offset() as usize;
    let size = archive.tables_size() as usize;
    for (record, member) in &changes {
        let record = &mut bytes[*record..];
        let size = member.size.to_le_bytes();
        put(record, field::OFFSET, &member.offset.to_le_bytes());
        put(record, field::STORED_SIZE, &size);
        put(record, field::SIZE, &size);
        put(record, field::HASH, &member.hash.to_le_bytes());
        put(
            record,
            field::HEADER_HASH,
            &member.header_hash.to_le_bytes(),
        );
    }
    seal(&mut bytes[tables..tables + size]);
    let archive = SuperArchive::parse(bytes).map_err(Problem::SuperArchive)?;
    archive.verify().map_err(Problem::SuperArchive)?;
    Ok(changes.len())
}

/// New fields of a record.
struct Change {
    offset: u64,
    size: u64,
    hash: u64,
    header_hash: u32,
}

/// The ordinary member at this position is not the one of the default view.
fn differs(position: u32) -> Problem {
    Problem::SuperArchive(gpustub_archive::Error::OrdinaryMembers { position })
}

/// Offset of each record that changes, with its new fields.
fn changes(archive: &SuperArchive<'_>) -> Result<Vec<(usize, Change)>, Error> {
    let ordinary: Vec<OrdinaryMember<'_>> = archive
        .ordinary()
        .collect::<Result<_, _>>()
        .map_err(Problem::SuperArchive)?;
    let default = archive.default_view().map_err(Problem::SuperArchive)?;
    let mut members = Vec::new();
    for member in default.iter().flat_map(|view| view.members()) {
        members.push(member.map_err(Problem::SuperArchive)?);
    }
    // The first member of each contents.
    let mut firsts: HashMap<usize, &OrdinaryMember<'_>> = HashMap::new();
    for (position, member) in members.iter().enumerate() {
        let new = ordinary
            .get(position)
            .filter(|new| new.has_name(member.name()))
            .ok_or_else(|| differs(position as u32))?;
        let first = firsts.entry(member.contents().index()).or_insert(new);
        if first.data != new.data {
            return Err(differs(position as u32).into());
        }
    }
    if ordinary.len() != members.len() {
        return Err(differs(members.len() as u32).into());
    }
    check_symbols(archive, &firsts)?;
    let mut changes = Vec::new();
    for (contents, new) in firsts {
        let old = archive
            .contents_at(contents)
            .map_err(Problem::SuperArchive)?;
        let is_same =
            old.is_some_and(|old| old.offset() == new.offset && old.data() == Ok(new.data));
        let record = archive
            .record_offset(contents)
            .and_then(|record| usize::try_from(record).ok());
        if let (false, Some(record)) = (is_same, record) {
            let change = Change {
                offset: new.offset,
                size: new.data.len() as u64,
                hash: hash_bytes(new.data),
                header_hash: hash_bytes(new.header) as u32,
            };
            changes.push((record, change));
        }
    }
    Ok(changes)
}

/// Checks that the members still define the symbols that views have of them.
fn check_symbols(
    archive: &SuperArchive<'_>,
    firsts: &HashMap<usize, &OrdinaryMember<'_>>,
) -> Result<(), Error> {
    let mut symbols_of: HashMap<usize, HashSet<&[u8]>> = HashMap::new();
    for view in archive.views() {
        for symbol in view.map_err(Problem::SuperArchive)?.symbols() {
            let symbol = symbol.map_err(Problem::SuperArchive)?;
            let contents = symbol.member.contents().index();
            symbols_of.entry(contents).or_default().insert(symbol.name);
        }
    }
    for (contents, new) in firsts {
        let old = archive
            .contents_at(*contents)
            .map_err(Problem::SuperArchive)?;
        let mut missing = symbols_of.remove(contents).unwrap_or_default();
        if missing.is_empty() || old.is_some_and(|old| old.data() == Ok(new.data)) {
            continue;
        }
        for symbol in definitions(new.data).map_err(|error| error.in_member(new.name))? {
            missing.remove(&*symbol.name);
        }
        if let Some(symbol) = missing.into_iter().min() {
            let symbol = String::from_utf8_lossy(symbol).into_owned();
            return Err(Error::from(Problem::LostSymbol(symbol)).in_member(new.name));
        }
    }
    Ok(())
}
