//! Generations of the protocol: what differs between releases of LLVM's libc.

use core::ffi::CStr;
use core::fmt;

use crate::opcode_encoding::Opcodes;

/// Meaning of the symbol of a client.
///
/// ```
/// use gpurpc::{Generation, Symbol};
///
/// assert_eq!(Generation::LLVM_19.symbol, Symbol::Pointer(c"__llvm_libc_rpc_client"));
/// assert_eq!(Generation::LLVM_23.symbol.name(), c"__llvm_rpc_client");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Symbol {
    /// The client itself has this name.
    Object(&'static CStr),
    /// A pointer to the client has this name.
    Pointer(&'static CStr),
}

impl Symbol {
    /// Name of the symbol in an image.
    pub const fn name(self) -> &'static CStr {
        match self {
            Self::Object(name) | Self::Pointer(name) => name,
        }
    }
}

/// Offsets of the pointers in a client.
///
/// ```
/// use gpurpc::Generation;
///
/// assert_eq!((Generation::LLVM_20.pointers.inbox, Generation::LLVM_20.pointers.doorbell), (8, None));
/// assert_eq!((Generation::LLVM_23.pointers.inbox, Generation::LLVM_23.pointers.doorbell), (16, Some(8)));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct PointerOffsets {
    /// Pointer to the doorbell, in generations that have one.
    pub doorbell: Option<usize>,
    /// Pointer to the mailboxes that the client reads.
    pub inbox: usize,
    /// Pointer to the mailboxes that the client writes.
    pub outbox: usize,
    /// Pointer to the first header.
    pub header: usize,
    /// Pointer to the first packet.
    pub packet: usize,
}

/// A generation of the protocol, which some releases of LLVM's libc share. LLVM changes it between major
/// releases (`libc/shared/rpc.h`).
///
/// ```
/// use gpurpc::{Generation, Layout};
///
/// // An image with a client of 2096 bytes.
/// let generation = Generation::find(c"__llvm_rpc_client", 2096).ok_or("a newer LLVM")?;
/// assert_eq!(generation.to_string(), "LLVM 23");
/// let layout = Layout::with_generation(generation, 16384, 64)?;
/// assert_eq!(layout.client(0x7000_0000_0000).len(), generation.client_size);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Generation {
    /// First major release of LLVM.
    pub first_release: u32,
    /// Last known major release of LLVM.
    pub last_release: u32,
    /// Symbol by which a loader finds the client in an image.
    pub symbol: Symbol,
    /// Size in bytes of a client.
    pub client_size: usize,
    /// Offset in a client of its lock bits, one for each port.
    pub lock_offset: usize,
    /// Number of 32-bit words of lock bits.
    pub lock_words: usize,
    /// Maximum number of ports.
    pub max_ports: u32,
    /// Offsets of the pointers in a client.
    ///
    /// ```
    /// use gpurpc::Generation;
    ///
    /// assert_eq!((Generation::LLVM_20.pointers.inbox, Generation::LLVM_20.pointers.doorbell), (8, None));
    /// assert_eq!((Generation::LLVM_23.pointers.inbox, Generation::LLVM_23.pointers.doorbell), (16, Some(8)));
    /// ```
    pub pointers: PointerOffsets,
    /// Offset of the mailboxes in the memory. The bytes before them are the doorbell.
    pub mailbox_offset: usize,
    /// Encoding of opcodes.
    pub opcodes: Opcodes,
    /// Alignment in bytes of the memory.
    pub alignment: usize,
}

/// Offsets of the pointers before LLVM 23.
const WITHOUT_DOORBELL: PointerOffsets = PointerOffsets {
    doorbell: None,
    inbox: 8,
    outbox: 16,
    header: 24,
    packet: 32,
};

impl Generation {
    /// LLVM 19.
    pub const LLVM_19: &Self = &Self {
        first_release: 19,
        last_release: 19,
        symbol: Symbol::Pointer(c"__llvm_libc_rpc_client"),
        opcodes: Opcodes::Narrow,
        ..LLVM_20
    };
    /// LLVM 20 to 22, and `gpurpc_client.h` by default.
    pub const LLVM_20: &Self = &LLVM_20;
    /// LLVM 23: with a doorbell, and more ports (llvm-project#188067, #188756).
    pub const LLVM_23: &Self = &Self {
        first_release: 23,
        last_release: 23,
        client_size: 2096,
        lock_offset: 48,
        lock_words: 512,
        max_ports: 16384,
        pointers: PointerOffsets {
            doorbell: Some(8),
            inbox: 16,
            outbox: 24,
            header: 32,
            packet: 40,
        },
        mailbox_offset: 64,
        alignment: 64,
        ..LLVM_20
    };
    /// All known generations, in ascending order.
    pub const ALL: [&Self; 3] = [Self::LLVM_19, Self::LLVM_20, Self::LLVM_23];

    /// The generation of an image whose symbol of this name has this size. A pointer has 8 bytes on all
    /// devices.
    pub fn find(symbol: &CStr, size: usize) -> Option<&'static Self> {
        Self::ALL.into_iter().find(|generation| {
            generation.symbol.name() == symbol && generation.symbol_size() == size
        })
    }

    /// The generation of a major release of LLVM.
    pub fn for_release(release: u32) -> Option<&'static Self> {
        Self::ALL.into_iter().find(|generation| {
            (generation.first_release..=generation.last_release).contains(&release)
        })
    }

    /// Size in bytes of what the symbol names: the client, or a pointer of a device.
    pub const fn symbol_size(&self) -> usize {
        match self.symbol {
            Symbol::Object(_) => self.client_size,
            Symbol::Pointer(_) => 8,
        }
    }

    /// Whether the memory begins with a doorbell.
    pub const fn has_doorbell(&self) -> bool {
        self.pointers.doorbell.is_some()
    }
}

const LLVM_20: Generation = Generation {
    first_release: 20,
    last_release: 22,
    symbol: Symbol::Object(c"__llvm_rpc_client"),
    client_size: 552,
    lock_offset: 40,
    lock_words: 128,
    max_ports: 4096,
    pointers: WITHOUT_DOORBELL,
    mailbox_offset: 0,
    opcodes: Opcodes::Wide,
    alignment: 8,
};

/// The releases.
impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LLVM {}", self.first_release)?;
        if self.last_release > self.first_release {
            write!(f, " to {}", self.last_release)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client ends with its locks, and generations with one symbol differ in its size.
    #[test]
    fn generations_are_consistent() {
        for generation in Generation::ALL {
            let locks_end = generation.lock_offset + 4 * generation.lock_words;
            assert_eq!(locks_end, generation.client_size, "{generation}");
            assert_eq!(32 * generation.lock_words, generation.max_ports as usize);
            let name = generation.symbol.name();
            assert_eq!(
                Generation::find(name, generation.symbol_size()),
                Some(generation)
            );
            for release in [generation.first_release, generation.last_release] {
                assert_eq!(Generation::for_release(release), Some(generation));
            }
        }
        assert_eq!(Generation::find(c"__llvm_rpc_client", 8), None);
        assert_eq!(Generation::find(c"__llvm_libc_rpc_client", 552), None);
    }
}
