//! Zip archives, mainly wheels. Every entry is read in all ways in which unpackers read it: a
//! difference between them is a flaw.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufRead, Read};

use flate2::Crc;
use flate2::bufread::DeflateDecoder;
use gpustub_image::{ConsumedFn, FAULT_AROUND};
use rawzip::{CompressionMethod, ZipArchive, ZipFileHeaderRecord, ZipSliceArchive, ZipSliceEntry};

use super::limits::{LIMITS, TOO_MANY};
use super::members::MemberReader;
use super::path;
use super::scratch::is_scratch_error;
use super::source::{FileBytes, Source};
use super::verified::VerifiedReader;
use crate::display_path::printable;
use crate::package::{ContainerKind, FlawKind, Package};

/// An open zip archive.
pub struct Zip {
    file: File,
    archive: ZipSliceArchive<FileBytes<'static>>,
}

impl Zip {
    /// Opens a wheel or another zip archive.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or is no zip archive.
    pub fn new(file: File) -> io::Result<Self> {
        let size = file.metadata()?.len();
        // A file is mapped, which does not count against the limits.
        let bytes = Source::file(file.try_clone()?, size).read_all(&mut LIMITS.clone())?;
        let archive = open(bytes)?;
        Ok(Self { file, archive })
    }

    /// The file. Reads from it leave no page of the archive resident.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The archive, of which only pages with headers are to be read.
    pub fn archive(&self) -> &ZipSliceArchive<FileBytes<'static>> {
        &self.archive
    }

    /// Releases the memory around a member's data, which can be read again: headers are all over the archive.
    pub fn release(&self, (start, end): (u64, u64)) {
        let bytes = self.archive.get_ref();
        let end = end
            .saturating_add(FAULT_AROUND as u64)
            .min(bytes.len() as u64);
        if let Some(part) = bytes.get(start as usize..end as usize) {
            bytes.release(part);
        }
    }

    /// Name and bytes of each file, in the order of the archive's directory, except links and files
    /// with unsafe names. The caller must limit the number of bytes that it reads;
    /// reading fails if they do not match the archive's checksum.
    ///
    /// # Errors
    ///
    /// If the directory is damaged, or a file is compressed by an unknown method.
    pub fn files(&self) -> impl Iterator<Item = io::Result<(String, Box<dyn Read + '_>)>> {
        self.archive.entries().filter_map(|header| {
            let header = header.map_err(io::Error::other);
            header
                .and_then(|header| self.open_file(&header))
                .transpose()
        })
    }

    /// Name and bytes of a file; `None` for links and files with unsafe names.
    fn open_file(
        &self,
        header: &ZipFileHeaderRecord<'_>,
    ) -> io::Result<Option<(String, Box<dyn Read + '_>)>> {
        let raw_path = header.file_path();
        if header.is_dir()
            || header.mode().is_symlink()
            || path::unsafe_name(raw_path.as_bytes(), ContainerKind::Wheel).is_some()
        {
            return Ok(None);
        }
        let name = String::from_utf8_lossy(raw_path.as_bytes()).into_owned();
        let bytes = self
            .archive
            .get_entry(header.wayfinder())
            .map_err(io::Error::other)
            .and_then(|body| unpack(header, &body, DeflateDecoder::new))
            .map_err(|error| io::Error::other(format!("`{name}`: {error}")))?;
        Ok(Some((name, bytes)))
    }
}

pub(super) fn open<T: AsRef<[u8]>>(bytes: T) -> io::Result<ZipSliceArchive<T>> {
    ZipArchive::from_slice(bytes)
        .map_err(|error| io::Error::other(format!("not a zip archive, or truncated: {error}")))
}

/// An entry with a readable header and body.
struct Entry<'a> {
    header: ZipFileHeaderRecord<'a>,
    body: ZipSliceEntry<'a>,
    path: String,
}

/// Reads the members of an archive. An error concerns the archive as a whole.
/// `consumed` receives the bytes that are no longer needed.
pub(super) fn read<T: AsRef<[u8]>>(
    reader: &mut dyn MemberReader,
    archive: &ZipSliceArchive<T>,
    consumed: ConsumedFn<'_>,
    package: &mut Package,
) -> io::Result<()> {
    let mut entries = directory(reader, archive, consumed, package);
    if archive.end_offset() != archive.get_ref().as_ref().len() as u64 {
        let message = "bytes after the end of the archive, which may be another archive";
        package.flaw("", FlawKind::Archive, message.into());
    }
    // In file order. A member that overlaps another is not read: otherwise few bytes could
    // represent very many files.
    entries.sort_by_key(|entry| entry.header.local_header_offset());
    let mut end = 0;
    let mut inflater = DeflateDecoder::new(ReportingReader::new(&[], consumed));
    for entry in &entries {
        if entry.header.local_header_offset() < end {
            let message = "member overlaps another member of the archive";
            package.flaw(&entry.path, FlawKind::Archive, message.into());
            continue;
        }
        end = entry.body.compressed_data_range().1;
        if end > archive.directory_offset() {
            let message = "member overlaps the central directory";
            package.flaw(&entry.path, FlawKind::Archive, message.into());
            continue;
        }
        if let Err(error) = read_member(reader, entry, &mut inflater, package) {
            if is_scratch_error(&error) {
                return Err(error);
            }
            package.flaw(&entry.path, FlawKind::Archive, error.to_string());
        }
        consumed(entry.body.data());
    }
    Ok(())
}

