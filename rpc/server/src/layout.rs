//! Layout of the memory that client and server share.

use core::fmt;

use crate::error::Error;

/// Maximum number of ports of a client, which is the number of its lock bits.
pub const MAX_PORTS: u32 = 4096;
/// Size in bytes of a header: the mask of the participating lanes, and the opcode.
pub const HEADER_SIZE: usize = 16;
/// Size in bytes of the packet of one lane.
pub const PACKET_SIZE: usize = 64;
/// Number of words of 8 bytes in the packet of one lane.
pub const PACKET_WORDS: usize = PACKET_SIZE / 8;
/// Words of the packet of one lane.
pub type Packet = [u64; PACKET_WORDS];
/// Size in bytes of a client of LLVM's libc in the memory of the device: the number of ports, four
/// pointers, and a lock bit for each port.
pub const CLIENT_SIZE: usize = 552;

/// Index of a port of a client, below [`Layout::ports`].
///
/// ```
/// use gpurpc::{Layout, PortIndex};
///
/// let layout = Layout::new(2, 32)?;
/// let ports: Vec<PortIndex> = layout.port_indices().collect();
/// assert_eq!(ports, [PortIndex::new(0), PortIndex::new(1)]);
/// # Ok::<(), gpurpc::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PortIndex(u32);

impl PortIndex {
    /// The port with this index.
    pub const fn new(index: u32) -> Self {
        Self(index)
    }

    /// The index as a number.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The index of an element in an array with one element per port.
    pub(crate) const fn slot(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for PortIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Number of ports of a client, and of lanes of each port.
///
/// In memory, consecutively: `u32 primary[ports]`, `u32 secondary[ports]`,
/// `Header header[ports]`, `Packet packet[ports][lanes]`. The client reads `primary` and writes
/// `secondary`, the server the other way round (LLVM's `libc/shared/rpc.h`).
///
/// ```
/// use gpurpc::{Error, Layout};
///
/// let layout = Layout::new(64, 32)?;
/// // Two mailboxes and a header for each port, a packet for each of its lanes.
/// assert_eq!(layout.size(), 64 * (4 + 4 + 16 + 32 * 64));
/// assert_eq!(Layout::new(64, 16), Err(Error::InvalidLaneSize(16)));
/// # Ok::<(), gpurpc::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Layout {
    ports: u32,
    lanes: u32,
}

impl Layout {
    /// A layout of 1 to [`MAX_PORTS`] ports, and 1, 32 or 64 lanes.
    ///
    /// A device needs as many ports as it has warps at the same time: warps that wait for a port may
    /// keep the one that holds it from running.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidPortCount`] or [`Error::InvalidLaneSize`].
    pub const fn new(ports: u32, lanes: u32) -> Result<Self, Error> {
        if ports == 0 || ports > MAX_PORTS {
            return Err(Error::InvalidPortCount(ports));
        }
        match lanes {
            1 | 32 | 64 => Ok(Self { ports, lanes }),
            _ => Err(Error::InvalidLaneSize(lanes)),
        }
    }

    /// Number of ports: calls that can be open at once.
    pub const fn ports(self) -> u32 {
        self.ports
    }

    /// Maximum number of threads of a warp that take part in a call.
    pub const fn lanes(self) -> u32 {
        self.lanes
    }

    /// Bit mask of all lanes.
    pub const fn lane_mask(self) -> u64 {
        u64::MAX >> (64 - self.lanes)
    }

    /// All ports, in ascending order.
    pub fn port_indices(self) -> impl Iterator<Item = PortIndex> {
        (0..self.ports).map(PortIndex)
    }

    /// Size in bytes of the memory.
    pub const fn size(self) -> usize {
        self.packet(PortIndex(self.ports), 0)
    }

    /// Offset of the mailboxes that the client reads.
    pub const fn primary(self) -> usize {
        0
    }

    /// Offset of the mailboxes that the server reads.
    pub const fn secondary(self) -> usize {
        4 * self.ports as usize
    }

    /// Offset of the header of a port.
    pub const fn header(self, port: PortIndex) -> usize {
        8 * self.ports as usize + HEADER_SIZE * port.slot()
    }

    /// Offset of the packet of a lane.
    pub const fn packet(self, port: PortIndex, lane: u32) -> usize {
        let before = port.slot() * self.lanes as usize + lane as usize;
        self.header(PortIndex(self.ports)) + PACKET_SIZE * before
    }

    /// Bytes of a client for memory that the device sees at `buffer`, with all ports unlocked: the initial
    /// state on the device. The number of its lanes is that of the device.
    pub fn client(self, buffer: u64) -> [u8; CLIENT_SIZE] {
        let mut client = [0; CLIENT_SIZE];
        client[..4].copy_from_slice(&self.ports.to_ne_bytes());
        let parts = [
            self.primary(),
            self.secondary(),
            self.header(PortIndex(0)),
            self.packet(PortIndex(0), 0),
        ];
        for (at, part) in client[8..40].chunks_exact_mut(8).zip(parts) {
            at.copy_from_slice(&buffer.wrapping_add(part as u64).to_ne_bytes());
        }
        client
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes according to LLVM's header.
    #[test]
    fn sizes_are_those_of_llvm() -> Result<(), Error> {
        for (ports, lanes, size) in [
            (1, 1, 88),
            (64, 32, 132_608),
            (64, 64, 263_680),
            (4096, 32, 8_486_912),
            (4096, 64, 16_875_520),
        ] {
            assert_eq!(Layout::new(ports, lanes)?.size(), size);
        }
        Ok(())
    }

    /// Fields as compiled from LLVM's header: `port_count`, `inbox`, `outbox`, `header`, `packet`, `lock`.
    #[test]
    fn a_client_points_to_its_parts() -> Result<(), Error> {
        let client = Layout::new(64, 32)?.client(0x7000_0000_1000);
        // The number of ports is an `int` with padding after it, in either byte order.
        assert_eq!(client[..4], 64_u32.to_ne_bytes());
        assert_eq!(client[4..8], [0; 4]);
        let pointers: [u64; 4] = core::array::from_fn(|word| {
            let bytes = client[8 + 8 * word..].first_chunk();
            u64::from_ne_bytes(*bytes.expect("a client has more words"))
        });
        let buffer = 0x7000_0000_1000;
        let expected = [buffer, buffer + 256, buffer + 512, buffer + 1536];
        assert_eq!(pointers, expected);
        assert!(client[40..].iter().all(|byte| *byte == 0));
        Ok(())
    }

    #[test]
    fn other_sizes_are_rejected() {
        assert_eq!(Layout::new(0, 32), Err(Error::InvalidPortCount(0)));
        assert_eq!(Layout::new(4097, 32), Err(Error::InvalidPortCount(4097)));
        for lanes in [0, 2, 33, 128] {
            assert_eq!(Layout::new(64, lanes), Err(Error::InvalidLaneSize(lanes)));
        }
    }

    #[test]
    fn masks_have_a_bit_for_each_lane() -> Result<(), Error> {
        for (lanes, mask) in [(1, 1), (32, 0xffff_ffff), (64, u64::MAX)] {
            assert_eq!(Layout::new(1, lanes)?.lane_mask(), mask);
        }
        Ok(())
    }
}
