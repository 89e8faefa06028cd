//! Reports of bytes that are no longer needed, for callers that map large files.

use std::cell::Cell;

/// Callback for bytes that are not read again soon, so that a caller can release mapped memory.
pub type ConsumedFn<'a> = &'a dyn Fn(&[u8]);

/// Memory that reads of a mapped file may occupy before its bytes are reported.
const MAX_RESIDENT: usize = 4 << 20;

/// Memory in bytes that one access to a mapped file occupies: Linux maps the pages around it, also those before it
/// (`fault_around_bytes`, mm/memory.c).
pub const FAULT_AROUND: usize = 64 << 10;

/// Scattered reads of a file.
pub(crate) struct Reads<'a> {
    bytes: &'a [u8],
    consumed: ConsumedFn<'a>,
    touched: Cell<usize>,
}

impl<'a> Reads<'a> {
    pub(crate) fn new(bytes: &'a [u8], consumed: ConsumedFn<'a>) -> Self {
        let touched = Cell::new(0);
        Self {
            bytes,
            consumed,
            touched,
        }
    }

    /// Reads of a file that the caller needs as a whole, or that is small.
    pub(crate) fn unreported(bytes: &'a [u8]) -> Self {
        Self::new(bytes, &|_| ())
    }

    /// Counts a read that occupies about `size` bytes of memory. Reports the file from time to time.
    pub(crate) fn count(&self, size: usize) {
        let touched = self.touched.get() + size;
        self.touched.set(touched % MAX_RESIDENT);
        if touched >= MAX_RESIDENT {
            (self.consumed)(self.bytes);
        }
    }
}
