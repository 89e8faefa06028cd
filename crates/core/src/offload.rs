//! Device code in the containers that clang writes for its own linker, which no other linker reads.
//!
//! | container | begins with | description |
//! |---|---|---|
//! | offload binary | `10 FF 10 AD`, also in sections `.llvm.offloading` of host objects | `llvm/Object/OffloadBinary.h` |
//! | offload bundle | `__CLANG_OFFLOAD_BUNDLE__`, also names of sections of host objects | `clang/docs/ClangOffloadBundlerFileFormat.rst` |
//! | compressed offload bundle | `CCOB` | the same document |
//!
//! Only names are read, and any bytes have a result.

use std::collections::BTreeSet;
use std::fmt;

/// Form of a container.
#[derive(Clone, Copy, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "tools"), derive(Debug))]
pub enum Container {
    /// Offload binary of clang's new offload driver.
    Binary,
    /// Bundle of `clang-offload-bundler`.
    Bundle,
    /// Bundle whose table is compressed as well.
    CompressedBundle,
}

/// Device code for clang's linker in a file.
#[derive(Clone, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "tools"), derive(Debug))]
pub struct OffloadCode {
    /// Form of its first container.
    pub container: Container,
    /// Architectures that its containers name; empty if unknown.
    pub archs: BTreeSet<String>,
    /// Whether all of it is OpenMP's, which runs on the host if no device code is linked.
    pub is_openmp: bool,
}

const BINARY_MAGIC: &[u8] = &[0x10, 0xFF, 0x10, 0xAD];
const BUNDLE_MAGIC: &[u8] = b"__CLANG_OFFLOAD_BUNDLE__";
const COMPRESSED_MAGIC: &[u8] = b"CCOB";
const BINARY_SECTION: &[u8] = b".llvm.offloading";

/// Limit above any real container: LLVM has about 200 architectures.
const MAX_IMAGES: usize = 1024;

impl Container {
    /// Form of a file that is a container itself, by its first bytes.
    pub fn of_file(head: &[u8]) -> Option<Self> {
        [
            (BINARY_MAGIC, Self::Binary),
            (BUNDLE_MAGIC, Self::Bundle),
            (COMPRESSED_MAGIC, Self::CompressedBundle),
        ]
        .into_iter()
        .find(|(magic, _)| head.starts_with(magic))
        .map(|(_, container)| container)
    }
}

impl fmt::Display for Container {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Binary => "an offload binary",
            Self::Bundle => "an offload bundle",
            Self::CompressedBundle => "a compressed offload bundle",
        })
    }
}

impl OffloadCode {
    /// Device code in a file: a container, or a host object (ELF, little-endian) with containers.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let mut images = Images::default();
        let container = match Container::of_file(bytes) {
            Some(container) => {
                match container {
                    Container::Binary => images.add_binaries(bytes),
                    Container::Bundle => images.add_bundle(bytes),
                    Container::CompressedBundle => {}
                }
                container
            }
            None => images.add_sections(bytes)?,
        };
        Some(Self {
            container,
            is_openmp: !images.0.is_empty() && images.0.iter().all(|image| image.is_openmp),
            archs: images
                .0
                .into_iter()
                .map(|image| image.arch)
                .filter(|arch| !arch.is_empty())
                .collect(),
        })
    }
}

/// Image for a device.
struct Image {
    arch: String,
    is_openmp: bool,
}

#[derive(Default)]
struct Images(Vec<Image>);

impl Images {
    fn add(&mut self, arch: &[u8], is_openmp: bool) {
        if self.0.len() < MAX_IMAGES {
            let arch = String::from_utf8_lossy(arch).into_owned();
            self.0.push(Image { arch, is_openmp });
        }
    }

    /// Adds the images of host objects, and returns the form of the first container.
    fn add_sections(&mut self, object: &[u8]) -> Option<Container> {
        let mut first = None;
        for (name, data) in sections(object)? {
            let container = if name == BINARY_SECTION {
                self.add_binaries(data);
                Container::Binary
            } else if let Some(id) = name.strip_prefix(BUNDLE_MAGIC) {
                self.add_entry(id);
                Container::Bundle
            } else {
                continue;
            };
            first = first.or(Some(container));
        }
        first
    }

