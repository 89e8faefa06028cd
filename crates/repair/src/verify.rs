//! Comparison of a wheel with its `RECORD`. Installers reject a wheel that differs, or install what its author did not
//! build, so it must not get a true `RECORD` by a repair.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use data_encoding::BASE64URL_NOPAD;
use gpustub_check::read::{Scratch, scratch_cause};
use sha2::{Digest, Sha256, Sha384, Sha512};

use crate::record::{Line, lines};
use crate::wheel::{Blocks, Wheel, ZipEntry};

/// Difference between a wheel and its `RECORD`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordFault {
    /// The member.
    pub member: String,
    /// Continues its name: `is not in RECORD`.
    pub message: String,
}

/// A member that was unpacked when it was compared.
#[derive(Debug)]
pub struct Unpacked {
    /// A file with its contents, which has no name.
    pub file: File,
    /// Its blocks in the wheel.
    pub blocks: Blocks,
}

/// Members that were unpacked, by their names.
pub type UnpackedMembers = BTreeMap<String, Unpacked>;

/// The first difference between the wheel and its `RECORD`; otherwise the `unpacked` members.
/// At most `jobs` threads inflate members. Directories, `RECORD` and its signatures need no line
/// with a hash (binary distribution format, "The .dist-info directory").
///
/// # Errors
///
/// If the wheel has no `RECORD`, a member is damaged, or a temporary file cannot be written
/// ([`scratch_cause`]).
pub fn compare_with_record(
    wheel: &Wheel,
    unpacked: &BTreeSet<&str>,
    jobs: NonZeroUsize,
) -> io::Result<Result<UnpackedMembers, RecordFault>> {
    let record = wheel.record_entry()?;
    let text = wheel.record_text(record)?;
    let mut listed: BTreeMap<String, Line> = BTreeMap::new();
    for line in lines(&text) {
        if let Some(previous) = listed.insert(line.path.clone(), line) {
            return Ok(fault(&previous.path, "has two lines in RECORD"));
        }
    }
    let exempt = ["", ".jws", ".p7s"].map(|suffix| format!("{}{suffix}", record.name));
    for path in &exempt {
        listed.remove(path);
    }
    let unhashed = listed
        .values()
        .filter(|line| !line.path.ends_with('/') && strong_hash(line).is_none())
        .count();
    let mut hashed = Vec::new();
    let mut is_unlisted = None;
    for entry in &wheel.entries {
        if entry.name.ends_with('/') || exempt.contains(&entry.name) {
            continue;
        }
        let Some(line) = listed.remove(&entry.name) else {
            is_unlisted = Some(&entry.name);
            break;
        };
        hashed.push((entry, line));
    }
    let mut members = UnpackedMembers::new();
    for ((entry, _), result) in hashed
        .iter()
        .zip(in_parallel(&hashed, jobs, |(entry, line)| {
            let is_unpacked = unpacked.contains(entry.name.as_str());
            compare(wheel, entry, line, unhashed, is_unpacked)
        }))
    {
        match result? {
            Ok(unpacked) => members.extend(unpacked.map(|file| (entry.name.clone(), file))),
            Err(message) => return Ok(fault(&entry.name, &message)),
        }
    }
    if let Some(name) = is_unlisted {
        return Ok(fault(name, "is not in RECORD"));
    }
    match listed.keys().find(|path| !path.ends_with('/')) {
        Some(path) => Ok(fault(path, "is in RECORD, but not in the wheel")),
        None => Ok(Ok(members)),
    }
}

/// Results of a function for all members, in their order. The largest ones begin.
fn in_parallel<T: Send>(
    members: &[(&ZipEntry, Line)],
    jobs: NonZeroUsize,
    function: impl Fn(&(&ZipEntry, Line)) -> T + Sync,
) -> Vec<T> {
    let mut order: Vec<usize> = (0..members.len()).collect();
    order.sort_by_key(|index| Reverse(members[*index].0.size));
    let next = AtomicUsize::new(0);
    let work = || {
        let mut results = Vec::new();
        while let Some(index) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
            results.push((*index, function(&members[*index])));
        }
        results
    };
    let mut results = thread::scope(|scope| {
        // As many as the system starts.
        let threads: Vec<_> = (1..jobs.get())
            .map_while(|_| thread::Builder::new().spawn_scoped(scope, work).ok())
            .collect();
        let mut results = work();
        for thread in threads {
            results.extend(thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        results
    });
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Algorithm and value of a hash. The format requires SHA-256 or better, and forbids MD5 and SHA-1.
fn strong_hash(line: &Line) -> Option<(&str, &str)> {
    line.hash
        .split_once('=')
        .filter(|(algorithm, _)| ["sha256", "sha384", "sha512"].contains(algorithm))
}

/// Compares a member with its line, in a wheel with this number of files without a hash. Returns the difference, or the
/// member if it `is_unpacked`.
fn compare(
    wheel: &Wheel,
    entry: &ZipEntry,
    line: &Line,
    unhashed: usize,
    is_unpacked: bool,
) -> io::Result<Result<Option<Unpacked>, String>> {
    if !line.size.is_empty() && line.size != entry.size.to_string() {
        let message = format!("has {} bytes, and {} in RECORD", entry.size, line.size);
        return Ok(Err(message));
    }
    let Some((algorithm, expected)) = strong_hash(line) else {
        let others = match unhashed.saturating_sub(1) {
            0 => String::new(),
            1 => ", nor has another file".to_owned(),
            count => format!(", nor have {count} other files"),
        };
        let message = format!("has no hash by SHA-256 or better in RECORD{others}");
        return Ok(Err(message));
    };
    let (hash, unpacked) = match algorithm {
        "sha256" => hash::<Sha256>(wheel, entry, is_unpacked)?,
        "sha384" => hash::<Sha384>(wheel, entry, is_unpacked)?,
        _ => hash::<Sha512>(wheel, entry, is_unpacked)?,
    };
    let is_same = hash == expected.trim_end_matches('=');
    Ok(if is_same {
        Ok(unpacked)
    } else {
        Err("differs from its hash in RECORD".to_owned())
    })
}

fn hash<Hash: Digest>(
    wheel: &Wheel,
    entry: &ZipEntry,
    is_unpacked: bool,
) -> io::Result<(String, Option<Unpacked>)> {
    let mut writer = DigestWriter {
        hash: Hash::new(),
        file: is_unpacked.then(Scratch::new).transpose()?,
    };
    let blocks = if is_unpacked {
        wheel.unpack_blocks(entry, &mut writer)
    } else {
        (wheel.unpack_entry(entry, &mut writer)).map(|()| Blocks::default())
    };
    let blocks = blocks.map_err(|e| match scratch_cause(&e) {
        Some(_) => e,
        None => io::Error::other(format!(
            "has a member `{}` that cannot be unpacked ({e})",
            entry.name
        )),
    })?;
    let unpacked = writer.file.map(|file| Unpacked {
        file: file.into_file(),
        blocks,
    });
    Ok((BASE64URL_NOPAD.encode(&writer.hash.finalize()), unpacked))
}

fn fault<T>(member: &str, message: &str) -> Result<T, RecordFault> {
    Err(RecordFault {
        member: member.to_owned(),
        message: message.to_owned(),
    })
}

/// Hashes the bytes that are written, and may write them to a file.
struct DigestWriter<Hash> {
    hash: Hash,
    file: Option<Scratch>,
}

impl<Hash: Digest> Write for DigestWriter<Hash> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = match &mut self.file {
            Some(file) => file.write(bytes)?,
            None => bytes.len(),
        };
        self.hash.update(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
