//! Byte buffer counted against the device's memory budget.

use alloc::vec::Vec;

use crate::libc::growing_bytes::GrowingBytes;
use crate::server::{Fault, Reservation};

/// Byte buffer with a reservation of the device's memory, if it is counted.
#[derive(Debug)]
pub struct BudgetedBuffer {
    bytes: GrowingBytes,
    reserved: Option<Reservation>,
}

impl BudgetedBuffer {
    /// An empty buffer.
    pub fn new(reserved: Option<Reservation>) -> Self {
        let bytes = GrowingBytes::default();
        Self { bytes, reserved }
    }

    pub fn bytes(&self) -> &[u8] {
        self.bytes.bytes()
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes.into_vec()
    }

    /// Appends bytes.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.reserve(bytes.len())?;
        self.bytes.append(bytes);
        Ok(())
    }

    /// Appends `count` copies of a byte.
    pub fn fill(&mut self, byte: u8, count: usize) -> Result<(), Fault> {
        self.reserve(count)?;
        self.bytes.fill(byte, count);
        Ok(())
    }

    fn reserve(&mut self, more: usize) -> Result<(), Fault> {
        let size = self.bytes().len();
        let Some(reserved) = &mut self.reserved else {
            // Grows by doubling, as a vector does.
            if self.bytes.reserve((size + more).max(2 * size)) {
                return Ok(());
            }
            return Err(Fault::Other("printf: out of memory"));
        };
        let missing = (size + more).saturating_sub(reserved.bytes());
        if missing > 0 {
            // Doubles the buffer if the budget allows, so that many small appends copy little.
            let ahead = reserved.grow(missing.max(size));
            ahead.or_else(|_| reserved.grow(missing))?;
        }
        let (capacity, limit) = (reserved.bytes(), reserved.budget().limits().memory);
        if self.bytes.reserve(capacity) {
            return Ok(());
        }
        let size = capacity as u64;
        Err(Fault::OutOfMemory { size, limit })
    }
}