    /// Adds the images of offload binaries, one after the other.
    fn add_binaries(&mut self, mut data: &[u8]) {
        while data.starts_with(BINARY_MAGIC) && self.0.len() < MAX_IMAGES {
            // One that is cut off, or whose images are compressed, has none that can be read.
            if self.add_binary(data).is_none() {
                return;
            }
            let size = number(data, 8, 8).and_then(|size| size.checked_next_multiple_of(8));
            data = size
                .and_then(|size| data.get(size.max(8)..))
                .unwrap_or_default();
        }
    }

    fn add_binary(&mut self, binary: &[u8]) -> Option<()> {
        // Version 1 has the size of its only entry in place of their number, and shorter strings.
        let (string_size, count) = match number(binary, 4, 4)? {
            1 => (16, 1),
            _ => (24, number(binary, 24, 8)?.min(MAX_IMAGES)),
        };
        let entries = number(binary, 16, 8)?;
        for index in 0..count {
            let entry = binary.get(entries.checked_add(index * 40)?..)?;
            let is_openmp = number(entry, 2, 2)? == 1;
            let strings = binary.get(number(entry, 8, 8)?..)?;
            let string_count = number(entry, 16, 8)?.min(MAX_IMAGES);
            let arch = strings
                .chunks_exact(string_size)
                .take(string_count)
                .find(|string| {
                    number(string, 0, 8).and_then(|offset| text(binary, offset)) == Some(b"arch")
                });
            let arch = arch.and_then(|string| text(binary, number(string, 8, 8)?));
            self.add(arch.unwrap_or_default(), is_openmp);
        }
        Some(())
    }

    /// Adds the images of a bundle: an offset, a size and an id of each.
    fn add_bundle(&mut self, bundle: &[u8]) {
        let count = number(bundle, BUNDLE_MAGIC.len(), 8).unwrap_or(0);
        let mut entry = bundle.get(BUNDLE_MAGIC.len() + 8..).unwrap_or_default();
        for _ in 0..count.min(MAX_IMAGES) {
            let id = number(entry, 16, 8).and_then(|length| entry.get(24..)?.get(..length));
            let Some(id) = id else { return };
            self.add_entry(id);
            entry = &entry[24 + id.len()..];
        }
    }

    /// Adds an image by its id: the kind, a triple of three or four parts, and the architecture,
    /// `hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-`. The first id is that of the host.
    fn add_entry(&mut self, id: &[u8]) {
        let parts: Vec<&[u8]> = id.splitn(6, |byte| *byte == b'-').collect();
        if parts[0] != b"host" {
            let arch = parts.get(4..).and_then(<[&[u8]]>::last).copied();
            self.add(arch.unwrap_or_default(), parts[0] == b"openmp");
        }
    }
}

/// Names and contents of the sections of an ELF file (gABI, "Section Header"); none of big-endian files, which
/// are for machines without such code.
fn sections(file: &[u8]) -> Option<impl Iterator<Item = (&[u8], &[u8])>> {
    // Size of a header; offset and size of its addresses, and of its offset, size and link.
    let (header_size, word, offset, size, link) = match file.get(..6)? {
        [0x7F, b'E', b'L', b'F', 1, 1] => (40, 4, 16, 20, 24),
        [0x7F, b'E', b'L', b'F', 2, 1] => (64, 8, 24, 32, 40),
        _ => return None,
    };
    // `e_shoff`; `e_shnum` and `e_shstrndx` are at the end of the header of the file.
    let start = number(file, 24 + 2 * word, word)?;
    let end = if word == 8 { 64 } else { 52 };
    let headers = file.get(start..)?;
    let contents = move |header: &[u8]| {
        let data = file.get(number(header, offset, word)?..)?;
        data.get(..number(header, size, word)?)
    };
    // Numbers that do not fit are in the first header.
    let count = match number(file, end - 4, 2)? {
        0 => number(headers, size, word)?,
        count => count,
    };
    let strings = match number(file, end - 2, 2)? {
        0xFFFF => number(headers, link, 4)?,
        index => index,
    };
    let mut headers = headers.chunks_exact(header_size).take(count);
    let names = contents(headers.clone().nth(strings)?)?;
    Some(std::iter::from_fn(move || {
        loop {
            let header = headers.next()?;
            let name = number(header, 0, 4).and_then(|offset| text(names, offset));
            if let Some(section) = name.zip(contents(header)) {
                return Some(section);
            }
        }
    }))
}

