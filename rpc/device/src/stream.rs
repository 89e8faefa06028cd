//! Operations on an open file of the host.

use embedded_io::SeekFrom;
use gpurpc::opcode;

use crate::call::Call;
use crate::error::{Error, Result};

/// Number by which the host knows an open file.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Stream(u64);

/// -1
const FAILED: u64 = u64::MAX;

impl Stream {
    pub const STDIN: Self = Self(1);

    /// Opens a file with a mode of C's `fopen`.
    pub fn open(path: &str, mode: [u8; 8]) -> Result<Self> {
        check(path)?;
        let mut call = Call::open(opcode::OPEN_FILE);
        call.send_parts(path.as_bytes(), b"\0");
        call.send([u64::from_ne_bytes(mode)]);
        match call.recv() {
            [0] => Err(Error::Host),
            [file] => Ok(Self(file)),
        }
    }

    pub fn close(&mut self) -> Result<()> {
        zero(words(opcode::CLOSE_FILE, [self.0]))
    }

    pub fn flush(&mut self) -> Result<()> {
        zero(words(opcode::FFLUSH, [self.0]))
    }

    pub fn read(&mut self, bytes: &mut [u8]) -> Result<usize> {
        let mut call = Call::open(opcode::READ_FROM_STREAM);
        call.send([bytes.len() as u64, self.0]);
        call.recv_n(bytes);
        let [count] = call.recv();
        drop(call);
        match (count as usize).min(bytes.len()) {
            0 if !bytes.is_empty() => self.at_end(),
            count => Ok(count),
        }
    }

    pub fn read_line(&mut self, line: &mut [u8]) -> Result<usize> {
        if line.len() < 2 {
            return Err(Error::InvalidInput);
        }
        let mut call = Call::open(opcode::READ_FGETS);
        call.send([line.len() as u64, self.0]);
        let size = call.recv_n(line).min(line.len());
        drop(call);
        match size {
            // A line ends with a NUL.
            0 => self.at_end(),
            size => Ok(size - 1),
        }
    }

    pub fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        let mut call = Call::open(opcode::WRITE_TO_STREAM);
        call.send([self.0]);
        call.send_n(bytes);
        let [count] = call.recv();
        match count as usize {
            0 if !bytes.is_empty() => Err(Error::Host),
            count => Ok(count),
        }
    }

    pub fn seek(&mut self, to: SeekFrom) -> Result<u64> {
        // Numbers of C's `SEEK_SET`, `SEEK_CUR` and `SEEK_END`.
        let (offset, whence) = match to {
            SeekFrom::Start(offset) => (offset, 0),
            SeekFrom::Current(offset) => (offset as u64, 1),
            SeekFrom::End(offset) => (offset as u64, 2),
        };
        zero(words(opcode::FSEEK, [self.0, offset, whence]))?;
        self.position()
    }

    pub fn position(&mut self) -> Result<u64> {
        match words(opcode::FTELL, [self.0]) {
            FAILED => Err(Error::Host),
            position => Ok(position),
        }
    }

    /// Result of a read without bytes: 0 at the end of the file, or an error.
    fn at_end(&mut self) -> Result<usize> {
        zero(words(opcode::FERROR, [self.0])).map(|()| 0)
    }
}

/// Removes a file or an empty directory.
pub(crate) fn remove(path: &str) -> Result<()> {
    check(path)?;
    let mut call = Call::open(opcode::REMOVE);
    call.send_parts(path.as_bytes(), b"\0");
    let [status] = call.recv();
    zero(status)
}

/// Renames a file or a directory.
pub(crate) fn rename(from: &str, to: &str) -> Result<()> {
    check(from)?;
    check(to)?;
    let mut call = Call::open(opcode::RENAME);
    call.send_parts(from.as_bytes(), b"\0");
    call.send_parts(to.as_bytes(), b"\0");
    let [status] = call.recv();
    zero(status)
}

/// A call with one packet and an answer of one word.
fn words<const N: usize>(opcode: u32, words: [u64; N]) -> u64 {
    let mut call = Call::open(opcode);
    call.send(words);
    let [answer] = call.recv();
    answer
}

/// Whether an answer is 0.
fn zero(answer: u64) -> Result<()> {
    if answer == 0 {
        Ok(())
    } else {
        Err(Error::Host)
    }
}

/// Refuses a path that would end at a NUL.
fn check(path: &str) -> Result<()> {
    if path.as_bytes().contains(&0) {
        Err(Error::InvalidInput)
    } else {
        Ok(())
    }
}
