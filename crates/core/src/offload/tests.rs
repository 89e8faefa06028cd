//! Tables of containers as their tools write them, and damaged ones.

use super::bytes::number;
use super::*;
use proptest::prelude::*;

/// An offload binary of one image, as LLVM 19 (version 1) or 23 (3) writes it. No tool here writes version 2 or 3.
fn binary(version: u32, kind: u16, arch: &str) -> Vec<u8> {
    let header = if version < 3 { 32 } else { 40 };
    let string_size = if version == 1 { 16 } else { 24 };
    let texts = header + 40 + string_size;
    let mut file = [&[0x10, 0xFF, 0x10, 0xAD], &version.to_le_bytes()[..]].concat();
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

/// A bundle whose entries are empty.
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

/// A compressed bundle with two bytes of compressed data.
fn compressed(version: u16, method: u16) -> Vec<u8> {
    let mut file = [b"CCOB", &version.to_le_bytes()[..], &method.to_le_bytes()].concat();
    let word = |number: u64| number.to_le_bytes()[..if version == 3 { 8 } else { 4 }].to_vec();
    let header = match version {
        1 => 20,
        2 => 24,
        _ => 32,
    };
    if version > 1 {
        file.extend(word(header + 2));
    }
    file.extend(word(1000));
    file.extend([0; 8]);
    file.extend(b"xx");
    file
}

/// A fatbin of one entry of 8 bytes: kind, architecture, flags, size once unpacked.
fn fatbin(kind: u16, arch: u32, flags: u32, unpacked_size: u64) -> Vec<u8> {
    let mut file = [0x50, 0xED, 0x55, 0xBA, 1, 0, 16, 0].to_vec();
    file.extend(72_u64.to_le_bytes());
    file.extend(kind.to_le_bytes());
    file.extend([1, 1, 64, 0, 0, 0]);
    file.extend(8_u64.to_le_bytes());
    let packed_size = u32::from(unpacked_size > 0) * 5;
    for word in [packed_size, 0, 0, arch, 0, 0, flags, 0, 0, 0] {
        file.extend(word.to_le_bytes());
    }
    file.extend(unpacked_size.to_le_bytes());
    file.extend([0xAA; 8]);
    file
}

fn seeds() -> Vec<Vec<u8>> {
    vec![
        binary(1, 3, "gfx90a"),
        binary(2, 4, "gfx90a"),
        [binary(1, 2, "sm_80"), binary(3, 1, "sm_90")].concat(),
        bundle(&[
            "host-x86_64-unknown-linux-gnu-",
            "hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-",
        ]),
        bundle(&["openmp-amdgcn-amd-amdhsa-gfx1100"]),
        compressed(1, 0),
        [&compressed(2, 1)[..], &[0; 30], &compressed(3, 1)].concat(),
        [
            fatbin(2, 90, 1 << 20, 0),
            fatbin(8, 100, 1 << 15 | 1 << 21, 40),
        ]
        .concat(),
        [b"KPAK", &[1, 0, 0, 0][..], &[0; 8]].concat(),
    ]
}

/// A container as one line.
fn line(container: &Container<'_>) -> String {
    let mut line = format!("{:?} {}", container.format, container.version);
    if let Some(compression) = container.compression {
        line += &format!(" {compression:?} {}", container.unpacked_size);
    }
    for entry in &container.entries {
        line += &format!("; {:?} {} {:?}", entry.model, entry.arch, entry.code);
        line += &format!(" {}+{}", entry.offset, entry.size);
        if let Some(compression) = entry.compression {
            line += &format!(" {compression:?} {}", entry.unpacked_size);
        }
    }
    line
}

#[test]
fn tables_are_those_of_the_containers() {
    let expected: [&[&str]; 9] = [
        &["Binary 1; Hip gfx90a Empty 100+0"],
        &["Binary 2; Hip gfx90a Empty 108+0"],
        &[
            "Binary 1; Cuda sm_80 Empty 99+0",
            "Binary 3; OpenMp sm_90 Empty 115+0",
        ],
        &["Bundle 0; Host  Empty 0+0; Hip gfx90a:xnack- Empty 0+0"],
        &["Bundle 0; OpenMp gfx1100 Empty 0+0"],
        &["CompressedBundle 1 Zlib 1000"],
        &[
            "CompressedBundle 2 Zstd 1000",
            "CompressedBundle 3 Zstd 1000",
        ],
        &[
            "Fatbin 1; Cuda sm_90a Cubin 80+8",
            "Fatbin 1; Cuda lto_100f Lto 80+5 Zstd 40",
        ],
        &["Kpack 1"],
    ];
    for (seed, expected) in seeds().iter().zip(expected) {
        let lines: Vec<String> = containers(seed).map(|container| line(&container)).collect();
        assert_eq!(lines, expected);
        assert!(
            containers(seed).all(|container| container.is_complete),
            "{expected:?}"
        );
    }
    for other in [
        &b""[..],
        b"\x7fELF\x02\x01",
        b"BC\xc0\xde",
        b"__CLANG_OFFLOAD",
    ] {
        assert_eq!(containers(other).count(), 0);
    }
}

#[test]
fn incomplete_and_newer_containers_are_known_as_such() {
    let mut large = binary(2, 4, "gfx90a");
    large[8..16].fill(0xFF);
    let mut newer = compressed(3, 1);
    newer[4] = 4;
    let mut cut = fatbin(2, 90, 0, 0);
    cut.truncate(40);
    for (file, entry_count) in [(&large, 1), (&newer, 0), (&cut, 0)] {
        let container = containers(file).next().expect("a container");
        assert!(!container.is_complete, "{container:?}");
        assert_eq!(container.entries.len(), entry_count);
    }
    assert!(containers(&newer).all(|container| container.is_newer()));
    assert!(!containers(&large).any(|container| container.is_newer()));
}

/// All entries of a file may have one table of strings.
#[test]
fn entries_have_few_strings() {
    for (index, arch) in [(0, "gfx90a"), (63, "gfx90a"), (64, "")] {
        let mut file = binary(2, 4, "gfx90a");
        // Of the only entry, which follows the header.
        let (strings, count) = (40, 48);
        let table = file.len() as u64;
        let string = file[72..96].to_vec();
        file[strings..strings + 8].copy_from_slice(&table.to_le_bytes());
        file[count..count + 8].copy_from_slice(&1000_u64.to_le_bytes());
        file.resize(file.len() + index * 24, 0xFF);
        file.extend(string);
        let size = file.len() as u64;
        file[8..16].copy_from_slice(&size.to_le_bytes());
        let container = containers(&file).next().expect("a container");
        assert_eq!(container.entries[0].arch, arch, "{index}");
    }
}

#[test]
fn code_is_known_by_its_first_bytes() {
    let elf = |machine| [b"\x7fELF\x02\x01\x01".as_slice(), &[0; 11], &[machine, 0]].concat();
    for (bytes, kind) in [
        (elf(190), CodeKind::Cubin),
        (elf(224), CodeKind::CodeObject),
        (elf(62), CodeKind::Object),
        (b"BC\xc0\xde".to_vec(), CodeKind::Bitcode),
        (
            b"\n//\n// Generated\n//\n\n.version 8.4\n".to_vec(),
            CodeKind::Ptx,
        ),
        (b"// .version\nint x;".to_vec(), CodeKind::Unknown),
        (vec![3, 2, 0x23, 7], CodeKind::SpirV),
        (Vec::new(), CodeKind::Empty),
    ] {
        assert_eq!(CodeKind::of(&bytes), kind);
    }
}

/// An object file with a section of `size` bytes for clang, and one after it.
fn fat_object(size: usize) -> Vec<u8> {
    let names = b"\0.llvm.offloading\0.text\0.shstrtab\0";
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(64, 0);
    file[16] = 1;
    let text = (64 + size).next_multiple_of(16);
    file.resize(64 + size, 7);
    file.resize(text, 0);
    file.extend([0x90; 16]);
    let strings = file.len();
    file.extend(names);
    file.resize(file.len().next_multiple_of(8), 0);
    let table = file.len() as u64;
    file[40..48].copy_from_slice(&table.to_le_bytes());
    file[58] = 64;
    file[60] = 4;
    file[62] = 3;
    for (name, offset, size, alignment) in [
        (0, 0, 0, 0),
        (1, 64, size, 8),
        (18, text, 16, 16),
        (24, strings, names.len(), 1),
    ] {
        let kind = u32::from(alignment > 0);
        file.extend([name, kind].map(u32::to_le_bytes).as_flattened());
        let flags = if name == 1 { 1 << 31 } else { 0_u64 };
        let words = [flags, 0, offset as u64, size as u64, 0, alignment, 0];
        file.extend(words.map(u64::to_le_bytes).as_flattened());
    }
    file
}

#[test]
fn sections_for_clang_are_removed() {
    for size in [1, 8, 16, 17, 1000] {
        let fat = fat_object(size);
        let host = without_device_code(&fat).expect("a section");
        assert_eq!(fat.len() - host.len(), size / 16 * 16);
        assert!(!host.contains(&7), "no code is left");
        assert!(without_device_code(&host).is_none());
        let table = number(&host, 40, 8).unwrap();
        let text = number(&host, table + 2 * 64 + 24, 8).unwrap();
        assert_eq!((&host[text..][..16], text % 16), (&[0x90; 16][..], 0));
        // A section that is loaded stays, and one that another refers to.
        for (offset, byte) in [(8, 2), (64 + 44, 1)] {
            let mut kept = fat.clone();
            let table = number(&fat, 40, 8).unwrap();
            kept[table + 64 + offset] = byte;
            assert!(without_device_code(&kept).is_none(), "{offset}");
        }
    }
}

#[test]
fn blocks_of_lz4_are_unpacked() {
    // A literal, a copy that overlaps itself, and literals.
    let block = [&[0x1F, b'a', 1, 0, 3][..], &[0x40], b"bcde"].concat();
    let expected = [&[b'a'; 23][..], b"bcde"].concat();
    assert_eq!(unpack_lz4(&block, 27).as_ref(), Some(&expected));
    for size in [0, 26, 28, 1 << 40] {
        assert_eq!(unpack_lz4(&block, size), None, "{size}");
    }
    for cut in 0..block.len() {
        assert_eq!(unpack_lz4(&block[..cut], 27), None, "{cut}");
    }
    assert_eq!(
        unpack_lz4(&[0x10, b'a', 2, 0, 0], 5),
        None,
        "an offset before the beginning"
    );
    assert_eq!(
        unpack_lz4(&[0x10, b'a', 0, 0, 0], 5),
        None,
        "an offset of 0"
    );
}

proptest! {
    #[test]
    fn damaged_objects_are_read(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = fat_object(100);
        for (index, byte) in changes {
            let offset = index.index(bytes.len());
            bytes[offset] = byte;
        }
        bytes.truncate(cut.map_or(bytes.len(), |cut| cut.index(bytes.len())));
        if let Some(host) = without_device_code(&bytes) {
            prop_assert!(host.len() <= bytes.len());
        }
        let _ = unpack_lz4(&bytes, 1000);
    }

    #[test]
    fn damaged_containers_are_read(
        seed in 0_usize..9,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = seeds()[seed].clone();
        for (index, byte) in changes {
            let offset = index.index(bytes.len());
            bytes[offset] = byte;
        }
        bytes.truncate(cut.map_or(bytes.len(), |cut| cut.index(bytes.len())));
        let mut end = 0;
        for container in containers(&bytes) {
            prop_assert!(container.offset >= end && !container.data.is_empty());
            prop_assert!(container.entries.len() <= MAX_ENTRIES);
            end = container.offset + container.data.len();
        }
        prop_assert!(end <= bytes.len());
        let _ = OffloadCode::read(&bytes);
    }
}
