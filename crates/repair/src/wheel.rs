//! Wheels, rewritten: changed, removed and new files, and `RECORD`. All other files are copied with their headers,
//! compressed as they are.
//!
//! Times, attributes and the order of files stay. rawzip's writer would add a data descriptor to each file and
//! a second time to its header, so the records are written here (APPNOTE.TXT 4.3.7 and 4.3.12).

mod blocks;
mod deflate;
mod section;
mod writers;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::Path;

use flate2::read::DeflateDecoder;
use gpustub_check::read::{VerifiedReader, Zip};
use gpustub_check::wheel::is_dist_info;
use rawzip::{CompressionMethod, ZipArchiveEntryWayfinder, ZipSliceArchive};

use crate::record;
use blocks::BlockReader;
pub use blocks::Blocks;
use section::Section;
pub use section::copy_range;
pub use writers::MemberWriter;

/// Largest central directory: 200,000 files have a quarter of it.
const MAX_DIRECTORY: usize = 64 << 20;

/// Largest `RECORD`.
const MAX_RECORD: u64 = 16 << 20;

/// Signatures and sizes of records.
const LOCAL: [u8; 4] = *b"PK\x03\x04";
const CENTRAL: [u8; 4] = *b"PK\x01\x02";
const END: [u8; 4] = *b"PK\x05\x06";
const LOCAL_SIZE: usize = 30;
const CENTRAL_SIZE: usize = 46;

/// Bit 3 of the flags: sizes follow the data. Bit 0: encrypted.
const DESCRIPTOR: u16 = 8;
const ENCRYPTED: u16 = 1;

/// Extra field with sizes of 64 bits.
const ZIP64: u16 = 1;

/// Value of a size or offset that is in such a field.
const IN_ZIP64: u32 = u32::MAX;

/// A wheel, opened for rewriting.
pub struct Wheel {
    zip: Zip,
    pub(crate) entries: Vec<ZipEntry>,
}

/// A file of the archive.
pub(crate) struct ZipEntry {
    pub(crate) name: String,
    /// Record of the central directory.
    central: Vec<u8>,
    /// Header and data, up to the next file.
    range: Range<u64>,
    wayfinder: ZipArchiveEntryWayfinder,
    pub(crate) size: u64,
}

/// Writes the new contents of a file.
pub type WriteFn<'a> = Box<dyn FnMut(&mut MemberWriter<'_>) -> io::Result<()> + 'a>;

/// Changes to a wheel.
#[derive(Default)]
pub struct Changes<'a> {
    /// New contents, by path.
    pub replaced: BTreeMap<String, WriteFn<'a>>,
    /// Removed files.
    pub removed: BTreeSet<String>,
    /// New files, which are executable.
    pub added: BTreeMap<String, &'a [u8]>,
}

impl Wheel {
    /// Prepares an open wheel for rewriting.
    ///
    /// # Errors
    ///
    /// If the archive is damaged, or ([`io::ErrorKind::Unsupported`]) has features that a wheel of less than 4 GiB does
    /// not need.
    pub fn new(zip: Zip) -> io::Result<Self> {
        let archive = zip.archive();
        let mut entries = Vec::new();
        let mut rest = directory(archive).ok_or_else(malformed)?;
        for record in archive.entries() {
            let record = record.map_err(io::Error::other)?;
            let (central, after) = split_central(rest).ok_or_else(malformed)?;
            rest = after;
            if [20, 24, 42]
                .iter()
                .any(|offset| u32_at(central, *offset) == IN_ZIP64)
            {
                return Err(unsupported("has sizes of 64 bits (zip64)"));
            }
            if u16_at(central, 8) & ENCRYPTED != 0 {
                return Err(unsupported("is encrypted"));
            }
            let offset = record.local_header_offset();
            entries.push(ZipEntry {
                name: String::from_utf8(record.file_path().as_bytes().to_vec())
                    .map_err(|_| io::Error::other("has a file name that is not UTF-8"))?,
                central: central.to_vec(),
                range: offset..offset,
                wayfinder: record.wayfinder(),
                size: record.uncompressed_size_hint(),
            });
        }
        let mut starts = vec![archive.directory_offset()];
        starts.extend(entries.iter().map(|entry| entry.range.start));
        starts.sort_unstable();
        if starts.first() != Some(&0) || !rest.is_empty() {
            return Err(io::Error::other("has bytes that belong to no file"));
        }
        for entry in &mut entries {
            let next = starts.partition_point(|start| *start <= entry.range.start);
            entry.range.end = *starts.get(next).ok_or_else(malformed)?;
        }
        Ok(Self { zip, entries })
    }

