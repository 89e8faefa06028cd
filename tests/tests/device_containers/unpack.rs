//! Compressed bundles of every version, made here: no package has the first, or one with zlib.

#[path = "../../../crates/image/tests/support/damage.rs"]
mod damage;

use std::io::Write;
use std::sync::LazyLock;

use damage::{changes, overwritten};
use flate2::Compression;
use flate2::write::ZlibEncoder;
use gpustub_core::offload::{Container, containers};
use gpustub_image::fuzz;
use gpustub_image::offload::{UnpackError, archs, unpack, unpack_start};
use proptest::prelude::*;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

/// A bundle with a host entry, and code of 100000 bytes for one GPU.
fn bundle() -> Vec<u8> {
    let ids = [
        "host-x86_64-unknown-linux-gnu-",
        "hipv4-amdgcn-amd-amdhsa--gfx942",
    ];
    let mut file = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
    file.extend(2_u64.to_le_bytes());
    for (id, size) in ids.into_iter().zip([0, 100_000_u64]) {
        for word in [4096, size, id.len() as u64] {
            file.extend(word.to_le_bytes());
        }
        file.extend(id.bytes());
    }
    file.resize(4096, 0);
    file.extend((0..100_000_u64).map(|n| ((n * n) >> 7) as u8));
    file
}

/// A compressed bundle (`llvm/Object/OffloadBundle.h`) that states this size.
fn compressed(version: u16, method: u16, bundle: &[u8], size: usize) -> Vec<u8> {
    let data = match method {
        0 => {
            let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(bundle).unwrap();
            encoder.finish().unwrap()
        }
        _ => compress_to_vec(bundle, CompressionLevel::Fastest),
    };
    let word = |number: usize| number.to_le_bytes()[..if version == 3 { 8 } else { 4 }].to_vec();
    let mut file = [b"CCOB", &version.to_le_bytes()[..], &method.to_le_bytes()].concat();
    if version > 1 {
        file.extend(word(data.len() + if version == 2 { 24 } else { 32 }));
    }
    file.extend(word(size));
    file.extend([0; 8]);
    file.extend(data);
    file
}

fn first(file: &[u8]) -> Container<'_> {
    containers(file).next().expect("a container")
}

#[test]
fn compressed_bundles_are_unpacked_up_to_a_limit() {
    let bundle = bundle();
    let size = bundle.len();
    for (version, method) in [(1, 0), (1, 1), (2, 0), (2, 1), (3, 0), (3, 1)] {
        let file = compressed(version, method, &bundle, size);
        let container = first(&file);
        assert!(container.is_complete && container.entries.is_empty());
        assert!(
            unpack(&container, size).as_ref() == Ok(&bundle),
            "{version}, {method}"
        );
        assert_eq!(
            unpack(&container, size - 1),
            Err(UnpackError::TooLarge(size))
        );
        let start = unpack_start(&container, 5000).unwrap();
        assert!(start == bundle[..5000], "{version}, {method}");
        assert_eq!(Vec::from_iter(archs(&container)), ["gfx942"]);
        for wrong_size in [size - 1, size + 1] {
            let file = compressed(version, method, &bundle, wrong_size);
            let result = unpack(&first(&file), 1 << 20).map(|bundle| bundle.len());
            assert_eq!(result, Err(UnpackError::Damaged), "{version}, {method}");
        }
        let cut = &file[..file.len() - 100];
        let result = unpack(&first(cut), size).map(|bundle| bundle.len());
        assert_eq!(result, Err(UnpackError::Damaged), "{version}, {method}");
    }
}

#[test]
fn other_containers_are_refused() {
    let bundle = bundle();
    let mut file = compressed(3, 1, &bundle, bundle.len());
    file[6] = 7;
    assert_eq!(unpack(&first(&file), 1 << 20), Err(UnpackError::Method(7)));
    file[4] = 4;
    assert_eq!(unpack(&first(&file), 1 << 20), Err(UnpackError::Version(4)));
    assert_eq!(
        unpack(&first(&bundle), 1 << 20),
        Err(UnpackError::NotCompressed)
    );
}

fn seeds() -> &'static [Vec<u8>; 4] {
    static SEEDS: LazyLock<[Vec<u8>; 4]> = LazyLock::new(|| {
        let bundle = bundle();
        let packed = |version, method| compressed(version, method, &bundle, bundle.len());
        let (first, second, third) = (packed(1, 0), packed(2, 1), packed(3, 1));
        [bundle, first, second, third]
    });
    &SEEDS
}

#[test]
fn seeds_are_read() {
    assert_eq!(
        seeds().each_ref().map(|seed| fuzz::offload(seed)),
        [1, 1, 1, 1]
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_containers_are_read_or_refused(
        seed in 0_usize..4,
        changes in changes(),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = seeds()[seed].clone();
        bytes.truncate(cut.map_or(bytes.len(), |cut| 16 + cut.index(bytes.len() - 16)));
        fuzz::offload(&overwritten(&bytes, &changes));
    }
}
