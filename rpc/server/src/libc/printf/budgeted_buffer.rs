//! Byte buffer counted against the device's memory budget.

use alloc::vec::Vec;

use crate::server::{Fault, Reservation};

/// Byte buffer with a reservation of the device's memory, if it is counted.
#[derive(Debug)]
pub struct BudgetedBuffer {
    bytes: Vec<u8>,
    reserved: Option<Reservation>,
}

impl BudgetedBuffer {
    /// An empty buffer.
    pub fn new(reserved: Option<Reservation>) -> Self {
        let bytes = Vec::new();
        Self { bytes, reserved }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Appends bytes.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.reserve(bytes.len())?;
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// Appends `count` copies of a byte.
    pub fn fill(&mut self, byte: u8, count: usize) -> Result<(), Fault> {
        self.reserve(count)?;
        self.bytes.resize(self.bytes.len() + count, byte);
        Ok(())
    }

    fn reserve(&mut self, more: usize) -> Result<(), Fault> {
        let Some(reserved) = &mut self.reserved else {
            return Ok(());
        };
        let missing = (self.bytes.len() + more).saturating_sub(reserved.bytes());
        if missing > 0 {
            // Doubles the buffer if the budget allows, so that many small appends copy little.
            let ahead = reserved.grow(missing.max(self.bytes.len()));
            ahead.or_else(|_| reserved.grow(missing))?;
            let room = reserved.bytes() - self.bytes.len();
            self.bytes.reserve_exact(room);
        }
        Ok(())
    }
}
