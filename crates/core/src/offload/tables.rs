//! Tables of clang's containers.

use super::bytes::{name, number, text};
use super::code::CodeKind;
use super::container::{
    BUNDLE_MAGIC, Compression, Container, ContainerFormat, Entry, MAX_ENTRIES, Model,
};
use super::fatbin;

/// The container at the beginning of `data`, with as many bytes as belong to it.
pub(super) fn read(data: &[u8]) -> Option<Container<'_>> {
    match ContainerFormat::of_file(data)? {
        ContainerFormat::Fatbin => fatbin::read(data),
        ContainerFormat::Binary => Some(binary(data)),
        ContainerFormat::Bundle => Some(bundle(data)),
        ContainerFormat::CompressedBundle => Some(compressed_bundle(data)),
        format @ (ContainerFormat::Kpack | ContainerFormat::KpackReference) => {
            let version = number(data, 4, 4).unwrap_or(0);
            Some(Container {
                version: version.try_into().unwrap_or(u32::MAX),
                ..Container::new(format, data)
            })
        }
    }
}

/// A container of the declared size, or of the rest of the data if that is too large. One without a size ends the data.
fn sized(format: ContainerFormat, data: &[u8], declared: Option<usize>) -> Container<'_> {
    let size = declared.filter(|size| (1..=data.len()).contains(size));
    Container {
        is_complete: size.is_some(),
        ..Container::new(format, &data[..size.unwrap_or(data.len())])
    }
}

fn binary(data: &[u8]) -> Container<'_> {
    let mut binary = sized(ContainerFormat::Binary, data, number(data, 8, 8));
    let version = number(data, 4, 4).unwrap_or(0);
    binary.version = version.try_into().unwrap_or(u32::MAX);
    if version <= 3 && add_images(&mut binary).is_none() {
        binary.is_complete = false;
    }
    binary
}

/// Limit above the strings of any entry, of which clang writes a triple and an architecture. Entries of a hostile file may
/// have the same ones.
const MAX_STRINGS: usize = 64;

fn add_images(binary: &mut Container<'_>) -> Option<()> {
    let data = binary.data;
    // Version 1 has the size of its only entry in place of their number, and shorter strings.
    let (string_size, count) = match binary.version {
        1 => (16, 1),
        _ => (24, number(data, 24, 8)?),
    };
    let table = number(data, 16, 8)?;
    for index in 0..count {
        if index == MAX_ENTRIES {
            return None;
        }
        let entry = data.get(table.checked_add(index * 40)?..)?;
        // An image kind is 0 where the code is unknown, and of metadata alone.
        let strings = data.get(number(entry, 8, 8)?..)?;
        let string_count = number(entry, 16, 8)?.min(MAX_STRINGS);
        let value = |key: &[u8]| {
            let mut strings = strings.chunks_exact(string_size).take(string_count);
            let string = strings.find(|string| {
                let text = number(string, 0, 8).and_then(|offset| data.get(offset..));
                text.and_then(|text| text.strip_prefix(key))
                    .is_some_and(|rest| rest.first() == Some(&0))
            })?;
            text(data, number(string, 8, 8)?).map(name)
        };
        let model = match number(entry, 2, 2)? {
            1 => Model::OpenMp,
            2 => Model::Cuda,
            // Since LLVM 20 the models are bits.
            3 | 4 => Model::Hip,
            8 => Model::Sycl,
            _ => Model::Unknown,
        };
        let size = number(entry, 32, 8)?;
        let entry = Entry {
            model,
            triple: value(b"triple").unwrap_or_default(),
            arch: value(b"arch").unwrap_or_default(),
            ..plain(number(entry, 24, 8)?, size)
        };
        push(binary, entry);
    }
    Some(())
}

/// An entry that is not compressed.
fn plain(offset: usize, size: usize) -> Entry {
    Entry {
        model: Model::Unknown,
        triple: String::new(),
        arch: String::new(),
        code: CodeKind::Unknown,
        offset,
        size,
        compression: None,
        unpacked_size: size,
    }
}

/// Adds an entry, with the form of its code.
fn push(container: &mut Container<'_>, entry: Entry) {
    let code = container.code(&entry).map(CodeKind::of);
    container.is_complete &= code.is_some();
    let code = code.unwrap_or(CodeKind::Unknown);
    container.entries.push(Entry { code, ..entry });
}