    /// Paths and sizes of all files.
    pub fn files(&self) -> impl Iterator<Item = (&str, u64)> {
        self.entries
            .iter()
            .map(|entry| (entry.name.as_str(), entry.size))
    }

    /// Signatures of `RECORD`.
    pub fn signatures(&self) -> Vec<&str> {
        self.entries
            .iter()
            .map(|entry| entry.name.as_str())
            .filter(|name| is_dist_info(name, "RECORD.jws") || is_dist_info(name, "RECORD.p7s"))
            .collect()
    }

    /// Writes the contents of a file.
    ///
    /// # Errors
    ///
    /// If the file is damaged.
    pub fn unpack(&self, path: &str, out: &mut dyn Write) -> io::Result<()> {
        self.unpack_entry(self.entry(path)?, out)
    }

    fn entry(&self, path: &str) -> io::Result<&ZipEntry> {
        let entry = self.entries.iter().find(|entry| entry.name == path);
        Ok(entry.ok_or(io::ErrorKind::NotFound)?)
    }

    pub(crate) fn unpack_entry(&self, entry: &ZipEntry, out: &mut dyn Write) -> io::Result<()> {
        self.unpack_with(entry, out, |compressed, _| {
            Box::new(DeflateDecoder::new(compressed))
        })
    }

    /// Writes the contents of a file like [`Self::unpack_entry`], and returns its blocks.
    pub(crate) fn unpack_blocks(
        &self,
        entry: &ZipEntry,
        out: &mut dyn Write,
    ) -> io::Result<Blocks> {
        let mut blocks = Blocks::default();
        self.unpack_with(entry, out, |compressed, start| {
            Box::new(BlockReader::new(compressed, start, &mut blocks))
        })?;
        Ok(blocks)
    }

    /// `inflate` receives the compressed data, and its offset.
    fn unpack_with<'r>(
        &'r self,
        entry: &ZipEntry,
        out: &mut dyn Write,
        inflate: impl FnOnce(Section<'r>, u64) -> Box<dyn Read + 'r>,
    ) -> io::Result<()> {
        let body = self
            .zip
            .archive()
            .get_entry(entry.wayfinder)
            .map_err(io::Error::other)?;
        let (start, end) = body.compressed_data_range();
        self.zip.release((start, end));
        let compressed = self.read(start..end);
        let reader: Box<dyn Read> = match u16_at(&entry.central, 10) {
            0 => Box::new(compressed),
            8 => inflate(compressed, start),
            _ => return Err(unsupported("has an unsupported compression method")),
        };
        let mut reader = VerifiedReader::new(reader, body.claim_verifier());
        let copied = section::copy(reader.by_ref().take(entry.size + 1), out)?;
        if copied == entry.size {
            Ok(())
        } else {
            Err(malformed())
        }
    }

    /// Writes the wheel with changes. `RECORD` has the hash of each changed and new file. At most `jobs` threads compress
    /// them; a job needs 4 MiB.
    ///
    /// # Errors
    ///
    /// If the wheel has no `RECORD`, or has an added file already, or a file cannot be read or written.
    pub fn rewrite(
        &self,
        mut changes: Changes<'_>,
        out: &mut (impl Write + Seek),
        jobs: NonZeroUsize,
    ) -> io::Result<()> {
        let record_entry = self.record_entry()?;
        // Also a file in place of a directory.
        let new_paths = (changes.added.keys()).flat_map(|path| Path::new(path).ancestors());
        if let Some(path) = new_paths
            .filter_map(Path::to_str)
            .find(|path| self.keeps(path, &changes.removed))
        {
            return Err(io::Error::other(format!("already has `{path}`")));
        }
        let mut hashes: BTreeMap<String, record::Entry> = BTreeMap::new();
        let mut writer = WheelWriter {
            out,
            directory: Vec::new(),
            count: 0,
            jobs,
        };
        for entry in &self.entries {
            if changes.removed.contains(&entry.name) {
                continue;
            }
            if entry.name == record_entry.name {
                continue;
            }
            match changes.replaced.remove(&entry.name) {
                None => writer.copy_file(self, entry)?,
                Some(mut write) => {
                    let extra = self.extra_fields(entry)?;
                    let hash = writer.write_file(self, &entry.central, &extra, &mut write)?;
                    hashes.insert(entry.name.clone(), hash);
                }
            }
        }
        if let Some(path) = changes.replaced.keys().next() {
            return Err(io::Error::other(format!("has no `{path}`")));
        }
        for (path, bytes) in &changes.added {
            let central = new_central(&record_entry.central, path, 0o100_755)?;
            let hash = writer.write_file(self, &central, &[], &mut |out| out.write_all(bytes))?;
            hashes.insert(path.clone(), hash);
        }
        let text = record::edited(
            &self.record_text(record_entry)?,
            &record_entry.name,
            &hashes,
            &changes.removed,
        );
        writer.write_file(
            self,
            &record_entry.central,
            &self.extra_fields(record_entry)?,
            &mut |out| out.write_all(text.as_bytes()),
        )?;
        writer.finish(self.zip.archive().comment().as_bytes())
    }

