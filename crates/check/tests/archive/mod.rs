//! Builders of valid and malformed archives.
#![allow(dead_code)] // Each test uses a part.

use std::io::Write;
use std::path::Path;
use std::process::Command;

use flate2::write::{DeflateEncoder, GzEncoder};

/// A member of a zip archive; its local header can differ from the central directory.
#[derive(Clone)]
pub struct Entry {
    pub name: Vec<u8>,
    pub data: Vec<u8>,
    pub method: u16,
    pub flags: u16,
    pub mode: u32,
    pub size: Option<u32>,
    pub crc: Option<u32>,
    pub local_name: Option<Vec<u8>>,
    pub local_size: Option<u32>,
    /// Offset in the central directory, if not the real one.
    pub offset: Option<u32>,
}

pub fn entry(name: impl AsRef<[u8]>, data: impl AsRef<[u8]>) -> Entry {
    Entry {
        name: name.as_ref().to_vec(),
        data: data.as_ref().to_vec(),
        method: 8,
        flags: 0,
        mode: 0o100644,
        size: None,
        crc: None,
        local_name: None,
        local_size: None,
        offset: None,
    }
}

fn push_u16(bytes: &mut Vec<u8>, numbers: &[u16]) {
    for number in numbers {
        bytes.extend(number.to_le_bytes());
    }
}

fn push_u32(bytes: &mut Vec<u8>, numbers: &[u32]) {
    for number in numbers {
        bytes.extend(number.to_le_bytes());
    }
}

/// A zip archive (APPNOTE.TXT 4.3).
pub fn zip(entries: &[Entry]) -> Vec<u8> {
    let (mut bytes, mut directory) = (Vec::new(), Vec::new());
    for entry in entries {
        let compressed = match entry.method {
            8 => deflate(&entry.data),
            _ => entry.data.clone(),
        };
        let crc = entry.crc.unwrap_or(rawzip::crc32(&entry.data));
        let size = entry.size.unwrap_or(entry.data.len() as u32);
        let offset = bytes.len() as u32;
        let local = entry.local_name.as_ref().unwrap_or(&entry.name);
        push_u32(&mut bytes, &[0x0403_4b50]);
        push_u16(&mut bytes, &[20, entry.flags, entry.method, 0, 0x21]);
        push_u32(
            &mut bytes,
            &[
                crc,
                compressed.len() as u32,
                entry.local_size.unwrap_or(size),
            ],
        );
        push_u16(&mut bytes, &[local.len() as u16, 0]);
        bytes.extend(local);
        bytes.extend(&compressed);

        push_u32(&mut directory, &[0x0201_4b50]);
        push_u16(
            &mut directory,
            &[0x0314, 20, entry.flags, entry.method, 0, 0x21],
        );
        push_u32(&mut directory, &[crc, compressed.len() as u32, size]);
        push_u16(&mut directory, &[entry.name.len() as u16, 0, 0, 0, 0]);
        push_u32(
            &mut directory,
            &[entry.mode << 16, entry.offset.unwrap_or(offset)],
        );
        directory.extend(&entry.name);
    }
    let (count, start) = (entries.len() as u16, bytes.len() as u32);
    bytes.extend(&directory);
    push_u32(&mut bytes, &[0x0605_4b50]);
    push_u16(&mut bytes, &[0, 0, count, count]);
    push_u32(&mut bytes, &[directory.len() as u32, start]);
    push_u16(&mut bytes, &[0]);
    bytes
}

fn deflate(data: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

pub fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

/// Appends a member with any name to a tar archive.
pub fn tar_member(tar: &mut tar::Builder<Vec<u8>>, name: &str, kind: tar::EntryType, data: &[u8]) {
    let mut header = tar::Header::new_gnu();
    header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
    header.set_entry_type(kind);
    header.set_mode(0o644);
    match kind {
        tar::EntryType::Symlink | tar::EntryType::Link => {
            header.set_size(0);
            header.set_link_name_literal(data).unwrap();
            header.set_cksum();
            tar.append(&header, &b""[..]).unwrap();
        }
        _ => {
            if kind == tar::EntryType::GNUSparse {
                header
                    .as_gnu_mut()
                    .unwrap()
                    .set_real_size(data.len() as u64);
            }
            header.set_size(data.len() as u64);
            header.set_cksum();
            tar.append(&header, data).unwrap();
        }
    }
}

pub fn tar(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for (name, data) in members {
        tar_member(&mut tar, name, tar::EntryType::Regular, data);
    }
    tar.into_inner().unwrap()
}

/// A compressed tar archive of members with any names.
pub fn tar_gz(members: &[(&str, tar::EntryType, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, kind, data) in members {
        tar_member(&mut builder, name, *kind, data);
    }
    gzip(&builder.into_inner().unwrap())
}

/// An archive of empty files.
pub fn tar_gz_of_files(names: &[&str]) -> Vec<u8> {
    let members: Vec<(&str, tar::EntryType, &[u8])> = names
        .iter()
        .map(|name| (*name, tar::EntryType::Regular, &b""[..]))
        .collect();
    tar_gz(&members)
}

/// Output of the C compiler.
pub fn compiled(code: &str, flags: &[&str]) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("x.c");
    let output = directory.path().join("x");
    std::fs::write(&source, code).unwrap();
    let mut cc = Command::new("cc");
    cc.args(["-w", "-fPIC", "-O1"]).arg(&source).args(flags);
    assert!(cc.arg("-o").arg(&output).status().unwrap().success());
    std::fs::read(output).unwrap()
}

/// A small library that calls one function of CUDA.
pub fn library() -> Vec<u8> {
    let code = "int cudaMalloc(void); int f(void) { return cudaMalloc(); }";
    compiled(code, &["-shared", "-nostdlib", "-s"])
}

/// A static library of one object file, made by ar.
pub fn static_library(directory: &Path) -> Vec<u8> {
    let code = "int cudaFree(void); int cudaMalloc(void) { return cudaFree(); }";
    std::fs::write(directory.join("x.o"), compiled(code, &["-c"])).unwrap();
    std::fs::write(directory.join("y.o"), compiled("int y;", &["-c"])).unwrap();
    let mut ar = Command::new("ar");
    ar.args(["rc", "libx.a", "x.o", "y.o"])
        .current_dir(directory);
    assert!(ar.status().unwrap().success());
    std::fs::read(directory.join("libx.a")).unwrap()
}
