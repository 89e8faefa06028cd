//! Arguments, in the layout of the device.

use core::ops::Range;

use crate::server::Fault;

/// Offsets of consecutive arguments.
#[derive(Clone, Copy, Debug)]
pub struct ArgumentLayout {
    /// Without padding, as on AMD's devices. Otherwise each argument is aligned to its size.
    packed: bool,
    end: usize,
}

impl ArgumentLayout {
    pub fn new(packed: bool) -> Self {
        Self { packed, end: 0 }
    }

    /// End of the last argument.
    pub fn end(&self) -> usize {
        self.end
    }

    /// Range of the next argument, of `size` bytes. Offsets of a format that fits into memory do not overflow;
    /// an overflow yields a range without an argument.
    pub fn next_range(&mut self, size: usize) -> Range<usize> {
        let align = if self.packed { 1 } else { size };
        let start = self.end.checked_next_multiple_of(align);
        let start = start.unwrap_or(usize::MAX);
        self.end = start.saturating_add(size);
        start..self.end
    }
}

/// Reader of consecutive arguments.
#[derive(Debug)]
pub struct Arguments<'a> {
    bytes: &'a [u8],
    layout: ArgumentLayout,
}

impl<'a> Arguments<'a> {
    pub fn new(bytes: &'a [u8], packed: bool) -> Self {
        let layout = ArgumentLayout::new(packed);
        Self { bytes, layout }
    }

    pub fn int(&mut self) -> Result<u32, Fault> {
        self.next().map(u32::from_ne_bytes)
    }

    pub fn long(&mut self) -> Result<u64, Fault> {
        self.next().map(u64::from_ne_bytes)
    }

    fn next<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let bytes = self.bytes.get(self.layout.next_range(N));
        bytes
            .and_then(|bytes| bytes.try_into().ok())
            .ok_or(Fault::Other("printf: missing arguments"))
    }
}
