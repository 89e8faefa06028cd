//! Contents of containers of device code that [`gpustub_core::offload`] identifies: compressed bundles (with the feature
//! `unpack`), and the tables of kpack.

mod kpack;
#[cfg(feature = "unpack")]
mod unpack;

use std::collections::BTreeSet;

use gpustub_core::offload::{Container, ContainerFormat, OffloadCode, containers};

pub use kpack::{KpackReference, kpack_archs, kpack_reference};
#[cfg(feature = "unpack")]
pub use unpack::{UnpackError, decompress, unpack, unpack_start};

/// Device code for clang's linker, with the architectures of compressed bundles.
pub fn offload_code(file: &[u8]) -> Option<OffloadCode> {
    let mut code = OffloadCode::read(file)?;
    if code.archs.is_empty() && code.container == ContainerFormat::CompressedBundle {
        code.archs = containers(file)
            .next()
            .map(|bundle| archs(&bundle))
            .unwrap_or_default();
    }
    Some(code)
}

/// Architectures of a container, also of compressed ones; none if they are unknown.
pub fn archs(container: &Container<'_>) -> BTreeSet<String> {
    match container.format {
        ContainerFormat::CompressedBundle => compressed_archs(container),
        ContainerFormat::Kpack => kpack_archs(container.data)
            .unwrap_or_default()
            .into_iter()
            .collect(),
        _ => OffloadCode::of([container.clone()].into_iter())
            .map(|code| code.archs)
            .unwrap_or_default(),
    }
}

#[cfg(feature = "unpack")]
fn compressed_archs(container: &Container<'_>) -> BTreeSet<String> {
    /// Limit above the table of any bundle, whose entries have about 60 bytes.
    const MAX_TABLE: usize = 1 << 16;
    let bundle = unpack_start(container, MAX_TABLE).unwrap_or_default();
    OffloadCode::of(containers(&bundle))
        .map(|code| code.archs)
        .unwrap_or_default()
}

#[cfg(not(feature = "unpack"))]
fn compressed_archs(_: &Container<'_>) -> BTreeSet<String> {
    BTreeSet::new()
}