/// The files in the archive's central directory.
fn directory<'a, T: AsRef<[u8]>>(
    reader: &mut dyn MemberReader,
    archive: &'a ZipSliceArchive<T>,
    consumed: ConsumedFn<'_>,
    package: &mut Package,
) -> Vec<Entry<'a>> {
    let mut names = MemberNames::new(package);
    let mut entries = Vec::new();
    let mut count = 0;
    for header in archive.entries() {
        let header = match header {
            Ok(header) => header,
            Err(error) => {
                let message = format!("malformed central directory: {error}");
                package.flaw("", FlawKind::Archive, message);
                return entries;
            }
        };
        count += 1;
        // The directory refers to headers all over the file.
        if count % 128 == 0 {
            consumed(archive.get_ref().as_ref());
        }
        if !reader.limits().take_member() {
            package.flaw("", FlawKind::Archive, TOO_MANY.into());
            return entries;
        }
        let path = printable(header.file_path().as_bytes());
        names.check(header.file_path().as_bytes(), &path, package);
        let body = match archive.get_entry(header.wayfinder()) {
            Ok(body) => body,
            Err(error) => {
                let message =
                    format!("member of the central directory is missing in the archive: {error}");
                package.flaw(&path, FlawKind::Archive, message);
                continue;
            }
        };
        if let Some(message) = disagreement(&header, &body) {
            package.flaw(&path, FlawKind::Archive, message.into());
        }
        if !header.is_dir() {
            entries.push(Entry { header, body, path });
        }
    }
    if count != archive.entries_hint() {
        let message = format!(
            "end record counts {} members, but the central directory has {count}",
            archive.entries_hint()
        );
        package.flaw("", FlawKind::Archive, message);
    }
    entries
}

/// Difference between the central directory and a member's local header: some unpackers use the one,
/// some the other.
fn disagreement(
    header: &ZipFileHeaderRecord<'_>,
    body: &ZipSliceEntry<'_>,
) -> Option<&'static str> {
    let local = body.local_header();
    let sizes = (local.compressed_size_hint(), local.uncompressed_size_hint());
    if local.file_path().as_bytes() != header.file_path().as_bytes() {
        Some("name differs between local header and central directory")
    } else if local.compression_method() != header.compression_method()
        || local.flags().is_encrypted() != header.flags().is_encrypted()
    {
        Some("compression or encryption differs between local header and central directory")
    } else if !local.flags().has_data_descriptor()
        && sizes
            != (
                header.compressed_size_hint(),
                header.uncompressed_size_hint(),
            )
    {
        Some("size differs between local header and central directory")
    } else {
        None
    }
}

/// Size of the parts in which bytes are reported.
const REPORTED: usize = 1 << 20;

/// Reader of bytes that are read once, in order, and reported when they were read.
struct ReportingReader<'a> {
    bytes: &'a [u8],
    /// Number of bytes that `consumed` has received.
    reported: usize,
    read: usize,
    consumed: ConsumedFn<'a>,
}

impl<'a> ReportingReader<'a> {
    fn new(bytes: &'a [u8], consumed: ConsumedFn<'a>) -> Self {
        Self {
            bytes,
            reported: 0,
            read: 0,
            consumed,
        }
    }
}

impl Read for ReportingReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(buffer)?;
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for ReportingReader<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let end = self.bytes.len().min(self.reported + REPORTED);
        Ok(&self.bytes[self.read..end])
    }

    fn consume(&mut self, count: usize) {
        self.read += count;
        if self.read - self.reported >= REPORTED {
            (self.consumed)(&self.bytes[self.reported..self.read]);
            self.reported = self.read;
        }
    }
}

