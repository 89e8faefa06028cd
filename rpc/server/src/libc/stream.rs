//! A C stream: end-of-file and error indicators, position, pushed-back bytes.

#[cfg(feature = "files")]
use std::fs::File;
use std::io::{self, BufRead, ErrorKind, Write};
#[cfg(feature = "files")]
use std::io::{BufReader, Seek, SeekFrom};

use super::read_buffer::ReadBuffer;

/// Maximum number of pushed-back bytes; C guarantees one.
const MAX_PUSHED_BACK: usize = 16;

/// Source or destination of a stream's bytes.
pub(crate) enum Backing {
    /// Standard input of the process. No bytes are buffered here, because the process may continue to read.
    Stdin,
    Reader(Box<dyn BufRead + Send>),
    Writer(Box<dyn Write + Send>),
    #[cfg(feature = "files")]
    File {
        file: BufReader<File>,
        read: bool,
        write: bool,
    },
    Closed,
}

impl Backing {
    fn read<T>(&mut self, work: impl FnOnce(&mut dyn BufRead) -> T) -> Option<T> {
        match self {
            Self::Stdin => Some(work(&mut io::stdin().lock())),
            Self::Reader(reader) => Some(work(reader)),
            #[cfg(feature = "files")]
            Self::File {
                file, read: true, ..
            } => Some(work(file)),
            _ => None,
        }
    }

    fn writer(&mut self) -> Option<&mut dyn Write> {
        match self {
            Self::Writer(writer) => Some(writer),
            #[cfg(feature = "files")]
            Self::File {
                file, write: true, ..
            } => Some(file.get_mut()),
            _ => None,
        }
    }

    fn reads(&self) -> bool {
        match self {
            Self::Stdin | Self::Reader(_) => true,
            #[cfg(feature = "files")]
            Self::File { read, .. } => *read,
            Self::Writer(_) | Self::Closed => false,
        }
    }
}

/// A stream. Only input is buffered.
pub(crate) struct Stream {
    backing: Backing,
    /// Bytes pushed back by `ungetc`. The last one is read first.
    pushed_back: Vec<u8>,
    end: bool,
    error: bool,
    /// Whether written bytes were not flushed yet.
    written: bool,
}

/// Reason why a read ended.
#[derive(PartialEq, Eq)]
enum Stop {
    /// All requested bytes were read.
    Complete,
    /// The stream ended.
    End,
    /// The limit was reached, or memory is short.
    Limit,
    /// The error indicator of the stream was set.
    Error,
}

impl Stream {
    pub fn new(backing: Backing) -> Self {
        Self {
            backing,
            pushed_back: Vec::new(),
            end: false,
            error: false,
            written: false,
        }
    }

    /// The end-of-file indicator.
    pub fn at_end(&self) -> bool {
        self.end
    }

    /// The error indicator.
    pub fn failed(&self) -> bool {
        self.error
    }

    pub fn clear(&mut self) {
        (self.end, self.error) = (false, false);
    }

    /// `fread`: reads `size` bytes, or fewer at the end and after an error. Reaching the limit is an error.
    pub fn read(&mut self, size: u64, mut buffer: ReadBuffer) -> ReadBuffer {
        if self.fill(size, None, &mut buffer) == Stop::Limit {
            self.error = true;
        }
        buffer.shrink_to_fit();
        buffer
    }

    /// `fgets` with an array of `size` bytes: returns a line and a NUL, or nothing. A line beyond the limit is
    /// returned in parts, like a line longer than the array.
    pub fn read_line(&mut self, size: i64, mut buffer: ReadBuffer) -> Option<ReadBuffer> {
        let max_length = u64::try_from(size.checked_sub(1)?).ok()?;
        let stop = self.fill(max_length, Some(b'\n'), &mut buffer);
        let is_empty = buffer.bytes().is_empty();
        match stop {
            Stop::Error => return None,
            Stop::End if is_empty => return None,
            Stop::Limit if is_empty => {
                self.error = true;
                return None;
            }
            _ => {}
        }
        if !buffer.terminate(0) {
            self.error = true;
            return None;
        }
        buffer.shrink_to_fit();
        Some(buffer)
    }

