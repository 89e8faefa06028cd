//! Containers of device code: files and sections in which compilers put code for several GPUs.
//!
//! | container | begins with | also | made by, and described in |
//! |---|---|---|---|
//! | fatbin | `50 ED 55 BA` | sections `.nv_fatbin`, `__nv_relfatbin` | CUDA's `fatbinary`; `fatbin.rs` |
//! | offload binary | `10 FF 10 AD` | sections `.llvm.offloading` | clang; `llvm/Object/OffloadBinary.h` |
//! | offload bundle | `__CLANG_OFFLOAD_BUNDLE__` | sections `.hip_fatbin`, names of sections | clang; `clang/docs/ClangOffloadBundler.rst` |
//! | compressed offload bundle | `CCOB` | sections `.hip_fatbin` | clang; the same document |
//! | kpack archive | `KPAK` | named in sections `.rocm_kpack_ref` | ROCm's `rocm-kpack` (`shared/kpack` of rocm-systems) |
//!
//! Tables are read, nothing is unpacked, and any bytes have a result. `gpustub_image::offload` unpacks compressed bundles
//! and reads the tables of kpack.

mod bytes;
mod code;
mod container;
mod fatbin;
mod host;
mod lz4;
mod sections;
mod tables;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

pub use code::CodeKind;
pub use container::{Compression, Container, ContainerFormat, Entry, Model};
pub use host::without_device_code;
pub use lz4::unpack_lz4;

use container::{BUNDLE_MAGIC, KPACK_REFERENCE, MAX_ENTRIES};

/// Containers of a file, in its order: itself, or those of its sections (ELF, little-endian).
pub fn containers(file: &[u8]) -> impl Iterator<Item = Container<'_>> {
    let itself = ContainerFormat::of_file(file).map(|_| (&[][..], file));
    let sections = match itself {
        Some(_) => None,
        None => sections::with_code(file),
    };
    itself
        .into_iter()
        .chain(sections.into_iter().flatten())
        .flat_map(|(section, data)| containers_of(section, data))
}

/// Limit above the zeros between containers, which begin at pages.
const MAX_PADDING: usize = 1 << 16;

/// Containers of one section, with zeros between them.
pub fn containers_of<'d>(section: &'d [u8], data: &'d [u8]) -> impl Iterator<Item = Container<'d>> {
    let id = section.strip_prefix(BUNDLE_MAGIC);
    let whole = match (id, section) {
        (Some(id), _) => Some(tables::section_entry(id, data)),
        (None, KPACK_REFERENCE) => Some(Container::new(ContainerFormat::KpackReference, data)),
        _ => None,
    };
    let mut end = if whole.is_some() { data.len() } else { 0 };
    let each = std::iter::from_fn(move || {
        let padding = data[end..].iter().take(MAX_PADDING);
        let zeros = padding.take_while(|byte| **byte == 0).count();
        let offset = end + zeros;
        let container = tables::read(&data[offset..])?;
        end = offset + container.data.len();
        Some(Container {
            offset,
            ..container
        })
    });
    whole
        .into_iter()
        .chain(each)
        .map(move |container| Container {
            section,
            ..container
        })
}

/// Device code of a file, for messages.
#[derive(Clone, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "tools"), derive(Debug))]
pub struct OffloadCode {
    /// Form of its first container.
    pub container: ContainerFormat,
    /// Architectures that its containers name; empty if unknown.
    pub archs: BTreeSet<String>,
    /// Whether all of it is OpenMP's, which runs on the host if no device code is linked.
    pub is_openmp: bool,
}

impl OffloadCode {
    /// Device code for clang's linker, which no other linker reads.
    pub fn read(file: &[u8]) -> Option<Self> {
        Self::of(containers(file).filter(|container| {
            container.format != ContainerFormat::Fatbin && container.is_relocatable()
        }))
    }

    /// Device code in these containers; `None` if there are none.
    pub fn of<'d>(containers: impl Iterator<Item = Container<'d>>) -> Option<Self> {
        /// Limit on containers of a hostile file.
        const MAX_CONTAINERS: usize = 1 << 16;
        let mut code: Option<Self> = None;
        let mut models = [false; 2];
        for container in containers.take(MAX_CONTAINERS) {
            let code = code.get_or_insert(Self {
                container: container.format,
                archs: BTreeSet::new(),
                is_openmp: false,
            });
            for entry in container.entries {
                if entry.model != Model::Host {
                    models[usize::from(entry.model == Model::OpenMp)] = true;
                    if !entry.arch.is_empty() && code.archs.len() < MAX_ENTRIES {
                        code.archs.insert(entry.arch);
                    }
                }
            }
        }
        let mut code = code?;
        code.is_openmp = models == [false, true];
        Some(code)
    }
}
