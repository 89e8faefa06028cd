//! All streams of a program, by what it has in place of a `FILE *`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::stream::{Backing, Stream};
use crate::server::{Fault, Strand};

/// What the client says for a standard stream, in the low bits of a `FILE *` (LLVM's
/// `libc/src/stdio/gpu/file.h`); the others are whatever its pointer has.
pub(crate) const STDIN: u64 = 1;
pub(crate) const STDOUT: u64 = 2;
pub(crate) const STDERR: u64 = 3;
const STANDARD: u64 = 3;

/// A stream, and the thread that does what is asked of it, one thing after the other.
struct Served {
    strand: Strand,
    stream: Arc<Mutex<Stream>>,
    _slot: Option<Slot>,
}

impl Served {
    fn standard(backing: Backing) -> Arc<Self> {
        Arc::new(Self {
            strand: Strand::default(),
            stream: Arc::new(Mutex::new(Stream::new(backing))),
            _slot: None,
        })
    }
}

/// The streams.
pub(crate) struct Streams {
    standard: [Arc<Served>; 3],
    open: Mutex<Open>,
    slots: Arc<AtomicUsize>,
    most: usize,
}

#[derive(Default)]
struct Open {
    /// The number that was given out last. None is given out twice, so that a stream that was closed is
    /// never taken for another one.
    last: u64,
    streams: BTreeMap<u64, Arc<Served>>,
}

/// A place for a stream that is open, or about to be.
pub(crate) struct Slot(Arc<AtomicUsize>);

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Streams {
    /// The standard streams, and at most `most` others.
    pub fn new(input: Backing, output: Backing, error: Backing, most: usize) -> Self {
        Self {
            standard: [input, output, error].map(Served::standard),
            open: Mutex::default(),
            slots: Arc::default(),
            most,
        }
    }

    /// A place for one more stream, unless all are taken.
    pub fn slot(&self) -> Option<Slot> {
        let more = |taken: usize| (taken < self.most).then_some(taken + 1);
        let slots = &self.slots;
        let taken = slots.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        taken.ok().map(|_| Slot(Arc::clone(slots)))
    }

    /// Adds a stream that was opened by this strand. Gives what the program has in place of a `FILE *`:
    /// not null, and the two low bits are zero.
    pub fn add(&self, backing: Backing, strand: Strand, slot: Slot) -> u64 {
        let served = Served {
            strand,
            stream: Arc::new(Mutex::new(Stream::new(backing))),
            _slot: Some(slot),
        };
        let mut open = lock(&self.open);
        open.last += 1;
        let handle = open.last << 2;
        open.streams.insert(handle, Arc::new(served));
        handle
    }

    /// Takes a stream out, and has it closed when all that was asked before is done. Gives whether all of
    /// it was written; nothing if there is no such stream, or it is a standard one.
    pub async fn close(&self, handle: u64) -> Result<Option<bool>, Fault> {
        let Some(served) = lock(&self.open).streams.remove(&handle) else {
            return Ok(None);
        };
        let stream = Arc::clone(&served.stream);
        let closed = served.strand.run(move || lock(&stream).close());
        closed.await.map(Some)
    }

    /// Has something done by the stream of each lane: for lanes with the same stream in rising order, for
    /// others at the same time. What is written is flushed then. Gives nothing for a lane without a stream.
    pub async fn each<A: Send + 'static>(
        &self,
        handles: impl IntoIterator<Item = (u32, u64)>,
        work: impl Fn(u32, &mut Stream) -> A + Send + Sync + 'static,
    ) -> Result<BTreeMap<u32, A>, Fault> {
        let mut lanes = BTreeMap::<u64, Vec<u32>>::new();
        for (lane, handle) in handles {
            let which = match handle & STANDARD {
                0 => handle,
                standard => standard,
            };
            lanes.entry(which).or_default().push(lane);
        }
        let work = Arc::new(work);
        let mut asked = Vec::new();
        for (which, lanes) in lanes {
            let Some(served) = self.get(which) else {
                continue;
            };
            let (stream, work) = (Arc::clone(&served.stream), Arc::clone(&work));
            let answers = served.strand.run(move || {
                let mut stream = lock(&stream);
                let answer = |lane| (lane, work(lane, &mut stream));
                let answers: Vec<_> = lanes.into_iter().map(answer).collect();
                stream.flush();
                answers
            });
            asked.push((served, answers));
        }
        let mut answers = BTreeMap::new();
        for (_served, outcome) in asked {
            answers.extend(outcome.await?);
        }
        Ok(answers)
    }

    fn get(&self, which: u64) -> Option<Arc<Served>> {
        match which {
            STDIN..=STDERR => Some(Arc::clone(&self.standard[which as usize - 1])),
            _ => lock(&self.open).streams.get(&which).cloned(),
        }
    }
}

/// A stream is in order after a panic of what it reads from.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