    /// Whether a file that is not removed has this path, which Windows compares without case.
    fn keeps(&self, path: &str, removed: &BTreeSet<String>) -> bool {
        (self.entries.iter())
            .any(|entry| entry.name.eq_ignore_ascii_case(path) && !removed.contains(&entry.name))
    }

    pub(crate) fn record_entry(&self) -> io::Result<&ZipEntry> {
        self.entries
            .iter()
            .find(|entry| is_dist_info(&entry.name, "RECORD"))
            .ok_or_else(|| io::Error::other("has no RECORD"))
    }

    pub(crate) fn record_text(&self, entry: &ZipEntry) -> io::Result<String> {
        if entry.size > MAX_RECORD {
            return Err(io::Error::other("has a RECORD that is too large"));
        }
        let mut text = Vec::new();
        self.unpack(&entry.name, &mut text)?;
        String::from_utf8(text).map_err(|_| io::Error::other("has a RECORD that is not UTF-8"))
    }

    /// Extra fields of a local header, without sizes of 64 bits.
    fn extra_fields(&self, entry: &ZipEntry) -> io::Result<Vec<u8>> {
        let mut header = [0; LOCAL_SIZE];
        self.read(entry.range.clone()).read_exact(&mut header)?;
        if !header.starts_with(&LOCAL) {
            return Err(malformed());
        }
        let start = entry.range.start + LOCAL_SIZE as u64 + u64::from(u16_at(&header, 26));
        let mut extra = vec![0; usize::from(u16_at(&header, 28))];
        self.read(start..start + extra.len() as u64)
            .read_exact(&mut extra)?;
        Ok(without_zip64(&extra))
    }

    fn read(&self, range: Range<u64>) -> Section<'_> {
        Section::new(self.zip.file(), range)
    }
}

/// The archive that is being written.
struct WheelWriter<'a, W> {
    out: &'a mut W,
    directory: Vec<u8>,
    count: u16,
    jobs: NonZeroUsize,
}

impl<W: Write + Seek> WheelWriter<'_, W> {
    /// Copies a file with its header.
    fn copy_file(&mut self, wheel: &Wheel, entry: &ZipEntry) -> io::Result<()> {
        let offset = self.out.stream_position()?;
        let size = entry.range.end - entry.range.start;
        if io::copy(&mut wheel.read(entry.range.clone()), self.out)? != size {
            return Err(malformed());
        }
        let mut central = entry.central.clone();
        set_u32(&mut central, 42, offset)?;
        self.add_central(&central)
    }

    /// Writes a file with the attributes of a central record. Returns its hash and size.
    fn write_file(
        &mut self,
        wheel: &Wheel,
        central: &[u8],
        extra: &[u8],
        write: &mut dyn FnMut(&mut MemberWriter<'_>) -> io::Result<()>,
    ) -> io::Result<record::Entry> {
        let offset = self.out.stream_position()?;
        let name = &central[CENTRAL_SIZE..CENTRAL_SIZE + usize::from(u16_at(central, 28))];
        let mut local = LOCAL.to_vec();
        // Version needed, flags, method, time, date; CRC-32 and sizes follow later.
        local.extend_from_slice(&central[6..16]);
        local.extend_from_slice(&[0; 12]);
        local.extend_from_slice(&central[28..30]);
        let length = u16::try_from(extra.len()).map_err(|_| malformed())?;
        local.extend_from_slice(&length.to_le_bytes());
        let flags = u16_at(central, 8) & !DESCRIPTOR;
        local[6..8].copy_from_slice(&flags.to_le_bytes());
        self.out.write_all(&local)?;
        self.out.write_all(name)?;
        self.out.write_all(extra)?;

        let start = self.out.stream_position()?;
        let archive = wheel.zip.file();
        let mut member = match CompressionMethod::from(u16_at(central, 10)) {
            CompressionMethod::STORE => MemberWriter::stored(archive, self.out),
            _ => MemberWriter::deflated(archive, self.out, self.jobs),
        };
        write(&mut member)?;
        let (crc, hash) = member.finish()?;
        let end = self.out.stream_position()?;
        let mut central = central.to_vec();
        central[8..10].copy_from_slice(&flags.to_le_bytes());
        central[16..20].copy_from_slice(&crc.to_le_bytes());
        set_u32(&mut central, 20, end - start)?;
        set_u32(&mut central, 24, hash.size)?;
        set_u32(&mut central, 42, offset)?;
        self.out.seek(SeekFrom::Start(offset + 14))?;
        self.out.write_all(&central[16..28])?;
        self.out.seek(SeekFrom::Start(end))?;
        self.add_central(&central)?;
        Ok(hash)
    }

    fn add_central(&mut self, central: &[u8]) -> io::Result<()> {
        self.directory.extend_from_slice(central);
        self.count = self
            .count
            .checked_add(1)
            .filter(|count| *count < u16::MAX)
            .ok_or_else(too_large)?;
        Ok(())
    }

    /// Writes the central directory and its end record.
    fn finish(self, comment: &[u8]) -> io::Result<()> {
        let offset = self.out.stream_position()?;
        self.out.write_all(&self.directory)?;
        let mut end = vec![0; 22];
        end[..4].copy_from_slice(&END);
        end[8..10].copy_from_slice(&self.count.to_le_bytes());
        end[10..12].copy_from_slice(&self.count.to_le_bytes());
        set_u32(&mut end, 12, self.directory.len() as u64)?;
        set_u32(&mut end, 16, offset)?;
        let length = u16::try_from(comment.len()).map_err(|_| too_large())?;
        end[20..22].copy_from_slice(&length.to_le_bytes());
        self.out.write_all(&end)?;
        self.out.write_all(comment)?;
        self.out.flush()
    }
}

