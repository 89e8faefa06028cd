//! Packs a case's files by the extension of its name: wheels, crates, static libraries.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::Command;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder};
use rawzip::path::EntryPath;
use rawzip::{CompressionMethod, ZipArchiveWriter};

use crate::Result;

/// Path and bytes of an archive member, unmodified.
pub type Member = (String, Vec<u8>);

/// Writes `content`, and then unmodified `raw` members, to the archive or directory `output`.
pub fn pack(content: &Path, raw: &[Member], output: &Path) -> Result<()> {
    let mut members = Vec::new();
    let extension = output.extension().unwrap_or_default().to_string_lossy();
    let write: fn(&[Member], &Path) -> Result<()> = match &*extension {
        "whl" | "zip" => zip,
        "crate" => tar,
        "a" | "rlib" => ar,
        _ if raw.is_empty() => return Ok(fs::rename(content, output)?),
        _ => return Err("a directory has no raw members".into()),
    };
    files(content, "", &mut members)?;
    members.extend_from_slice(raw);
    write(&members, output)
}

fn files(directory: &Path, inside: &str, members: &mut Vec<Member>) -> Result<()> {
    if !directory.is_dir() {
        return Ok(());
    }
    let mut entries = fs::read_dir(directory)?.collect::<std::io::Result<Vec<_>>>()?;
    entries.sort_by_key(|entry| entry.file_name());
    for entry in entries {
        let name = entry.file_name().into_string().map_err(|_| "a name")?;
        let path = format!("{inside}{name}");
        if entry.file_type()?.is_dir() {
            files(&entry.path(), &format!("{path}/"), members)?;
        } else {
            members.push((path, fs::read(entry.path())?));
        }
    }
    Ok(())
}

fn zip(members: &[Member], output: &Path) -> Result<()> {
    let mut archive = ZipArchiveWriter::new(File::create(output)?);
    for (path, data) in members {
        let path = EntryPath::verbatim(path.as_bytes());
        let file = archive
            .new_file(path)
            .compression_method(CompressionMethod::DEFLATE);
        let (mut file, config) = file.start()?;
        let mut writer = config.wrap(DeflateEncoder::new(&mut file, Compression::default()));
        writer.write_all(data)?;
        let (encoder, descriptor) = writer.finish()?;
        encoder.finish()?;
        file.finish(descriptor)?;
    }
    archive.finish()?;
    Ok(())
}

fn tar(members: &[Member], output: &Path) -> Result<()> {
    let encoder = GzEncoder::new(File::create(output)?, Compression::default());
    let mut archive = tar::Builder::new(encoder);
    for (path, data) in members {
        let mut header = tar::Header::new_ustar();
        // Unmodified: a hostile archive has not passed the checks of `set_path`.
        header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_size(data.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        archive.append(&header, &data[..])?;
    }
    archive.into_inner()?.finish()?;
    Ok(())
}

/// Uses the system's `ar`; its members have no directories.
fn ar(members: &[Member], output: &Path) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let mut command = Command::new("ar");
    // No index: some of the objects are invalid.
    command.arg("qcS").arg(output).current_dir(directory.path());
    for (path, data) in members {
        fs::write(directory.path().join(path), data)?;
        command.arg(path);
    }
    match command.output()? {
        result if result.status.success() => Ok(()),
        result => Err(String::from_utf8_lossy(&result.stderr).into_owned().into()),
    }
}