/// A little-endian number of up to eight bytes.
fn number(data: &[u8], offset: usize, size: usize) -> Option<usize> {
    let bytes = data.get(offset..)?.get(..size)?;
    let value = bytes
        .iter()
        .rev()
        .fold(0, |value: u64, byte| value << 8 | u64::from(*byte));
    usize::try_from(value).ok()
}

/// Text up to the next zero.
fn text(data: &[u8], offset: usize) -> Option<&[u8]> {
    data.get(offset..)?.split(|byte| *byte == 0).next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// An offload binary of one image, as LLVM 19 (version 1) or 23 (3) writes it.
    fn binary(version: u32, kind: u16, arch: &str) -> Vec<u8> {
        let header = if version < 3 { 32 } else { 40 };
        let string_size = if version == 1 { 16 } else { 24 };
        let texts = header + 40 + string_size;
        let mut file = [BINARY_MAGIC, &version.to_le_bytes()].concat();
        let mut push = |words: &[u64]| {
            words
                .iter()
                .for_each(|word| file.extend(word.to_le_bytes()))
        };
        let size = texts + 5 + arch.len() as u64 + 1;
        push(&[size, header, if version == 1 { 40 } else { 1 }]);
        if version >= 3 {
            push(&[0]);
        }
        push(&[2 | u64::from(kind) << 16, header + 40, 1, size, 0]);
        push(&[texts, texts + 5]);
        if version > 1 {
            push(&[arch.len() as u64]);
        }
        file.extend(format!("arch\0{arch}\0").bytes());
        file.resize(file.len().next_multiple_of(8), 0);
        file
    }

    fn bundle(ids: &[&str]) -> Vec<u8> {
        let mut file = [BUNDLE_MAGIC, &(ids.len() as u64).to_le_bytes()].concat();
        for id in ids {
            for word in [0, 0, id.len() as u64] {
                file.extend(word.to_le_bytes());
            }
            file.extend(id.bytes());
        }
        file
    }

    fn seeds() -> [Vec<u8>; 5] {
        [
            binary(1, 3, "gfx90a"),
            binary(2, 4, "gfx90a"),
            [binary(1, 2, "sm_80"), binary(3, 1, "sm_90")].concat(),
            bundle(&[
                "host-x86_64-unknown-linux-gnu-",
                "hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-",
            ]),
            bundle(&["openmp-amdgcn-amd-amdhsa-gfx1100"]),
        ]
    }

    #[test]
    fn architectures_are_those_of_the_containers() {
        let expected: [(Container, &[&str], bool); 5] = [
            (Container::Binary, &["gfx90a"], false),
            (Container::Binary, &["gfx90a"], false),
            (Container::Binary, &["sm_80", "sm_90"], false),
            (Container::Bundle, &["gfx90a:xnack-"], false),
            (Container::Bundle, &["gfx1100"], true),
        ];
        for (seed, (container, archs, is_openmp)) in seeds().iter().zip(expected) {
            let code = OffloadCode::read(seed).expect("a container");
            let archs = archs.iter().map(|arch| (*arch).to_owned()).collect();
            assert_eq!(
                code,
                OffloadCode {
                    container,
                    archs,
                    is_openmp
                }
            );
        }
        let mut large = binary(2, 4, "gfx90a");
        large[8..16].fill(0xFF);
        assert_eq!(
            OffloadCode::read(&large).map(|code| code.archs.len()),
            Some(1)
        );
        let compressed = OffloadCode::read(b"CCOB\x02\0\x01\0").expect("a container");
        assert!(compressed.archs.is_empty() && !compressed.is_openmp);
        for other in [
            &b""[..],
            b"\x7fELF\x02\x01",
            b"BC\xc0\xde",
            b"__CLANG_OFFLOAD",
        ] {
            assert_eq!(OffloadCode::read(other), None);
        }
    }

    proptest! {
        #[test]
        fn damaged_containers_are_read(
            seed in 0_usize..5,
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        ) {
            let mut bytes = seeds()[seed].clone();
            for (index, byte) in changes {
                let offset = index.index(bytes.len());
                bytes[offset] = byte;
            }
            let count = OffloadCode::read(&bytes).map_or(0, |code| code.archs.len());
            prop_assert!(count <= MAX_IMAGES);
        }
    }
}