/// A bundle: an offset, a size and an id of each entry. It ends with its last entry.
fn bundle(data: &[u8]) -> Container<'_> {
    let mut bundle = Container::new(ContainerFormat::Bundle, data);
    let mut end = BUNDLE_MAGIC.len() + 8;
    let count = number(data, BUNDLE_MAGIC.len(), 8).unwrap_or(usize::MAX);
    let mut header = data.get(end..).unwrap_or_default();
    for index in 0..count {
        let entry = bundle_entry(header).filter(|_| index < MAX_ENTRIES);
        let Some((id, entry)) = entry else {
            bundle.is_complete = false;
            return bundle;
        };
        header = &header[24 + id.len()..];
        end = end.max(data.len() - header.len());
        end = end.max(entry.offset.saturating_add(entry.size));
        push(&mut bundle, entry);
    }
    bundle.is_complete &= end <= data.len();
    bundle.data = &data[..end.min(data.len())];
    bundle
}

fn bundle_entry(header: &[u8]) -> Option<(&[u8], Entry)> {
    let id = header.get(24..)?.get(..number(header, 16, 8)?)?;
    let entry = plain(number(header, 0, 8)?, number(header, 8, 8)?);
    Some((id, with_id(entry, id)))
}

/// The entry of a section that the older driver names after its id.
pub(super) fn section_entry<'d>(id: &[u8], data: &'d [u8]) -> Container<'d> {
    let mut bundle = Container::new(ContainerFormat::Bundle, data);
    push(&mut bundle, with_id(plain(0, data.len()), id));
    bundle
}

/// An entry with the target of its id: the kind, a triple of three or four parts, and the architecture,
/// `hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-`. SYCL's ids of Intel's compilers have one part: `sycl-spir64`.
fn with_id(entry: Entry, id: &[u8]) -> Entry {
    let parts: Vec<&[u8]> = id.splitn(6, |byte| *byte == b'-').collect();
    let model = match parts[0] {
        b"host" => Model::Host,
        b"hip" | b"hipv4" => Model::Hip,
        b"cuda" => Model::Cuda,
        b"openmp" => Model::OpenMp,
        b"sycl" => Model::Sycl,
        _ => Model::Unknown,
    };
    let arch = parts.get(4..).and_then(<[&[u8]]>::last).copied();
    let triple: Vec<String> = parts
        .iter()
        .skip(1)
        .take(3)
        .map(|part| name(part))
        .collect();
    Entry {
        model,
        triple: triple.join("-"),
        arch: name(arch.unwrap_or_default()),
        ..entry
    }
}

/// A compressed bundle: sizes of the file and once unpacked, and a hash, before the compressed part.
fn compressed_bundle(data: &[u8]) -> Container<'_> {
    let format = ContainerFormat::CompressedBundle;
    let version = number(data, 4, 2).unwrap_or(0);
    let (declared, unpacked_size) = match version {
        // The first version does not tell its size.
        1 => (Some(data.len()), number(data, 8, 4)),
        2 => (number(data, 8, 4), number(data, 12, 4)),
        3 => (number(data, 8, 8), number(data, 16, 8)),
        _ => (Some(data.len()), None),
    };
    let mut bundle = sized(format, data, declared);
    bundle.version = version.try_into().unwrap_or(u32::MAX);
    bundle.unpacked_size = unpacked_size.unwrap_or(0);
    // llvm::compression::Format.
    bundle.compression = number(data, 6, 2).map(|method| match method {
        0 => Compression::Zlib,
        1 => Compression::Zstd,
        _ => Compression::Unknown(method.try_into().unwrap_or(u16::MAX)),
    });
    bundle.is_complete &= bundle.compressed().is_some();
    bundle
}

impl<'d> Container<'d> {
    /// The compressed part of a compressed bundle of a known version.
    pub fn compressed(&self) -> Option<&'d [u8]> {
        let header = match (self.format, self.version) {
            (ContainerFormat::CompressedBundle, 1) => 20,
            (ContainerFormat::CompressedBundle, 2) => 24,
            (ContainerFormat::CompressedBundle, 3) => 32,
            _ => return None,
        };
        self.data.get(header..)
    }
}
