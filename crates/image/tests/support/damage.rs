//! Damage to files, for tests with hostile bytes.

use proptest::prelude::*;
use proptest::sample::Index;

/// Values that break arithmetic more often than random ones do.
fn value() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        Just(1),
        // The entries of a zip are counted in 16 bits.
        Just(u64::from(u16::MAX)),
        Just(u64::from(u32::MAX)),
        Just(u64::MAX),
        Just(1 << 63),
        0..0x1_0000_u64,
        any::<u64>(),
    ]
}

/// A number of 1 to 8 bytes that overwrites bytes of a file.
#[derive(Debug, Clone)]
pub struct Change {
    offset: Index,
    size: usize,
    value: u64,
}

/// A few changes to any file.
pub fn changes() -> impl Strategy<Value = Vec<Change>> {
    let change =
        (any::<Index>(), 0_usize..4, value()).prop_map(|(offset, log_size, value)| Change {
            offset,
            size: 1 << log_size,
            value,
        });
    prop::collection::vec(change, 1..6)
}

/// The file with these changes.
pub fn overwritten(bytes: &[u8], changes: &[Change]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for change in changes {
        let offset = change.offset.index(bytes.len() - change.size);
        let number = change.value.to_le_bytes();
        bytes[offset..offset + change.size].copy_from_slice(&number[..change.size]);
    }
    bytes
}
