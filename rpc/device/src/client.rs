//! The client: an object of the device that the host fills in before the kernel starts.

use core::cell::UnsafeCell;
use core::mem::offset_of;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use gpurpc::{Generation, HEADER_SIZE, PACKET_SIZE, PACKET_WORDS};

/// Layout of the client. Features of a package only add up, so the newer one wins.
const GENERATION: &Generation = if cfg!(feature = "llvm-23") {
    Generation::LLVM_23
} else {
    Generation::LLVM_20
};
const LOCK_WORDS: usize = GENERATION.lock_words;

/// Order of accesses that a fence orders. ThreadSanitizer ignores fences, so under it the accesses have an order.
pub(crate) const FENCED: Ordering = if cfg!(gpurpc_thread_sanitizer) {
    Ordering::SeqCst
} else {
    Ordering::Relaxed
};

/// Lanes and opcode of a call.
#[repr(C)]
pub(crate) struct Header {
    pub mask: AtomicU64,
    pub opcode: AtomicU32,
    padding: u32,
}

/// The packet of one lane. Atomic, so that a host or lane that breaks the protocol changes data and nothing else.
pub(crate) type Packet = [AtomicU64; PACKET_WORDS];

/// Counter of open calls, and the interrupt for its first call. Both pointers are null if the host has no doorbell.
#[cfg(feature = "llvm-23")]
#[repr(C)]
struct Doorbell {
    value: *const AtomicU64,
    mailbox: *const AtomicU64,
    event_id: u32,
}

/// Members that the host fills in.
#[repr(C)]
#[derive(Clone, Copy)]
struct Parts {
    port_count: u32,
    #[cfg(feature = "llvm-23")]
    doorbell: *const Doorbell,
    inbox: *const AtomicU32,
    outbox: *const AtomicU32,
    header: *const Header,
    packet: *const Packet,
}

/// The layout is that of LLVM's libc (`libc/shared/rpc.h`).
#[repr(C)]
pub(crate) struct Client {
    parts: UnsafeCell<Parts>,
    /// A bit for each port.
    lock: [AtomicU32; LOCK_WORDS],
}

const _: () = {
    let pointers = GENERATION.pointers;
    assert!(size_of::<Client>() == GENERATION.client_size);
    assert!(offset_of!(Client, lock) == GENERATION.lock_offset);
    assert!(offset_of!(Parts, inbox) == pointers.inbox);
    assert!(offset_of!(Parts, outbox) == pointers.outbox);
    assert!(offset_of!(Parts, header) == pointers.header);
    assert!(offset_of!(Parts, packet) == pointers.packet);
    #[cfg(feature = "llvm-23")]
    assert!(matches!(pointers.doorbell, Some(offset) if offset == offset_of!(Parts, doorbell)));
    assert!(size_of::<Header>() == HEADER_SIZE && size_of::<Packet>() == PACKET_SIZE);
};

// SAFETY: `parts` is written before the first call, and the rest is atomic.
unsafe impl Sync for Client {}

const NULL: Parts = Parts {
    port_count: 0,
    #[cfg(feature = "llvm-23")]
    doorbell: core::ptr::null(),
    inbox: core::ptr::null(),
    outbox: core::ptr::null(),
    header: core::ptr::null(),
    packet: core::ptr::null(),
};

/// The client of this image. Hosts find it by the name of its symbol, which LLVM's libc has chosen. A host program may
/// link several clients, so it has no symbol there.
#[cfg_attr(
    any(target_arch = "nvptx64", target_arch = "amdgpu"),
    unsafe(export_name = "__llvm_rpc_client")
)]
pub(crate) static CLIENT: Client = Client {
    parts: UnsafeCell::new(NULL),
    lock: [const { AtomicU32::new(0) }; LOCK_WORDS],
};

impl Client {
    fn parts(&self) -> &Parts {
        // SAFETY: written only before the first call.
        unsafe { &*self.parts.get() }
    }

    /// Number of ports; 0 before the host has filled in the client.
    pub fn port_count(&self) -> u32 {
        self.parts().port_count
    }

    /// Mailbox of a port that the host writes.
    pub fn inbox(&self, port: u32) -> &AtomicU32 {
        // SAFETY: the host gives valid pointers to arrays with an element for each port.
        unsafe { &*self.parts().inbox.add(port as usize) }
    }

    /// Mailbox of a port that the client writes.
    pub fn outbox(&self, port: u32) -> &AtomicU32 {
        // SAFETY: as for the inbox.
        unsafe { &*self.parts().outbox.add(port as usize) }
    }

    /// Header of a port.
    pub fn header(&self, port: u32) -> &Header {
        // SAFETY: as for the inbox.
        unsafe { &*self.parts().header.add(port as usize) }
    }

    /// Packet of a lane. `lanes` is the number of lanes of a warp.
    pub fn packet(&self, port: u32, lanes: u32, lane: u32) -> &Packet {
        let index = port as usize * lanes as usize + lane as usize;
        // SAFETY: as for the inbox; there is one packet for each lane.
        unsafe { &*self.parts().packet.add(index) }
    }

    /// Locks a port and returns true, unless it is locked. A fence follows.
    pub fn try_lock(&self, port: u32) -> bool {
        let bit = 1 << (port % 32);
        self.lock(port).fetch_or(bit, FENCED) & bit == 0
    }

    /// Unlocks a port, after a fence.
    pub fn unlock(&self, port: u32) {
        let bit = 1 << (port % 32);
        self.lock(port).fetch_and(!bit, FENCED);
    }

    /// Word with the lock bit of a port. The host sets no more ports than there are bits; a failed check could not
    /// be reported, because a panic needs a port.
    fn lock(&self, port: u32) -> &AtomicU32 {
        &self.lock[port as usize / 32 % LOCK_WORDS]
    }

    /// Counts an opened call, and returns the event that wakes the host if it is the first one. Before LLVM 23 there
    /// is no doorbell.
    #[cfg(feature = "llvm-23")]
    pub fn ring(&self) -> Option<u32> {
        // SAFETY: the pointer is valid even without a doorbell; its members are valid or null.
        let doorbell = unsafe { &*self.parts().doorbell };
        // SAFETY: as above.
        let value = unsafe { doorbell.value.as_ref() }?;
        if value.fetch_add(1, Ordering::Relaxed) != 0 {
            return None;
        }
        // SAFETY: as above; LLVM 23.1 requires both or none.
        let mailbox = unsafe { doorbell.mailbox.as_ref() }?;
        mailbox.store(doorbell.event_id.into(), Ordering::Release);
        core::sync::atomic::fence(Ordering::AcqRel);
        Some(doorbell.event_id)
    }

    /// Fills in the client, with all ports unlocked.
    ///
    /// # Safety
    ///
    /// No call is open or opened meanwhile. `bytes` are those of a client whose memory outlives all calls.
    #[cfg(not(any(target_arch = "nvptx64", target_arch = "amdgpu")))]
    pub unsafe fn fill(&self, bytes: &[u8; GENERATION.client_size]) {
        // SAFETY: any bytes are valid members, and no other code uses them.
        unsafe {
            self.parts
                .get()
                .write(bytes.as_ptr().cast::<Parts>().read_unaligned())
        };
        for word in &self.lock {
            word.store(0, Ordering::Release);
        }
    }
}

/// Size in bytes of the client: 552, with the feature `llvm-23` 2096.
#[cfg(not(any(target_arch = "nvptx64", target_arch = "amdgpu")))]
pub(crate) const SIZE: usize = GENERATION.client_size;
