//! Runs blocking work on a worker thread, outside the thread that serves.

use std::boxed::Box;
use std::future::Future;
use std::pin::Pin;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;

use super::fault::Fault;

/// A worker thread that runs jobs in FIFO order, for example all operations on one file.
///
/// The thread starts with the first job. After the executor is dropped it finishes the queued jobs and exits.
/// Dropping does not wait for it, so a job may block indefinitely.
#[derive(Debug, Default)]
pub(crate) struct SerialExecutor {
    jobs: Mutex<Option<Sender<Job>>>,
}

type Job = Box<dyn FnOnce() + Send>;

impl SerialExecutor {
    /// Queues `job` behind all earlier jobs. The future resolves to its result.
    ///
    /// # Errors
    ///
    /// [`Fault::HandlerFailed`] if the job panics or the thread cannot be started.
    pub fn spawn<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> JobFuture<T> {
        let slot = Arc::new(Slot(Mutex::new(SlotState::Pending(None))));
        let sender = SlotSender(Some(Arc::clone(&slot)));
        self.enqueue(Box::new(move || sender.send(job())));
        JobFuture(slot)
    }

    /// Sends `job` to the worker thread, which the first job starts. If the thread cannot be started,
    /// dropping the job completes its future with an error.
    fn enqueue(&self, job: Job) {
        let mut jobs = lock(&self.jobs);
        let sender = match &*jobs {
            Some(sender) => sender,
            None => {
                let (sender, receiver) = channel::<Job>();
                // An unnamed thread would inherit the name of the serving thread.
                let worker = thread::Builder::new().name("gpurpc".into()).spawn(move || {
                    for job in receiver {
                        // A panicking job drops its `SlotSender`, which reports the error.
                        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(job));
                    }
                });
                if worker.is_err() {
                    return;
                }
                jobs.insert(sender)
            }
        };
        // Cannot fail: the worker receives until this sender is dropped.
        let _ = sender.send(job);
    }
}

/// Oneshot channel between a job and its [`JobFuture`].
#[derive(Debug)]
struct Slot<T>(Mutex<SlotState<T>>);

#[derive(Debug)]
enum SlotState<T> {
    Pending(Option<Waker>),
    Ready(T),
    /// The sender was dropped without a result.
    Closed,
}

/// Sending half of a [`Slot`]. Closes the slot if dropped unused.
struct SlotSender<T>(Option<Arc<Slot<T>>>);

impl<T> SlotSender<T> {
    fn send(mut self, result: T) {
        if let Some(slot) = self.0.take() {
            slot.complete(SlotState::Ready(result));
        }
    }
}

impl<T> Drop for SlotSender<T> {
    fn drop(&mut self) {
        if let Some(slot) = self.0.take() {
            slot.complete(SlotState::Closed);
        }
    }
}

impl<T> Slot<T> {
    fn complete(&self, state: SlotState<T>) {
        let before = std::mem::replace(&mut *lock(&self.0), state);
        if let SlotState::Pending(Some(waker)) = before {
            waker.wake();
        }
    }
}

/// Result of a job, returned by [`SerialExecutor::spawn`].
#[derive(Debug)]
pub(crate) struct JobFuture<T>(Arc<Slot<T>>);

impl<T> Future for JobFuture<T> {
    type Output = Result<T, Fault>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = lock(&self.0.0);
        match std::mem::replace(&mut *state, SlotState::Closed) {
            SlotState::Pending(_) => {
                *state = SlotState::Pending(Some(context.waker().clone()));
                Poll::Pending
            }
            SlotState::Ready(result) => Poll::Ready(Ok(result)),
            SlotState::Closed => Poll::Ready(Err(Fault::HandlerFailed)),
        }
    }
}

/// Locks `mutex`, ignoring poison: no panic leaves the contents inconsistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::task::Wake;

    use super::*;

    struct Unpark(thread::Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    fn wait<T>(future: impl Future<Output = T>) -> T {
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut future = Box::pin(future);
        loop {
            match future.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(value) => return value,
                Poll::Pending => thread::park(),
            }
        }
    }

    #[test]
    fn spawn_runs_jobs_in_order() {
        let executor = SerialExecutor::default();
        let (sender, done) = channel();
        let second_sender = sender.clone();
        let first = executor.spawn(move || sender.send(1).is_ok());
        let second = executor.spawn(move || second_sender.send(2).is_ok());
        assert_eq!(wait(second), Ok(true));
        assert_eq!(wait(first), Ok(true));
        assert_eq!(done.iter().collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn spawn_continues_after_panic() {
        let executor = SerialExecutor::default();
        assert_eq!(
            wait(executor.spawn(|| panic!("as asked"))),
            Err::<(), _>(Fault::HandlerFailed)
        );
        assert_eq!(wait(executor.spawn(|| 5)), Ok(5));
    }
}