/// Reads a member. One inflater serves all: its state is aligned memory, which glibc 2.36 hardly reuses after it was freed.
/// With one for each member the heap grew to 190 MB for the wheel of tensorflow 2.21, whose members need 12 MB.
fn read_member<'a>(
    reader: &mut dyn MemberReader,
    entry: &Entry<'a>,
    inflater: &mut DeflateDecoder<ReportingReader<'a>>,
    package: &mut Package,
) -> io::Result<()> {
    let Entry { header, body, path } = entry;
    let consumed = inflater.get_ref().consumed;
    let mut stream = unpack(header, body, |compressed| {
        inflater.reset(ReportingReader::new(compressed, consumed));
        inflater
    })?;
    if header.mode().is_symlink() {
        return check_link(header, stream, path, package);
    }
    if header.compression_method() == CompressionMethod::STORE {
        return read_stored(reader, entry, package);
    }
    let size = header.uncompressed_size_hint();
    reader.member(
        package,
        path.clone(),
        &mut Source::stream(&mut stream, size),
    )
}

/// Returns a reader of a member's bytes, without reading them.
fn unpack<'a: 'r, 'r, Inflater: Read + 'r>(
    header: &ZipFileHeaderRecord<'_>,
    body: &ZipSliceEntry<'a>,
    inflater: impl FnOnce(&'a [u8]) -> Inflater,
) -> io::Result<Box<dyn Read + 'r>> {
    let (data, expected) = (body.data(), body.claim_verifier());
    let flags = header.flags();
    if flags.is_encrypted() || flags.has_strong_encryption() {
        return Err(io::Error::other("unsupported encryption"));
    }
    match header.compression_method() {
        CompressionMethod::STORE if data.len() as u64 != header.uncompressed_size_hint() => {
            Err(io::Error::other("stored member has two different sizes"))
        }
        CompressionMethod::STORE => Ok(Box::new(VerifiedReader::new(data, expected))),
        CompressionMethod::DEFLATE => Ok(Box::new(VerifiedReader::new(inflater(data), expected))),
        unsupported => {
            let method = match unsupported.name() {
                Some(name) => name.to_ascii_lowercase(),
                None => unsupported.as_u16().to_string(),
            };
            let message = format!("unsupported compression method `{method}`");
            Err(io::Error::other(message))
        }
    }
}

/// Reads a member that is not compressed, in place.
fn read_stored(
    reader: &mut dyn MemberReader,
    entry: &Entry<'_>,
    package: &mut Package,
) -> io::Result<()> {
    let data = entry.body.data();
    reader.member(package, entry.path.clone(), &mut Source::bytes(data))?;
    let mut crc = Crc::new();
    crc.update(data);
    if crc.sum() == entry.header.crc32() {
        Ok(())
    } else {
        Err(io::Error::other(
            "checksum mismatch: contents differ from the recorded CRC-32",
        ))
    }
}

/// Checks a symbolic link, whose contents are its target.
fn check_link(
    header: &ZipFileHeaderRecord<'_>,
    stream: Box<dyn Read + '_>,
    path: &str,
    package: &mut Package,
) -> io::Result<()> {
    let mut target = Vec::new();
    stream.take(4096).read_to_end(&mut target)?;
    let message = match package.kind {
        ContainerKind::Wheel => {
            "symbolic link in a wheel: pip writes a file with the target's name instead"
        }
        _ if path::leads_out(header.file_path().as_bytes(), &target) => {
            "symbolic link leads out of the package"
        }
        _ => return Ok(()),
    };
    package.flaw(path, FlawKind::Path, message.into());
    Ok(())
}

/// Names of the members read so far.
pub(super) struct MemberNames {
    names: BTreeSet<Vec<u8>>,
    /// Names by their lower-case form; `None` for packages of case-sensitive systems.
    by_folded_name: Option<BTreeMap<String, String>>,
}

impl MemberNames {
    pub(super) fn new(package: &Package) -> Self {
        let file = package.name.rsplit('/').next().unwrap_or_default();
        let ignores_case = match package.kind {
            ContainerKind::Crate => true,
            ContainerKind::Wheel => !file.contains("linux"),
            _ => false,
        };
        Self {
            names: BTreeSet::new(),
            by_folded_name: ignores_case.then(BTreeMap::new),
        }
    }

    /// Records the faults of a member's name.
    pub(super) fn check(&mut self, name: &[u8], path: &str, package: &mut Package) {
        if let Some(message) = path::unsafe_name(name, package.kind) {
            package.flaw(path, FlawKind::Path, message.into());
        }
        let name = name.strip_suffix(b"/").unwrap_or(name);
        if !self.names.insert(name.to_vec()) {
            let message = "duplicate member name";
            // Members can be appended to a tar archive; the last one of a name is unpacked.
            if package.kind != ContainerKind::Archive || package.name.ends_with(".zip") {
                package.flaw(path, FlawKind::Archive, message.into());
            }
            return;
        }
        let Some(by_folded_name) = &mut self.by_folded_name else {
            return;
        };
        if let Some(previous) = by_folded_name.insert(path.to_lowercase(), path.to_owned()) {
            let message = format!("member name differs from `{previous}` only in case");
            package.flaw(path, FlawKind::Path, message);
        }
    }
}
