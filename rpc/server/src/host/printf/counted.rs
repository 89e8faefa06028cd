//! Bytes that count as messages of a device's calls do.

use alloc::vec::Vec;

use crate::server::{Fault, Reservation};

/// Bytes, and what was taken of a device's memory for them, if they count.
#[derive(Debug)]
pub struct Counted {
    bytes: Vec<u8>,
    reserved: Option<Reservation>,
}

impl Counted {
    /// None yet.
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

    /// Puts bytes behind those that there are.
    pub fn put(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.make_room(bytes.len())?;
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// Puts the same byte there so many times.
    pub fn fill(&mut self, byte: u8, count: usize) -> Result<(), Fault> {
        self.make_room(count)?;
        self.bytes.resize(self.bytes.len() + count, byte);
        Ok(())
    }

    fn make_room(&mut self, more: usize) -> Result<(), Fault> {
        let Some(reserved) = &mut self.reserved else {
            return Ok(());
        };
        let missing = (self.bytes.len() + more).saturating_sub(reserved.bytes());
        if missing > 0 {
            // As many as there are, if they may be had, so that many small pieces are not copied often.
            let ahead = reserved.grow(missing.max(self.bytes.len()));
            ahead.or_else(|_| reserved.grow(missing))?;
            let room = reserved.bytes() - self.bytes.len();
            self.bytes.reserve_exact(room);
        }
        Ok(())
    }
}
