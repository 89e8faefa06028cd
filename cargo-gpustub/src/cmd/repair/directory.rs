//! Repaired directories. An unpacked wheel, or site-packages, gets new lines in `RECORD`, by which installers
//! verify and remove files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write};
use std::path::Path;

use gpustub_repair::record::{self, Entry, Hasher, is_record};
use gpustub_workspace::error::{Error, Result};
use gpustub_workspace::status_line::StatusLine;
use gpustub_workspace::stream;

use super::files::{write_file, write_patch};
use super::job::Job;

/// Writes a directory, with links as links.
pub fn write_directory(job: &Job, from: &Path, inside: &str, status: &StatusLine) -> Result<()> {
    let target = job.input.target.join(inside);
    fs::create_dir_all(&target).map_err(|e| Error::io("create", &target, &e))?;
    let failed = |e: io::Error| Error::io("read", from, &e);
    let mut entries = fs::read_dir(from)
        .map_err(failed)?
        .collect::<io::Result<Vec<_>>>()
        .map_err(failed)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        let name = entry.file_name();
        let Some(name) = name.to_str() else {
            return Err(Error::new(format!(
                "the name of `{}` is not UTF-8",
                path.display()
            )));
        };
        let member = if inside.is_empty() {
            name.to_owned()
        } else {
            format!("{inside}/{name}")
        };
        let kind = entry.file_type().map_err(failed)?;
        let to = job.input.target.join(&member);
        if kind.is_dir() {
            write_directory(job, &path, &member, status)?;
        } else if kind.is_symlink() {
            copy_link(&path, &to)?;
        } else if kind.is_file() && !is_left_out(job, &member) {
            status.show(|| member.clone());
            write_file(job, &member, &path, &to)?;
        }
    }
    Ok(())
}

#[cfg(unix)]
fn copy_link(from: &Path, to: &Path) -> Result<()> {
    let link = || -> io::Result<()> {
        let target = fs::read_link(from)?;
        if fs::read_link(to).is_ok_and(|old| old == target) {
            return Ok(());
        }
        std::os::unix::fs::symlink(target, to)
    };
    link().map_err(|e| Error::io("write", to, &e))
}

#[cfg(not(unix))]
fn copy_link(from: &Path, _to: &Path) -> Result<()> {
    Err(Error::new(format!(
        "`{}` is a link, which is copied on Unix only",
        from.display()
    )))
}

/// Whether a file of the directory is not copied: a removed copy, a `RECORD` that is written later, or its
/// signature.
fn is_left_out(job: &Job, member: &str) -> bool {
    let of_record = ["RECORD", "RECORD.jws", "RECORD.p7s"];
    let is_changed = !job.plan.images.is_empty();
    job.plan.removed.iter().any(|one| one == member)
        || is_changed && of_record.iter().any(|name| is_record(member, name))
}

/// Writes each `RECORD`, with the hashes of the edited files that it lists. The first one with an edited file of
/// a stub library lists the stub library.
pub fn write_records(job: &Job, from: &Path, stubs: &[Vec<u8>]) -> Result<()> {
    if job.plan.images.is_empty() {
        return Ok(());
    }
    let members = job.input.package.members.iter();
    let records = members.filter(|member| is_record(&member.path, "RECORD"));
    let mut new: BTreeMap<&str, Entry> = BTreeMap::new();
    for (stub, bytes) in job.plan.stubs.iter().zip(stubs) {
        let mut hasher = Hasher::default();
        hasher.update(bytes);
        new.insert(&stub.path, hasher.finish());
    }
    for record in records {
        let path = from.join(&record.path);
        let text = fs::read_to_string(&path).map_err(|e| Error::io("read", &path, &e))?;
        let listed = record::paths(&text);
        // Paths are relative to the directory of `x-1.dist-info`.
        let info = record.path.rsplit_once('/').unwrap_or_default().0;
        let base = info.rsplit_once('/').map_or("", |(base, _)| base);
        let inside = |path: &str| -> Option<String> {
            let inside = match base {
                "" => path,
                base => path.strip_prefix(base)?.strip_prefix('/')?,
            };
            Some(inside.to_owned())
        };
        let is_listed = |path: &String| inside(path).filter(|inside| listed.contains(inside));
        let mut entries = BTreeMap::new();
        for image in &job.plan.images {
            let (Some(name), Some((file, patch))) =
                (is_listed(&image.path), job.patches.get(&image.path))
            else {
                continue;
            };
            let mut hashing = Hashing::default();
            write_patch(file, patch, &mut hashing).map_err(|e| Error::io("read", &path, &e))?;
            entries.insert(name, hashing.0.finish());
            let stub = job.plan.stubs[image.stub].path.as_str();
            if let Some(name) = inside(stub)
                && let Some(entry) = new.remove(stub)
            {
                entries.insert(name, entry);
            }
        }
        let signatures = [".jws", ".p7s"].map(|end| format!("{}{end}", record.path));
        let removed = job.plan.removed.iter().chain(&signatures);
        let removed: BTreeSet<String> = removed.filter_map(|path| inside(path)).collect();
        let own = inside(&record.path).unwrap_or_default();
        let text = record::edited(&text, &own, &entries, &removed);
        let target = job.input.target.join(&record.path);
        stream::write(&target, Some(&path), |out| out.write_all(text.as_bytes()))?;
    }
    Ok(())
}

/// Hash of the bytes that are written.
#[derive(Default)]
struct Hashing(Hasher);

impl Write for Hashing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
