//! Writers that count and hash what passes through them.

use std::io::{self, Write};

use crate::record::Hasher;

/// Checksum and size of the bytes so far.
pub(super) struct Counter {
    pub(super) crc: flate2::Crc,
    pub(super) size: u64,
}

/// Counts the bytes that it passes on.
pub(super) struct CountingWriter<'a> {
    pub(super) out: &'a mut dyn Write,
    pub(super) counter: &'a mut Counter,
}

impl Write for CountingWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.out.write(bytes)?;
        self.counter.crc.update(&bytes[..count]);
        self.counter.size += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Hashes the bytes that it passes on.
pub(super) struct HashingWriter<'a> {
    pub(super) out: &'a mut dyn Write,
    pub(super) hasher: &'a mut Hasher,
}

impl Write for HashingWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.out.write(bytes)?;
        self.hasher.update(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