/// Record of a new file, with the times of an existing record.
fn new_central(existing: &[u8], path: &str, mode: u32) -> io::Result<Vec<u8>> {
    let mut central = existing[..CENTRAL_SIZE].to_vec();
    // Made by Unix, whose mode is in the upper half of the attributes (APPNOTE.TXT 4.4.2.2).
    central[5] = 3;
    // Deflated, which needs version 2.0 (4.4.3.2).
    central[6..8].copy_from_slice(&20_u16.to_le_bytes());
    central[10..12].copy_from_slice(&8_u16.to_le_bytes());
    let length = u16::try_from(path.len()).map_err(|_| too_large())?;
    central[28..30].copy_from_slice(&length.to_le_bytes());
    // No extra fields and comment; not a text file.
    central[30..38].fill(0);
    central[38..42].copy_from_slice(&(mode << 16).to_le_bytes());
    central.extend_from_slice(path.as_bytes());
    Ok(central)
}

/// The first record of the central directory, and the rest.
fn split_central(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let header = bytes.get(..CENTRAL_SIZE)?;
    if !header.starts_with(&CENTRAL) {
        return None;
    }
    // Lengths of the name, the extra fields and the comment.
    let variable_size: usize = [28, 30, 32]
        .iter()
        .map(|offset| usize::from(u16_at(header, *offset)))
        .sum();
    bytes.split_at_checked(CENTRAL_SIZE + variable_size)
}

/// Extra fields without those of zip64.
fn without_zip64(extra: &[u8]) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut rest = extra;
    while let Some((head, after)) = rest.split_at_checked(4) {
        let length = usize::from(u16_at(head, 2));
        let Some((field, after)) = after.split_at_checked(length) else {
            break;
        };
        if u16_at(head, 0) != ZIP64 {
            kept.extend_from_slice(head);
            kept.extend_from_slice(field);
        }
        rest = after;
    }
    kept
}

/// Bytes of the central directory.
fn directory<T: AsRef<[u8]>>(archive: &ZipSliceArchive<T>) -> Option<&[u8]> {
    let start = usize::try_from(archive.directory_offset()).ok()?;
    let end = usize::try_from(archive.eocd_offset()).ok()?;
    let directory = archive.get_ref().as_ref().get(start..end)?;
    (directory.len() <= MAX_DIRECTORY).then_some(directory)
}

/// Callers pass offsets inside of `bytes`.
fn u16_at(bytes: &[u8], offset: usize) -> u16 {
    u16::from_le_bytes([bytes[offset], bytes[offset + 1]])
}

fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    u32::from(u16_at(bytes, offset)) | u32::from(u16_at(bytes, offset + 2)) << 16
}

fn set_u32(bytes: &mut [u8], offset: usize, value: u64) -> io::Result<()> {
    let value = u32::try_from(value)
        .ok()
        .filter(|value| *value != IN_ZIP64)
        .ok_or_else(too_large)?;
    bytes[offset..offset + 4].copy_from_slice(&value.to_le_bytes());
    Ok(())
}

fn malformed() -> io::Error {
    io::Error::other("is damaged")
}

/// Error about an archive that is not damaged.
fn unsupported(message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, message)
}

fn too_large() -> io::Error {
    unsupported("would have 4 GiB or more (zip64)")
}
