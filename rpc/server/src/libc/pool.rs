//! Threads for blocking work that belongs to no stream.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::server::{Fault, JobFuture, SerialExecutor};

/// Maximum number of idle threads that are kept.
const MAX_IDLE: usize = 8;
/// Number of threads for jobs of bounded duration.
const WORKERS: usize = 8;

/// Threads for jobs: a fixed number for jobs of bounded duration, and one for each other job.
#[derive(Default)]
pub(crate) struct Pool {
    workers: [SerialExecutor; WORKERS],
    next: AtomicUsize,
    idle: Mutex<Vec<SerialExecutor>>,
}

impl Pool {
    /// Queues a job that does not block indefinitely. All warps of a device may request one at the same time,
    /// which are more than a host should have threads for.
    pub fn spawn<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> JobFuture<T> {
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        self.workers[next % WORKERS].spawn(job)
    }

    /// Runs a job that may block indefinitely on a separate thread.
    pub async fn spawn_blocking<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Fault> {
        let executor = self.idle(|idle| idle.pop()).unwrap_or_default();
        let result = executor.spawn(job).await;
        self.idle(|idle| {
            if idle.len() < MAX_IDLE {
                idle.push(executor);
            }
        });
        result
    }

    fn idle<T>(&self, work: impl FnOnce(&mut Vec<SerialExecutor>) -> T) -> T {
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
                pool.spawn(move || sender.send(thread::current().id()))
            })
            .collect();
        drop(sender);
        let threads: Vec<_> = done.iter().collect();
        assert_eq!(threads.len(), outcomes.len());
        let threads: BTreeSet<_> = threads.iter().map(|id| format!("{id:?}")).collect();
        assert_eq!(threads.len(), WORKERS);
    }
}
