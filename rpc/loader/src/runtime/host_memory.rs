//! Memory of the host that a device sees.

use std::ptr::NonNull;

use crate::error::{Code, Error, Result};

/// Memory of the host that a device sees at once, too. It is there until the process ends: a kernel that
/// still runs may use it.
#[derive(Debug, Clone, Copy)]
pub struct HostMemory {
    host: NonNull<u8>,
    device: u64,
    size: usize,
}

impl HostMemory {
    /// What a driver has allocated.
    ///
    /// # Safety
    ///
    /// There are so many bytes at `host`, which nothing else uses, and they stay there. The device sees
    /// them at `device`.
    pub unsafe fn new(host: *mut u8, device: u64, size: usize) -> Result<Self> {
        let host = NonNull::new(host)
            .ok_or_else(|| Error::new(Code::Failed, "the driver allocated memory at address 0"))?;
        Ok(Self { host, device, size })
    }

    /// Where it begins on the host.
    pub fn host(&self) -> NonNull<u8> {
        self.host
    }

    /// Where it begins on the device.
    pub fn device(&self) -> u64 {
        self.device
    }

    /// How many bytes there are.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Writes to it before anybody else knows of it; what is left of it becomes zero.
    ///
    /// # Safety
    ///
    /// The device does not use it yet.
    pub unsafe fn fill(&mut self, bytes: &[u8]) {
        let bytes = &bytes[..bytes.len().min(self.size)];
        let rest = self.size - bytes.len();
        // SAFETY: within the memory, as `new` has it, and nobody else uses it.
        unsafe {
            self.host
                .as_ptr()
                .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            self.host.add(bytes.len()).as_ptr().write_bytes(0, rest);
        }
    }
}
