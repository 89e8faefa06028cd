//! Threads for what may take its time and belongs to no stream.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::server::{Fault, Outcome, Strand};

/// Threads that wait for more to do.
const KEPT: usize = 8;
/// Threads for jobs that come to an end by themselves.
const WORKERS: usize = 8;

/// Threads for jobs: some for those that end by themselves, and as many as there are of others at a time.
#[derive(Default)]
pub(crate) struct Pool {
    workers: [Strand; WORKERS],
    next: AtomicUsize,
    idle: Mutex<Vec<Strand>>,
}

impl Pool {
    /// Has something done that waits for nobody. As many warps may ask for it at once as a device has, which
    /// are more than a host should have threads for: it is done in turn.
    pub fn queue<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> Outcome<T> {
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        self.workers[next % WORKERS].run(job)
    }

    /// Has something done that no other job keeps waiting.
    pub async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Fault> {
        let strand = self.idle(|idle| idle.pop()).unwrap_or_default();
        let result = strand.run(job).await;
        self.idle(|idle| {
            if idle.len() < KEPT {
                idle.push(strand);
            }
        });
        result
    }

    fn idle<T>(&self, work: impl FnOnce(&mut Vec<Strand>) -> T) -> T {
        work(&mut self.idle.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::mpsc::channel;
    use std::thread;

    use super::*;

    #[test]
    fn many_jobs_take_few_threads() {
        let pool = Pool::default();
        let (sender, done) = channel();
        let outcomes: Vec<_> = (0..500)
            .map(|_| {
                let sender = sender.clone();
                pool.queue(move || sender.send(thread::current().id()))
            })
            .collect();
        drop(sender);
        let threads: Vec<_> = done.iter().collect();
        assert_eq!(threads.len(), outcomes.len());
        let threads: BTreeSet<_> = threads.iter().map(|id| format!("{id:?}")).collect();
        assert_eq!(threads.len(), WORKERS);
    }
}
