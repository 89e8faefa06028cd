//! Zip archives, mainly wheels. Every entry is read in all ways in which unpackers read it: a
//! difference between them is a flaw.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read};

use flate2::read::DeflateDecoder;
use gpustub_image::ConsumedFn;
use rawzip::{CompressionMethod, ZipArchive, ZipFileHeaderRecord, ZipSliceArchive, ZipSliceEntry};

use super::limits::{LIMITS, TOO_MANY};
use super::members::MemberReader;
use super::path;
use super::scratch::is_scratch_error;
use super::source::{Source, Whole};
use crate::display_path::printable;
use crate::package::{FlawKind, Kind, Package};

/// An open zip archive.
pub struct Zip {
    file: File,
    archive: ZipSliceArchive<Whole<'static>>,
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
        let whole = Source::file(file.try_clone()?, size).read_all(&mut LIMITS.clone())?;
        let archive = opened(whole)?;
        Ok(Self { file, archive })
    }

    /// The file. Reads from it leave no page of the archive resident.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The archive, of which only pages with headers are to be read.
    pub fn archive(&self) -> &ZipSliceArchive<Whole<'static>> {
        &self.archive
    }

    /// Name and bytes of each file, in the order of the archive's directory, except links and files
    /// with unsafe names. The caller must limit the number of bytes that it reads;
    /// reading fails if they do not match the archive's checksum.
    ///
    /// # Errors
    ///
    /// If the directory is damaged, or a file is compressed by an unknown method.
    pub fn files(&self) -> impl Iterator<Item = io::Result<(String, Box<dyn Read + '_>)>> {
        let file = |header: ZipFileHeaderRecord<'_>| {
            let name = header.file_path();
            let name = name.as_bytes();
            if header.is_dir()
                || header.mode().is_symlink()
                || path::unsafe_name(name, Kind::Wheel).is_some()
            {
                return Ok(None);
            }
            let name = String::from_utf8_lossy(name).into_owned();
            let body = self.archive.get_entry(header.wayfinder());
            let bytes = body
                .map_err(io::Error::other)
                .and_then(|body| unpacked(&header, &body, DeflateDecoder::new))
                .map_err(|e| io::Error::other(format!("`{name}`: {e}")))?;
            Ok(Some((name, bytes)))
        };
        self.archive.entries().filter_map(move |header| {
            let header = header.map_err(io::Error::other);
            header.and_then(file).transpose()
        })
    }
}

pub(super) fn opened<T: AsRef<[u8]>>(bytes: T) -> io::Result<ZipSliceArchive<T>> {
    ZipArchive::from_slice(bytes)
        .map_err(|e| io::Error::other(format!("not a zip archive, or truncated: {e}")))
}

/// An entry with a readable header and body.
struct Entry<'a> {
    header: ZipFileHeaderRecord<'a>,
    body: ZipSliceEntry<'a>,
    path: String,
}

/// Reads the members of an archive. An error concerns the archive as a whole.
/// `passed` receives the bytes that are no longer needed.
pub(super) fn read<T: AsRef<[u8]>>(
    reader: &mut dyn MemberReader,
    archive: &ZipSliceArchive<T>,
    passed: ConsumedFn<'_>,
    package: &mut Package,
) -> io::Result<()> {
    let mut entries = directory(reader, archive, passed, package);
    if archive.end_offset() != archive.get_ref().as_ref().len() as u64 {
        let message = "bytes after the end of the archive, which may be another archive";
        package.flaw("", FlawKind::Archive, message.into());
    }
    // In file order. A member that overlaps another is not read: otherwise few bytes could
    // represent very many files.
    let start = |entry: &Entry<'_>| entry.header.local_header_offset();
    entries.sort_by_key(start);
    let mut end = 0;
    let mut inflater = DeflateDecoder::new(Once::new(&[], passed));
    for entry in &entries {
        if start(entry) < end {
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
        if let Err(error) = member(reader, entry, &mut inflater, package) {
            if is_scratch_error(&error) {
                return Err(error);
            }
            package.flaw(&entry.path, FlawKind::Archive, error.to_string());
        }
        passed(entry.body.data());
    }
    Ok(())
}

/// The files in the archive's central directory.
fn directory<'a, T: AsRef<[u8]>>(
    reader: &mut dyn MemberReader,
    archive: &'a ZipSliceArchive<T>,
    passed: ConsumedFn<'_>,
    package: &mut Package,
) -> Vec<Entry<'a>> {
    let mut names = Names::new(package);
    let mut found = Vec::new();
    let mut count = 0;
    for header in archive.entries() {
        let header = match header {
            Ok(header) => header,
            Err(error) => {
                let message = format!("malformed central directory: {error}");
                package.flaw("", FlawKind::Archive, message);
                return found;
            }
        };
        count += 1;
        // The directory refers to headers all over the file.
        if count % 128 == 0 {
            passed(archive.get_ref().as_ref());
        }
        let Some(left) = reader.limits().members.checked_sub(1) else {
            package.flaw("", FlawKind::Archive, TOO_MANY.into());
            return found;
        };
        reader.limits().members = left;
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
            found.push(Entry { header, body, path });
        }
    }
    if count != archive.entries_hint() {
        let message = format!(
            "end record counts {} members, but the central directory has {count}",
            archive.entries_hint()
        );
        package.flaw("", FlawKind::Archive, message);
    }
    found
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

/// Bytes that are read once, in order, and reported.
struct Once<'a> {
    data: &'a [u8],
    /// Number of bytes that `passed` has received.
    reported: usize,
    read: usize,
    passed: ConsumedFn<'a>,
}

