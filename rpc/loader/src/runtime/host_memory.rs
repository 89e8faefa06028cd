//! Host memory that a device can access.

use std::ptr::NonNull;

use crate::error::{Code, Error, Result};

/// Host memory that a device can access at the same time. It is never freed, because a kernel may still use it
/// when the process ends.
#[derive(Debug, Clone, Copy)]
pub struct HostMemory {
    host: NonNull<u8>,
    device: u64,
    size: usize,
}

impl HostMemory {
    /// Wraps memory that a driver has allocated.
    ///
    /// # Safety
    ///
    /// `size` bytes at `host` stay valid and are not used by anything else. The device sees them at `device`.
    pub unsafe fn new(host: *mut u8, device: u64, size: usize) -> Result<Self> {
        let host = NonNull::new(host)
            .ok_or_else(|| Error::new(Code::Failed, "the driver allocated memory at address 0"))?;
        Ok(Self { host, device, size })
    }

    /// Address on the host.
    pub fn host(&self) -> NonNull<u8> {
        self.host
    }

    /// Address on the device.
    pub fn device(&self) -> u64 {
        self.device
    }

    /// Size in bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Writes bytes and zeroes the rest, before the device uses the memory.
    ///
    /// # Safety
    ///
    /// The device does not use it yet.
    pub unsafe fn fill(&mut self, bytes: &[u8]) {
        let bytes = &bytes[..bytes.len().min(self.size)];
        let rest = self.size - bytes.len();
        // SAFETY: within the memory, which `new` requires to be valid, and not used by anything else.
        unsafe {
            self.host
                .as_ptr()
                .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            self.host.add(bytes.len()).as_ptr().write_bytes(0, rest);
        }
    }
}
