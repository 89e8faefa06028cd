//! Deflate on several threads: blocks are compressed at the same time, each with the bytes before it as its dictionary,
//! and written in their order. The result is one stream (RFC 1951), as pigz writes it.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::thread::{Builder, JoinHandle};

use flate2::{Compress, Compression, FlushCompress, Status};

/// Size of a block: a dictionary fills in a 32nd of it, and each job holds two or three.
const BLOCK_SIZE: usize = 1 << 20;

/// Distance up to which deflate refers back (RFC 1951, 2).
pub(super) const WINDOW_SIZE: usize = 32 << 10;

/// Compresses what is written.
pub(super) struct Encoder<'a> {
    out: &'a mut dyn Write,
    pub(super) jobs: NonZeroUsize,
    dictionary: Vec<u8>,
    block: Vec<u8>,
    /// Blocks that are being compressed, in their order.
    running: VecDeque<JoinHandle<io::Result<Vec<u8>>>>,
}

impl<'a> Encoder<'a> {
    /// A stream in `out`, compressed by at most `jobs` threads.
    pub(super) fn new(out: &'a mut dyn Write, jobs: NonZeroUsize) -> Self {
        Self {
            out,
            jobs,
            dictionary: Vec::new(),
            block: Vec::new(),
            running: VecDeque::new(),
        }
    }

    /// Ends the stream.
    pub(super) fn finish(mut self) -> io::Result<()> {
        let last = deflate(&self.dictionary, &self.block, FlushCompress::Finish)?;
        self.write_running()?;
        self.out.write_all(&last)
    }

    /// Writes what is there up to a whole byte. The caller writes blocks to the result, whose contents end in `window`.
    pub(super) fn interrupt(&mut self, window: Vec<u8>) -> io::Result<&mut dyn Write> {
        if !self.block.is_empty() {
            self.compress_block()?;
        }
        self.write_running()?;
        self.dictionary = window;
        Ok(self.out)
    }

    fn write_running(&mut self) -> io::Result<()> {
        while let Some(job) = self.running.pop_front() {
            self.out.write_all(&result(job)?)?;
        }
        Ok(())
    }

    fn compress_block(&mut self) -> io::Result<()> {
        if self.running.len() >= self.jobs.get()
            && let Some(job) = self.running.pop_front()
        {
            self.out.write_all(&result(job)?)?;
        }
        let end = self.block.len().saturating_sub(WINDOW_SIZE);
        let next_dictionary = self.block[end..].to_vec();
        let dictionary = std::mem::replace(&mut self.dictionary, next_dictionary);
        let block = std::mem::take(&mut self.block);
        let job = Builder::new()
            .name("deflate".to_owned())
            .spawn(move || deflate(&dictionary, &block, FlushCompress::Sync))?;
        self.running.push_back(job);
        Ok(())
    }
}

impl Write for Encoder<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.block.len() == BLOCK_SIZE {
            self.compress_block()?;
        }
        let count = bytes.len().min(BLOCK_SIZE - self.block.len());
        self.block.extend_from_slice(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn result(job: JoinHandle<io::Result<Vec<u8>>>) -> io::Result<Vec<u8>> {
    job.join().unwrap_or_else(|panic| resume_unwind(panic))
}

/// A part of a stream, up to a whole byte.
fn deflate(dictionary: &[u8], block: &[u8], flush: FlushCompress) -> io::Result<Vec<u8>> {
    let mut compress = Compress::new(Compression::default(), false);
    if !dictionary.is_empty() {
        compress.set_dictionary(dictionary)?;
    }
    let mut out = Vec::with_capacity(block.len() / 2 + 64);
    let mut rest = block;
    loop {
        let before = compress.total_in();
        let status = compress.compress_vec(rest, &mut out, flush)?;
        let count = usize::try_from(compress.total_in() - before).map_err(io::Error::other)?;
        rest = &rest[count..];
        // zlib's manual: there may be more output exactly if the buffer is full.
        let is_complete = match flush {
            FlushCompress::Finish => status == Status::StreamEnd,
            _ => rest.is_empty() && out.len() < out.capacity(),
        };
        if is_complete {
            return Ok(out);
        }
        out.reserve(out.len() / 2 + 64);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::DeflateDecoder;

    use super::*;

    /// Text of a generator of random numbers (Numerical Recipes' LCG): compressible, and without a period.
    fn text(size: usize) -> Vec<u8> {
        let mut state = 1_u32;
        std::iter::from_fn(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            Some(b"eeeetaoins"[(state >> 24) as usize % 10])
        })
        .take(size)
        .collect()
    }

    #[test]
    fn streams_have_what_was_written() {
        for size in [
            0,
            1,
            WINDOW_SIZE + 1,
            BLOCK_SIZE - 1,
            BLOCK_SIZE,
            BLOCK_SIZE + 1,
            2 * BLOCK_SIZE + 5,
        ] {
            let text = text(size);
            for jobs in [1, 3] {
                let mut compressed = Vec::new();
                let jobs = NonZeroUsize::new(jobs).unwrap();
                let mut encoder = Encoder::new(&mut compressed, jobs);
                encoder.write_all(&text).unwrap();
                encoder.finish().unwrap();
                let mut unpacked = Vec::new();
                let mut decoder = DeflateDecoder::new(&compressed[..]);
                decoder.read_to_end(&mut unpacked).unwrap();
                assert!(unpacked == text, "{size}");
                assert_eq!(decoder.total_in(), compressed.len() as u64, "{size}");
            }
        }
    }

    /// Blocks with dictionaries are as small as one stream, but for a few bytes each.
    #[test]
    fn blocks_cost_little() {
        let text = text(3 * BLOCK_SIZE);
        let mut blocks = Vec::new();
        let mut encoder = Encoder::new(&mut blocks, NonZeroUsize::MIN);
        encoder.write_all(&text).unwrap();
        encoder.finish().unwrap();
        let mut stream = flate2::write::DeflateEncoder::new(Vec::new(), Compression::default());
        stream.write_all(&text).unwrap();
        let stream = stream.finish().unwrap();
        assert!(blocks.len() * 1000 <= stream.len() * 1001);
    }

    #[test]
    fn what_cannot_be_written_ends_the_stream() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut full = Full;
        let mut encoder = Encoder::new(&mut full, NonZeroUsize::MIN);
        let error = encoder.write_all(&text(4 * BLOCK_SIZE)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}
