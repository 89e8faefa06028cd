//! Layout of the memory that client and server share.

use core::fmt;
use core::ops::{Deref, DerefMut};

use crate::error::Error;
use crate::generation::Generation;

/// Size in bytes of a header: the mask of the participating lanes, and the opcode.
pub const HEADER_SIZE: usize = 16;
/// Size in bytes of the packet of one lane.
pub const PACKET_SIZE: usize = 64;
/// Number of words of 8 bytes in the packet of one lane.
pub const PACKET_WORDS: usize = PACKET_SIZE / 8;
/// Words of the packet of one lane.
pub type Packet = [u64; PACKET_WORDS];

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

/// Generation of the protocol, number of ports of a client, and number of lanes of each port.
///
/// In memory, consecutively: the doorbell if the generation has one, `u32 primary[ports]`,
/// `u32 secondary[ports]`, `Header header[ports]`, `Packet packet[ports][lanes]`. The client reads
/// `primary` and writes `secondary`, the server the other way round (LLVM's `libc/shared/rpc.h`).
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
    generation: &'static Generation,
    ports: u32,
    lanes: u32,
}

impl Layout {
    /// A layout of [`Generation::LLVM_20`] with 1 to 4096 ports, and 1, 32 or 64 lanes.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidPortCount`] or [`Error::InvalidLaneSize`].
    pub const fn new(ports: u32, lanes: u32) -> Result<Self, Error> {
        Self::with_generation(Generation::LLVM_20, ports, lanes)
    }

    /// A layout of 1 to [`Generation::max_ports`] ports, and 1, 32 or 64 lanes.
    ///
    /// A device needs as many ports as it has warps at the same time: warps that wait for a port may
    /// keep the one that holds it from running.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidPortCount`] or [`Error::InvalidLaneSize`].
    pub const fn with_generation(
        generation: &'static Generation,
        ports: u32,
        lanes: u32,
    ) -> Result<Self, Error> {
        if ports == 0 || ports > generation.max_ports {
            return Err(Error::InvalidPortCount(ports));
        }
        match lanes {
            1 | 32 | 64 => Ok(Self {
                generation,
                ports,
                lanes,
            }),
            _ => Err(Error::InvalidLaneSize(lanes)),
        }
    }

    /// Generation of the protocol.
    pub const fn generation(self) -> &'static Generation {
        self.generation
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
        self.generation.mailbox_offset
    }

    /// Offset of the mailboxes that the server reads.
    pub const fn secondary(self) -> usize {
        self.primary() + 4 * self.ports as usize
    }

    /// Offset of the header of a port.
    pub const fn header(self, port: PortIndex) -> usize {
        self.primary() + 8 * self.ports as usize + HEADER_SIZE * port.slot()
    }

    /// Offset of the packet of a lane.
    pub const fn packet(self, port: PortIndex, lane: u32) -> usize {
        let before = port.slot() * self.lanes as usize + lane as usize;
        self.header(PortIndex(self.ports)) + PACKET_SIZE * before
    }

    /// A client for memory that the device sees at `buffer`, with all ports unlocked: the initial state on
    /// the device. The number of its lanes is that of the kernels that use it.
    pub fn client(self, buffer: u64) -> ClientBytes {
        let Generation {
            client_size,
            pointers,
            ..
        } = *self.generation;
        let mut client = ClientBytes {
            bytes: [0; MAX_CLIENT_SIZE],
            size: client_size,
        };
        client[..4].copy_from_slice(&self.ports.to_ne_bytes());
        let mut set = |pointer: usize, part: usize| {
            let address = buffer.wrapping_add(part as u64);
            client[pointer..pointer + 8].copy_from_slice(&address.to_ne_bytes());
        };
        if let Some(doorbell) = pointers.doorbell {
            // Valid even for a device without a doorbell: clients read it before they test its members.
            set(doorbell, 0);
        }
        set(pointers.inbox, self.primary());
        set(pointers.outbox, self.secondary());
        set(pointers.header, self.header(PortIndex(0)));
        set(pointers.packet, self.packet(PortIndex(0), 0));
        client
    }
}

const MAX_CLIENT_SIZE: usize = Generation::LLVM_23.client_size;

/// Bytes of a client of LLVM's libc, aligned as it is in the memory of the device: the number of ports,
/// pointers to the parts of the memory, and a lock bit for each port.
///
/// ```
/// use gpurpc::Layout;
///
/// let client = Layout::new(64, 32)?.client(0x7000_0000_0000);
/// assert_eq!(client.len(), 552);
/// assert_eq!(client[..4], 64_u32.to_ne_bytes());
/// # Ok::<(), gpurpc::Error>(())
/// ```
#[derive(Clone, Debug)]
#[repr(C, align(8))]
pub struct ClientBytes {
    bytes: [u8; MAX_CLIENT_SIZE],
    size: usize,
}

impl Deref for ClientBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.size]
    }
}

impl DerefMut for ClientBytes {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.size]
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
