//! Members of zip archives, verified while they are read.

use std::io::{self, Read};

use flate2::Crc;
use rawzip::ZipVerification;

/// Reader that fails at its last bytes if their number or their checksum is not that in the archive's directory. rawzip's
/// own computes the checksum without the processor's instructions for it.
pub struct VerifiedReader<R> {
    reader: R,
    expected: ZipVerification,
    crc: Crc,
    size: u64,
}

impl<R: Read> VerifiedReader<R> {
    /// A member that is inflated by `reader`.
    pub fn new(reader: R, expected: ZipVerification) -> Self {
        Self {
            reader,
            expected,
            crc: Crc::new(),
            size: 0,
        }
    }
}

impl<R: Read> Read for VerifiedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let count = self.reader.read(buffer)?;
        self.crc.update(&buffer[..count]);
        self.size += count as u64;
        if count == 0 || self.size >= self.expected.uncompressed_size {
            let actual = ZipVerification {
                crc: self.crc.sum(),
                uncompressed_size: self.size,
            };
            (self.expected.valid(actual))
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        }
        Ok(count)
    }
}