impl<'a> Once<'a> {
    fn new(data: &'a [u8], passed: ConsumedFn<'a>) -> Self {
        Self {
            data,
            reported: 0,
            read: 0,
            passed,
        }
    }
}

impl Read for Once<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        const STEP: usize = 1 << 20;
        let count = (&self.data[self.read..]).read(buffer)?;
        self.read += count;
        if self.read - self.reported >= STEP {
            (self.passed)(&self.data[self.reported..self.read]);
            self.reported = self.read;
        }
        Ok(count)
    }
}

/// Reads a member. One inflater serves all: its state is aligned memory, which glibc 2.36 hardly reuses after it was freed.
/// With one for each member the heap grew to 190 MB for the wheel of tensorflow 2.21, whose members need 12 MB.
fn member<'a>(
    reader: &mut dyn MemberReader,
    entry: &Entry<'a>,
    inflater: &mut DeflateDecoder<Once<'a>>,
    package: &mut Package,
) -> io::Result<()> {
    let Entry { header, body, path } = entry;
    let passed = inflater.get_ref().passed;
    let mut stream = unpacked(header, body, |data| {
        inflater.reset(Once::new(data, passed));
        inflater
    })?;
    if header.mode().is_symlink() {
        return link(header, stream, path, package);
    }
    if header.compression_method() == CompressionMethod::STORE {
        return stored(reader, entry, package);
    }
    let size = header.uncompressed_size_hint();
    reader.member(
        package,
        path.clone(),
        &mut Source::stream(&mut stream, size),
    )
}

/// Returns a reader of a member's bytes, without reading them.
fn unpacked<'a: 'r, 'r, Inflater: Read + 'r>(
    header: &ZipFileHeaderRecord<'_>,
    body: &ZipSliceEntry<'a>,
    inflater: impl FnOnce(&'a [u8]) -> Inflater,
) -> io::Result<Box<dyn Read + 'r>> {
    let data = body.data();
    let flags = header.flags();
    if flags.is_encrypted() || flags.has_strong_encryption() {
        return Err(io::Error::other("unsupported encryption"));
    }
    match header.compression_method() {
        CompressionMethod::STORE if data.len() as u64 != header.uncompressed_size_hint() => {
            Err(io::Error::other("stored member has two different sizes"))
        }
        CompressionMethod::STORE => Ok(Box::new(body.verifying_reader(data))),
        CompressionMethod::DEFLATE => Ok(Box::new(body.verifying_reader(inflater(data)))),
        other => {
            let number = || other.as_u16().to_string();
            let method = other.name().map_or_else(number, str::to_ascii_lowercase);
            let message = format!("unsupported compression method `{method}`");
            Err(io::Error::other(message))
        }
    }
}

/// Reads a member that is not compressed, in place.
fn stored(
    reader: &mut dyn MemberReader,
    entry: &Entry<'_>,
    package: &mut Package,
) -> io::Result<()> {
    let data = entry.body.data();
    let mut source = Source::bytes(data);
    reader.member(package, entry.path.clone(), &mut source)?;
    if rawzip::crc32(data) == entry.header.crc32() {
        Ok(())
    } else {
        Err(io::Error::other(
            "checksum mismatch: contents differ from the recorded CRC-32",
        ))
    }
}

/// Checks a symbolic link, whose contents are its target.
fn link(
    header: &ZipFileHeaderRecord<'_>,
    stream: Box<dyn Read + '_>,
    path: &str,
    package: &mut Package,
) -> io::Result<()> {
    let mut target = Vec::new();
    stream.take(4096).read_to_end(&mut target)?;
    let message = match package.kind {
        Kind::Wheel => "symbolic link in a wheel: pip writes a file with the target's name instead",
        _ if path::leads_out(header.file_path().as_bytes(), &target) => {
            "symbolic link leads out of the package"
        }
        _ => return Ok(()),
    };
    package.flaw(path, FlawKind::Path, message.into());
    Ok(())
}

/// Names of the members read so far.
pub(super) struct Names {
    seen: BTreeSet<Vec<u8>>,
    /// Names by their lower-case form; `None` for packages of case-sensitive systems.
    folded: Option<BTreeMap<String, String>>,
}

impl Names {
    pub(super) fn new(package: &Package) -> Self {
        let file = package.name.rsplit('/').next().unwrap_or_default();
        let folds = match package.kind {
            Kind::Crate => true,
            Kind::Wheel => !file.contains("linux"),
            _ => false,
        };
        Self {
            seen: BTreeSet::new(),
            folded: folds.then(BTreeMap::new),
        }
    }

    /// Records the faults of a member's name.
    pub(super) fn check(&mut self, name: &[u8], path: &str, package: &mut Package) {
        if let Some(message) = path::unsafe_name(name, package.kind) {
            package.flaw(path, FlawKind::Path, message.into());
        }
        let name = name.strip_suffix(b"/").unwrap_or(name);
        if !self.seen.insert(name.to_vec()) {
            let message = "duplicate member name";
            // Members can be appended to a tar archive; the last one of a name is unpacked.
            if package.kind != Kind::Archive || package.name.ends_with(".zip") {
                package.flaw(path, FlawKind::Archive, message.into());
            }
            return;
        }
        let Some(folded) = &mut self.folded else {
            return;
        };
        if let Some(other) = folded.insert(path.to_lowercase(), path.to_owned()) {
            let message = format!("member name differs from `{other}` only in case");
            package.flaw(path, FlawKind::Path, message);
        }
    }
}
