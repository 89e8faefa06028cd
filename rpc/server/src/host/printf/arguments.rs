//! The arguments, as a device lays them out.

use core::ops::Range;

use crate::server::Fault;

/// Where arguments lie, one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Places {
    /// Without padding, as AMD's devices have them. Else each lies at a multiple of its size.
    packed: bool,
    end: usize,
}

impl Places {
    pub fn new(packed: bool) -> Self {
        Self { packed, end: 0 }
    }

    /// Where the last one ends.
    pub fn end(&self) -> usize {
        self.end
    }

    /// The place of the next one, of so many bytes. Those of a format that fits into memory do not
    /// overflow; if they did, there would be no such argument.
    pub fn next(&mut self, size: usize) -> Range<usize> {
        let align = if self.packed { 1 } else { size };
        let start = self.end.checked_next_multiple_of(align);
        let start = start.unwrap_or(usize::MAX);
        self.end = start.saturating_add(size);
        start..self.end
    }
}

/// Reads one argument after the other.
#[derive(Debug)]
pub struct Arguments<'a> {
    bytes: &'a [u8],
    places: Places,
}

impl<'a> Arguments<'a> {
    pub fn new(bytes: &'a [u8], packed: bool) -> Self {
        let places = Places::new(packed);
        Self { bytes, places }
    }

    pub fn int(&mut self) -> Result<u32, Fault> {
        self.take().map(u32::from_ne_bytes)
    }

    pub fn long(&mut self) -> Result<u64, Fault> {
        self.take().map(u64::from_ne_bytes)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let bytes = self.bytes.get(self.places.next(N));
        bytes
            .and_then(|bytes| bytes.try_into().ok())
            .ok_or(Fault::Other("printf: fewer arguments than the format has"))
    }
}
