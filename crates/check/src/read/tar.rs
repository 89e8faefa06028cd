//! Tar archives, among them crates.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

use flate2::read::MultiGzDecoder;
use tar::{Archive, Entry, EntryType};

use super::limits::{Limits, TOO_MANY};
use super::members::MemberReader;
use super::path;
use super::scratch::is_scratch_error;
use super::source::Source;
use super::zip::MemberNames;
use crate::display_path::printable;
use crate::package::{ContainerKind, FlawKind, Package};

/// Maximum number of bytes between two members: a tar archive stores long names as separate members,
/// which are read into memory.
const MAX_HEADERS: u64 = 1 << 20;

/// Reads the members of an archive. An error concerns the archive as a whole.
pub(super) fn read<'a>(
    reader: &mut dyn MemberReader,
    bytes: Box<dyn Read + 'a>,
    packed: bool,
    package: &mut Package,
) -> io::Result<()> {
    let limit = Rc::new(Cell::new(MAX_HEADERS));
    let bytes = if packed {
        Box::new(MultiGzDecoder::new(bytes))
    } else {
        bytes
    };
    let mut archive = Archive::new(LimitedReader {
        bytes,
        position: 0,
        limit: limit.clone(),
    });
    let mut names = MemberNames::new(package);
    let mut top: Option<String> = None;
    for entry in archive.entries().map_err(archive_error)? {
        let mut entry = entry.map_err(archive_error)?;
        let (size, kind) = (entry.size(), entry.header().entry_type());
        take_entry(reader.limits(), size, kind)?;
        limit.set((entry.raw_file_position() + size).saturating_add(MAX_HEADERS));

        // `pax_global_header`, written by `git archive`, is no file.
        if kind.is_pax_global_extensions() {
            continue;
        }
        let entry_path = entry.path_bytes().into_owned();
        let name = entry_path.strip_prefix(b"./").unwrap_or(&entry_path);
        if name.is_empty() && kind.is_dir() {
            continue;
        }
        let path = printable(name);
        names.check(name, &path, package);
        if package.kind == ContainerKind::Crate {
            check_top_directory(&path, &mut top, package);
        }
        if let Some(message) = link_fault(&entry, name, package.kind) {
            package.flaw(&path, FlawKind::Path, message.into());
        }
        if matches!(kind, EntryType::Regular | EntryType::Continuous) {
            reader
                .member(package, path, &mut Source::stream(&mut entry, size))
                .map_err(archive_error)?;
        }
    }
    // The checksum follows the bytes.
    let mut rest = archive.into_inner();
    limit.set(rest.position + MAX_HEADERS);
    io::copy(&mut rest, &mut io::sink()).map_err(archive_error)?;
    Ok(())
}

fn archive_error(error: io::Error) -> io::Error {
    match error.get_ref() {
        // Raised by `LimitedReader`.
        Some(inner) if inner.is::<TooLong>() || is_scratch_error(&error) => error,
        _ => io::Error::other(format!("damaged or truncated archive: {error}")),
    }
}

/// Takes an entry from the limits.
fn take_entry(limits: &mut Limits, size: u64, kind: EntryType) -> io::Result<()> {
    if !limits.take_member() {
        return Err(io::Error::other(TOO_MANY));
    }
    if kind.is_gnu_sparse() {
        return Err(io::Error::other(
            "sparse file in the archive: it and all members after it were skipped",
        ));
    }
    // Skipped members must be inflated as well.
    if size > limits.inflated {
        return Err(io::Error::other(TooLong));
    }
    limits.inflated -= size;
    Ok(())
}

/// Validates that a crate has one top directory.
fn check_top_directory(path: &str, top: &mut Option<String>, package: &mut Package) {
    let first = path.split('/').next().unwrap_or_default();
    let top = top.get_or_insert_with(|| first.to_owned());
    if top != first {
        let message = format!("member outside of `{top}`, the only directory that cargo unpacks");
        package.flaw(path, FlawKind::Path, message);
    }
}

/// Fault of a link.
fn link_fault<R: Read>(
    entry: &Entry<'_, R>,
    name: &[u8],
    kind: ContainerKind,
) -> Option<&'static str> {
    let target = entry.link_name_bytes().unwrap_or_default();
    let base = match entry.header().entry_type() {
        EntryType::Symlink => name,
        // Hard links are relative to the archive's top directory.
        EntryType::Link => b"",
        _ => return None,
    };
    match kind {
        ContainerKind::Crate => Some("link in a crate: cargo never packs links"),
        _ if path::leads_out(base, &target) => Some("link leads out of the package"),
        _ => None,
    }
}

/// Reader that fails at the position `limit`.
struct LimitedReader<R> {
    bytes: R,
    position: u64,
    limit: Rc<Cell<u64>>,
}

impl<R: Read> Read for LimitedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let remaining = self.limit.get().saturating_sub(self.position);
        let length = usize::try_from(remaining)
            .map_or(buffer.len(), |remaining| remaining.min(buffer.len()));
        if length == 0 && !buffer.is_empty() {
            return Err(io::Error::other(TooLong));
        }
        let count = self.bytes.read(&mut buffer[..length])?;
        self.position += count as u64;
        Ok(count)
    }
}

#[derive(Debug)]
struct TooLong;

impl std::fmt::Display for TooLong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("inflated size or member names exceed the limit")
    }
}

impl std::error::Error for TooLong {}
