//! One stream, as C has it: an end, an error, a position, bytes that were given back.

#[cfg(feature = "files")]
use std::fs::File;
use std::io::{self, BufRead, ErrorKind, Write};
#[cfg(feature = "files")]
use std::io::{BufReader, Seek, SeekFrom};

use super::data::Data;

/// The most bytes that are given back at once; C promises one.
const GIVEN_BACK: usize = 16;

/// What bytes come from or go to.
pub(crate) enum Backing {
    /// The process's standard input. Nothing of it is kept here: the process may read on.
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

/// A stream. Only input is buffered: what was written is not kept back.
pub(crate) struct Stream {
    backing: Backing,
    /// The last one is read first.
    given_back: Vec<u8>,
    end: bool,
    error: bool,
    /// Whether something was written that was not flushed.
    written: bool,
}

/// Why a read came to its end.
#[derive(PartialEq, Eq)]
enum Stop {
    /// All that was wanted is there.
    Full,
    /// The end of the stream.
    End,
    /// No more bytes are allowed, or there is no memory for them.
    Room,
    /// An error, which the stream remembers.
    Error,
}

impl Stream {
    pub fn new(backing: Backing) -> Self {
        Self {
            backing,
            given_back: Vec::new(),
            end: false,
            error: false,
            written: false,
        }
    }

    /// Whether a read has met the end.
    pub fn at_end(&self) -> bool {
        self.end
    }

    /// Whether something failed.
    pub fn failed(&self) -> bool {
        self.error
    }

    pub fn clear(&mut self) {
        (self.end, self.error) = (false, false);
    }

    /// As `fread`: all that is wanted, or less at the end and after an error. To be allowed no more is an
    /// error too.
    pub fn read(&mut self, wanted: u64, mut into: Data) -> Data {
        if self.take(wanted, None, &mut into) == Stop::Room {
            self.error = true;
        }
        into.settle();
        into
    }

    /// As `fgets` with an array of `size` bytes: a line with a NUL behind it, or nothing. A line for which
    /// no more room is allowed comes in parts, as one that is longer than the array does.
    pub fn line(&mut self, size: i64, mut into: Data) -> Option<Data> {
        let wanted = u64::try_from(size.checked_sub(1)?).ok()?;
        let stop = self.take(wanted, Some(b'\n'), &mut into);
        let nothing = into.bytes().is_empty();
        match stop {
            Stop::Error => return None,
            Stop::End if nothing => return None,
            Stop::Room if nothing => {
                self.error = true;
                return None;
            }
            _ => {}
        }
        if !into.end_with(0) {
            self.error = true;
            return None;
        }
        into.settle();
        Some(into)
    }

    /// Reads until so many bytes are there, or a byte that ends them.
    fn take(&mut self, wanted: u64, last: Option<u8>, into: &mut Data) -> Stop {
        while (into.bytes().len() as u64) < wanted {
            let room = into.room(wanted);
            if room == 0 {
                return Stop::Room;
            }
            if let Some(byte) = self.given_back.pop() {
                into.put(&[byte]);
                if Some(byte) == last {
                    return Stop::Full;
                }
                continue;
            }
            // Once met, the end is there until the program says otherwise (C11 7.21.7.1).
            if self.end {
                return Stop::End;
            }
            match self.backing.read(|reader| step(reader, room, last, into)) {
                Some(Ok((0, _))) => {
                    self.end = true;
                    return Stop::End;
                }
                Some(Ok((_, false))) => {}
                Some(Ok((_, true))) => return Stop::Full,
                Some(Err(error)) if error.kind() == ErrorKind::Interrupted => {}
                Some(Err(_)) | None => {
                    self.error = true;
                    return Stop::Error;
                }
            }
        }
        Stop::Full
    }

    /// As `fwrite`: how many bytes were written.
    pub fn write(&mut self, bytes: &[u8]) -> u64 {
        self.stop_reading();
        let Some(writer) = self.backing.writer() else {
            self.error = true;
            return 0;
        };
        self.written = true;
        let mut done = 0;
        while let Some(left @ [_, ..]) = bytes.get(done..) {
            match writer.write(left) {
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

    /// What is written goes where reading has come to, not to where the buffer's end is.
    fn stop_reading(&mut self) {
        #[cfg(feature = "files")]
        if let Backing::File { file, .. } = &self.backing {
            if !file.buffer().is_empty() || !self.given_back.is_empty() {
                // What cannot be positioned has no position to be kept.
                self.seek(0, SEEK_CUR);
            }
        }
    }

    /// Hands on what was written, if that was not done. Gives whether it could be.
    pub fn flush(&mut self) -> bool {
        let written = std::mem::take(&mut self.written);
        let flushed = match self.backing.writer() {
            Some(writer) if written => writer.flush().is_ok(),
            _ => true,
        };
        self.error |= !flushed;
        flushed
    }

    /// As `ungetc`: the byte, or nothing.
    pub fn give_back(&mut self, character: i32) -> Option<u8> {
        let full = self.given_back.len() == GIVEN_BACK;
        if character == -1 || full || !self.backing.reads() {
            return None;
        }
        let byte = character as u8;
        self.given_back.push(byte);
        self.end = false;
        Some(byte)
    }

    /// As `fseek`. Gives whether it could be done.
    pub fn seek(&mut self, offset: i64, whence: i32) -> bool {
        #[cfg(feature = "files")]
        if let Backing::File { file, .. } = &mut self.backing {
            let before = self.given_back.len() as i64;
            let to = match whence {
                SEEK_SET => u64::try_from(offset).ok().map(SeekFrom::Start),
                SEEK_CUR => offset.checked_sub(before).map(SeekFrom::Current),
                SEEK_END => Some(SeekFrom::End(offset)),
                _ => None,
            };
            let Some(Ok(_)) = to.map(|to| file.seek(to)) else {
                return false;
            };
            self.given_back.clear();
            self.end = false;
            return true;
        }
        let _ = (offset, whence);
        false
    }

    /// As `ftell`: the position, if there is one.
    pub fn position(&mut self) -> Option<u64> {
        #[cfg(feature = "files")]
        if let Backing::File { file, .. } = &mut self.backing {
            let position = file.stream_position().ok()?;
            return position.checked_sub(self.given_back.len() as u64);
        }
        None
    }

    /// As `fclose`. Gives whether all was written.
    pub fn close(&mut self) -> bool {
        let flushed = self.flush();
        self.backing = Backing::Closed;
        self.given_back.clear();
        flushed
    }
}

// As LLVM's libc has them, whatever the host's are.
#[cfg(feature = "files")]
const SEEK_SET: i32 = 0;
#[cfg(feature = "files")]
const SEEK_CUR: i32 = 1;
#[cfg(feature = "files")]
const SEEK_END: i32 = 2;

/// Takes what there is, up to a byte that ends it. Gives how many bytes, and whether that byte was there.
fn step(
    reader: &mut dyn BufRead,
    room: usize,
    last: Option<u8>,
    into: &mut Data,
) -> io::Result<(usize, bool)> {
    let there = reader.fill_buf()?;
    let there = &there[..there.len().min(room)];
    let at = last.and_then(|last| there.iter().position(|byte| *byte == last));
    let count = at.map_or(there.len(), |at| at + 1);
    into.put(&there[..count]);
    reader.consume(count);
    Ok((count, at.is_some()))
}
