//! Where everything lies in the memory that client and server share.

use crate::Error;

/// The most ports of a client: its locks have no more bits.
pub const MAX_PORTS: u32 = 4096;
/// Bytes of a header: the mask of the lanes that take part, and the opcode.
pub const HEADER_SIZE: usize = 16;
/// Bytes of the packet of one lane.
pub const PACKET_SIZE: usize = 64;
/// Words of 8 bytes of the packet of one lane.
pub const PACKET_WORDS: usize = PACKET_SIZE / 8;
/// Bytes of a client as LLVM's libc has it in the memory of the device: the number of ports, four
/// pointers, and a bit for each port that is taken.
pub const CLIENT_SIZE: usize = 552;

/// How many ports a client has, and how many lanes each of them.
///
/// In memory, one behind the other: `u32 primary[ports]`, `u32 secondary[ports]`,
/// `Header header[ports]`, `Packet packet[ports][lanes]`. The client reads `primary` and writes
/// `secondary`, the server the other way round (LLVM's `libc/shared/rpc.h`).
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
    pub const fn new(ports: u32, lanes: u32) -> Result<Self, Error> {
        if ports == 0 || ports > MAX_PORTS {
            return Err(Error::Ports(ports));
        }
        match lanes {
            1 | 32 | 64 => Ok(Self { ports, lanes }),
            _ => Err(Error::Lanes(lanes)),
        }
    }

    /// How many calls can be under way at once.
    pub const fn ports(self) -> u32 {
        self.ports
    }

    /// How many threads of a warp take part in a call at most.
    pub const fn lanes(self) -> u32 {
        self.lanes
    }

    /// A bit for each lane.
    pub const fn lane_mask(self) -> u64 {
        u64::MAX >> (64 - self.lanes)
    }

    /// Bytes of all together.
    pub const fn size(self) -> usize {
        self.packet(self.ports, 0)
    }

    /// Where the mailboxes lie that the client reads.
    pub const fn primary(self) -> usize {
        0
    }

    /// Where the mailboxes lie that the server reads.
    pub const fn secondary(self) -> usize {
        4 * self.ports as usize
    }

    /// Where the header of a port lies.
    pub const fn header(self, port: u32) -> usize {
        8 * self.ports as usize + HEADER_SIZE * port as usize
    }

    /// Where the packet of a lane lies.
    pub const fn packet(self, port: u32, lane: u32) -> usize {
        let before = port as usize * self.lanes as usize + lane as usize;
        self.header(self.ports) + PACKET_SIZE * before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes that LLVM's header has for these.
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

    #[test]
    fn others_are_refused() {
        assert_eq!(Layout::new(0, 32), Err(Error::Ports(0)));
        assert_eq!(Layout::new(4097, 32), Err(Error::Ports(4097)));
        for lanes in [0, 2, 33, 128] {
            assert_eq!(Layout::new(64, lanes), Err(Error::Lanes(lanes)));
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
