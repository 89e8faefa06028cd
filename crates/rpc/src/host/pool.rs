//! Threads for what may take its time and belongs to no stream.

use std::sync::{Mutex, PoisonError};

use crate::server::{Fault, Strand};

/// Threads that wait for more to do.
const KEPT: usize = 8;

/// As many threads as there are jobs at the same time.
#[derive(Default)]
pub(crate) struct Pool(Mutex<Vec<Strand>>);

impl Pool {
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
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
