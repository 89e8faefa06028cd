//! Bytes that were read, and counted before there was memory for them.

use std::sync::Arc;

use crate::server::{Budget, Reservation};

/// The first bytes that a read has room for, if that many are wanted; more only once they are there.
const STEP: usize = 4096;
/// The most bytes of room at once.
const LEAP: usize = 1 << 20;

/// What a lane has read.
#[derive(Debug)]
pub(crate) struct Data {
    bytes: Vec<u8>,
    reserved: Reservation,
    limit: usize,
}

impl Data {
    /// Nothing yet, and never more than `limit` bytes.
    pub fn new(budget: &Arc<Budget>, limit: usize) -> Self {
        Self {
            bytes: Vec::new(),
            reserved: budget.none(),
            limit,
        }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How many bytes can be put here until there are `wanted`; more room is made if there is none. A
    /// size that a device says costs nothing until so many bytes were read.
    pub fn room(&mut self, wanted: u64) -> usize {
        let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
        let wanted = wanted.min(self.limit).saturating_sub(self.bytes.len());
        let free = self.reserved.bytes() - self.bytes.len();
        if free > 0 || wanted == 0 {
            return free.min(wanted);
        }
        let more = self.bytes.len().clamp(STEP, LEAP).min(wanted);
        if self.make_room(more) { more } else { 0 }
    }

    /// Puts bytes here that there is room for.
    pub fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Puts a byte here that is no part of what was read. Gives whether there was memory for it.
    pub fn end_with(&mut self, byte: u8) -> bool {
        let room = self.reserved.bytes() > self.bytes.len() || self.make_room(1);
        if room {
            self.bytes.push(byte);
        }
        room
    }

    /// Gives room back that nothing was put into.
    pub fn settle(&mut self) {
        self.bytes.shrink_to_fit();
        self.reserved.shrink(self.bytes.len());
    }

    fn make_room(&mut self, more: usize) -> bool {
        let before = self.reserved.bytes();
        if self.reserved.grow(more).is_err() {
            return false;
        }
        let there = self.bytes.try_reserve_exact(more).is_ok();
        if !there {
            // Room that is counted is there.
            self.reserved.shrink(before);
        }
        there
    }
}
