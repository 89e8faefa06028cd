//! Streams of a program, by their `FILE *` handles.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::stream::{Backing, Stream};
use crate::server::{Fault, SerialExecutor};

/// Handle of a standard stream, in the low bits of a `FILE *` (LLVM's `libc/src/stdio/gpu/file.h`); the other
/// bits are those of the client's pointer.
pub(crate) const STDIN: u64 = 1;
pub(crate) const STDOUT: u64 = 2;
pub(crate) const STDERR: u64 = 3;
const STANDARD: u64 = 3;

/// A stream, and the thread that runs its operations in order.
struct OpenStream {
    executor: SerialExecutor,
    stream: Arc<Mutex<Stream>>,
    _permit: Option<Permit>,
}

impl OpenStream {
    fn standard(backing: Backing) -> Arc<Self> {
        Arc::new(Self {
            executor: SerialExecutor::default(),
            stream: Arc::new(Mutex::new(Stream::new(backing))),
            _permit: None,
        })
    }
}

/// All streams of a program.
pub(crate) struct Streams {
    standard: [Arc<OpenStream>; 3],
    files: Mutex<Files>,
    permits: Arc<AtomicUsize>,
    max_files: usize,
}

#[derive(Default)]
struct Files {
    /// Number of the last handle. Numbers are never reused, so that a closed stream is never mistaken for
    /// another one.
    last: u64,
    by_handle: BTreeMap<u64, Arc<OpenStream>>,
}

/// Permission to have one more file open. Counted until it is dropped.
pub(crate) struct Permit(Arc<AtomicUsize>);

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Streams {
    /// The standard streams, and at most `max_files` files.
    pub fn new(input: Backing, output: Backing, error: Backing, max_files: usize) -> Self {
        Self {
            standard: [input, output, error].map(OpenStream::standard),
            files: Mutex::default(),
            permits: Arc::default(),
            max_files,
        }
    }

    /// Acquires permission to open a file, unless the maximum is reached.
    pub fn try_acquire(&self) -> Option<Permit> {
        self.permits
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                (used < self.max_files).then_some(used + 1)
            })
            .ok()
            .map(|_| Permit(Arc::clone(&self.permits)))
    }

    /// Adds a file that was opened on this executor. Returns its `FILE *` handle: not null, and with two low
    /// bits of zero.
    pub fn add(&self, backing: Backing, executor: SerialExecutor, permit: Permit) -> u64 {
        let file = OpenStream {
            executor,
            stream: Arc::new(Mutex::new(Stream::new(backing))),
            _permit: Some(permit),
        };
        let mut files = lock(&self.files);
        files.last += 1;
        let handle = files.last << 2;
        files.by_handle.insert(handle, Arc::new(file));
        handle
    }

    /// Removes a file and closes it after its queued operations. Returns whether all bytes were written;
    /// nothing if the handle is unknown or that of a standard stream.
    pub async fn close(&self, handle: u64) -> Result<Option<bool>, Fault> {
        let Some(file) = lock(&self.files).by_handle.remove(&handle) else {
            return Ok(None);
        };
        let stream = Arc::clone(&file.stream);
        let job = file.executor.spawn(move || lock(&stream).close());
        job.await.map(Some)
    }

    /// Runs `work` on the stream of each lane: for lanes with the same stream in ascending order, for others
    /// concurrently. Written bytes are flushed afterwards. Lanes without a stream are missing in the result.
    pub async fn for_each_lane<A: Send + 'static>(
        &self,
        handles: impl IntoIterator<Item = (u32, u64)>,
        work: impl Fn(u32, &mut Stream) -> A + Send + Sync + 'static,
    ) -> Result<BTreeMap<u32, A>, Fault> {
        let mut lanes = BTreeMap::<u64, Vec<u32>>::new();
        for (lane, handle) in handles {
            let handle = match handle & STANDARD {
                0 => handle,
                standard => standard,
            };
            lanes.entry(handle).or_default().push(lane);
        }
        let work = Arc::new(work);
        let mut jobs = Vec::new();
        for (handle, lanes) in lanes {
            let Some(open) = self.get(handle) else {
                continue;
            };
            let (stream, work) = (Arc::clone(&open.stream), Arc::clone(&work));
            let job = open.executor.spawn(move || {
                let mut stream = lock(&stream);
                let answers: Vec<_> = lanes
                    .into_iter()
                    .map(|lane| (lane, work(lane, &mut stream)))
                    .collect();
                stream.flush();
                answers
            });
            jobs.push((open, job));
        }
        let mut answers = BTreeMap::new();
        for (_open, job) in jobs {
            answers.extend(job.await?);
        }
        Ok(answers)
    }

    fn get(&self, handle: u64) -> Option<Arc<OpenStream>> {
        match handle {
            STDIN..=STDERR => Some(Arc::clone(&self.standard[handle as usize - 1])),
            _ => lock(&self.files).by_handle.get(&handle).cloned(),
        }
    }
}

/// Locks `mutex`, ignoring poison: a stream is consistent after a panic of its reader.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
