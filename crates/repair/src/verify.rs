//! Comparison of a wheel with its `RECORD`. Installers reject a wheel that differs, or install what its author did not
//! build, so it must not get a true `RECORD` by a repair.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use data_encoding::BASE64URL_NOPAD;
use sha2::{Digest, Sha256, Sha384, Sha512};

use crate::record::{Line, lines};
use crate::wheel::{Wheel, ZipEntry};

/// Difference between a wheel and its `RECORD`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordFault {
    /// The member.
    pub member: String,
    /// Continues its name: `is not in RECORD`.
    pub message: String,
}

/// The first difference between the wheel and its `RECORD`, found by at most `jobs` threads. Directories, `RECORD` and its signatures need no line
/// with a hash (binary distribution format, "The .dist-info directory").
///
/// # Errors
///
/// If the wheel has no `RECORD`, or a member is damaged.
pub fn record_fault(wheel: &Wheel, jobs: NonZeroUsize) -> io::Result<Option<RecordFault>> {
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
    let mut unlisted = None;
    for entry in &wheel.entries {
        if entry.name.ends_with('/') || exempt.contains(&entry.name) {
            continue;
        }
        let Some(line) = listed.remove(&entry.name) else {
            unlisted = Some(&entry.name);
            break;
        };
        hashed.push((entry, line));
    }
    let differences = in_parallel(&hashed, jobs, |(entry, line)| {
        difference(wheel, entry, line, unhashed)
    });
    for ((entry, _), difference) in hashed.iter().zip(differences) {
        if let Some(message) = difference? {
            return Ok(fault(&entry.name, &message));
        }
    }
    if let Some(name) = unlisted {
        return Ok(fault(name, "is not in RECORD"));
    }
    let missing = listed.keys().find(|path| !path.ends_with('/'));
    Ok(missing.and_then(|path| fault(path, "is in RECORD, but not in the wheel")))
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
        let threads: Vec<_> = (1..jobs.get()).map(|_| scope.spawn(work)).collect();
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

/// Difference between a member and its line, in a wheel with this number of files without a hash.
fn difference(
    wheel: &Wheel,
    entry: &ZipEntry,
    line: &Line,
    unhashed: usize,
) -> io::Result<Option<String>> {
    if !line.size.is_empty() && line.size != entry.size.to_string() {
        let message = format!("has {} bytes, and {} in RECORD", entry.size, line.size);
        return Ok(Some(message));
    }
    let Some((algorithm, expected)) = strong_hash(line) else {
        let others = match unhashed.saturating_sub(1) {
            0 => String::new(),
            1 => ", nor has another file".to_owned(),
            count => format!(", nor have {count} other files"),
        };
        let message = format!("has no hash by SHA-256 or better in RECORD{others}");
        return Ok(Some(message));
    };
    let hash = match algorithm {
        "sha256" => hash::<Sha256>(wheel, entry)?,
        "sha384" => hash::<Sha384>(wheel, entry)?,
        _ => hash::<Sha512>(wheel, entry)?,
    };
    let is_same = hash == expected.trim_end_matches('=');
    Ok((!is_same).then(|| "differs from its hash in RECORD".to_owned()))
}

fn hash<Hash: Digest>(wheel: &Wheel, entry: &ZipEntry) -> io::Result<String> {
    let mut writer = DigestWriter(Hash::new());
    wheel
        .unpack_entry(entry, &mut writer)
        .map_err(|e| io::Error::other(format!("has a member `{}` that {e}", entry.name)))?;
    Ok(BASE64URL_NOPAD.encode(&writer.0.finalize()))
}

fn fault(member: &str, message: &str) -> Option<RecordFault> {
    Some(RecordFault {
        member: member.to_owned(),
        message: message.to_owned(),
    })
}

/// Hashes the bytes that are written.
struct DigestWriter<Hash>(Hash);

impl<Hash: Digest> Write for DigestWriter<Hash> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