    /// Reads until `buffer` holds `size` bytes or ends with `delimiter`.
    fn fill(&mut self, size: u64, delimiter: Option<u8>, buffer: &mut ReadBuffer) -> Stop {
        while (buffer.bytes().len() as u64) < size {
            let spare = buffer.spare(size);
            if spare == 0 {
                return Stop::Limit;
            }
            if let Some(byte) = self.pushed_back.pop() {
                buffer.append(&[byte]);
                if Some(byte) == delimiter {
                    return Stop::Complete;
                }
                continue;
            }
            // The end-of-file indicator stays set until the program clears it (C11 7.21.7.1).
            if self.end {
                return Stop::End;
            }
            match self
                .backing
                .read(|reader| read_available(reader, spare, delimiter, buffer))
            {
                Some(Ok((0, _))) => {
                    self.end = true;
                    return Stop::End;
                }
                Some(Ok((_, false))) => {}
                Some(Ok((_, true))) => return Stop::Complete,
                Some(Err(error)) if error.kind() == ErrorKind::Interrupted => {}
                Some(Err(_)) | None => {
                    self.error = true;
                    return Stop::Error;
                }
            }
        }
        Stop::Complete
    }

    /// `fwrite`: returns the number of bytes written.
    pub fn write(&mut self, bytes: &[u8]) -> u64 {
        self.sync_position();
        let Some(writer) = self.backing.writer() else {
            self.error = true;
            return 0;
        };
        self.written = true;
        let mut done = 0;
        while let Some(rest @ [_, ..]) = bytes.get(done..) {
            match writer.write(rest) {
                Ok(0) => {
                    self.error = true;
                    break;
                }
                Ok(count) => done += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => {
                    self.error = true;
                    break;
                }
            }
        }
        done as u64
    }

    /// Moves the file position from the end of the read buffer to the position of the stream.
    fn sync_position(&mut self) {
        #[cfg(feature = "files")]
        if let Backing::File { file, .. } = &self.backing {
            if !file.buffer().is_empty() || !self.pushed_back.is_empty() {
                // Fails only for files without a position.
                self.seek(0, SEEK_CUR);
            }
        }
    }

    /// `fflush`: flushes written bytes. Returns whether that succeeded.
    pub fn flush(&mut self) -> bool {
        let written = std::mem::take(&mut self.written);
        let flushed = match self.backing.writer() {
            Some(writer) if written => writer.flush().is_ok(),
            _ => true,
        };
        self.error |= !flushed;
        flushed
    }

    /// `ungetc`: returns the pushed-back byte, or nothing.
    pub fn unget(&mut self, character: i32) -> Option<u8> {
        let full = self.pushed_back.len() == MAX_PUSHED_BACK;
        if character == -1 || full || !self.backing.reads() {
            return None;
        }
        let byte = character as u8;
        self.pushed_back.push(byte);
        self.end = false;
        Some(byte)
    }

    /// `fseek`: returns whether it succeeded.
    pub fn seek(&mut self, offset: i64, whence: i32) -> bool {
        #[cfg(feature = "files")]
        if let Backing::File { file, .. } = &mut self.backing {
            let before = self.pushed_back.len() as i64;
            let to = match whence {
                SEEK_SET => u64::try_from(offset).ok().map(SeekFrom::Start),
                SEEK_CUR => offset.checked_sub(before).map(SeekFrom::Current),
                SEEK_END => Some(SeekFrom::End(offset)),
                _ => None,
            };
            let Some(Ok(_)) = to.map(|to| file.seek(to)) else {
                return false;
            };
            self.pushed_back.clear();
            self.end = false;
            return true;
        }
        let _ = (offset, whence);
        false
    }

    /// `ftell`: returns the position, if the stream has one.
    pub fn position(&mut self) -> Option<u64> {
        #[cfg(feature = "files")]
        if let Backing::File { file, .. } = &mut self.backing {
            let position = file.stream_position().ok()?;
            return position.checked_sub(self.pushed_back.len() as u64);
        }
        None
    }

    /// `fclose`: returns whether all bytes were written.
    pub fn close(&mut self) -> bool {
        let flushed = self.flush();
        self.backing = Backing::Closed;
        self.pushed_back.clear();
        flushed
    }
}

// Values of LLVM's libc, which may differ from those of the host.
#[cfg(feature = "files")]
const SEEK_SET: i32 = 0;
#[cfg(feature = "files")]
const SEEK_CUR: i32 = 1;
#[cfg(feature = "files")]
const SEEK_END: i32 = 2;

/// Reads available bytes, up to and including the delimiter. Returns their number, and whether the delimiter
/// was read.
fn read_available(
    reader: &mut dyn BufRead,
    limit: usize,
    delimiter: Option<u8>,
    buffer: &mut ReadBuffer,
) -> io::Result<(usize, bool)> {
    let available = reader.fill_buf()?;
    let available = &available[..available.len().min(limit)];
    let position =
        delimiter.and_then(|delimiter| available.iter().position(|byte| *byte == delimiter));
    let count = position.map_or(available.len(), |position| position + 1);
    buffer.append(&available[..count]);
    reader.consume(count);
    Ok((count, position.is_some()))
}
