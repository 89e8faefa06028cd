//! Work that may block: done by threads of its own, while the server goes on.

use std::boxed::Box;
use std::future::Future;
use std::pin::Pin;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;

use super::Fault;

/// A thread that does one thing after the other, such as what is asked of one file.
///
/// The thread begins with the first job. It ends with the last one after the strand was dropped; nobody
/// waits for a job that blocks for ever.
///
/// ```
/// use std::sync::Arc;
///
/// use gpurpc::server::{Handlers, Strand};
///
/// # fn main() -> Result<(), gpurpc::Error> {
/// let mut handlers = Handlers::new();
/// // One for all calls, which are done in their order; a strand of each call makes a thread for each.
/// let strand = Arc::new(Strand::default());
/// handlers.talk(0x7800_0002, move |mut port| {
///     let strand = Arc::clone(&strand);
///     async move {
///         let (lanes, texts) = (port.lanes(), port.recv_n().await?);
///         let sizes = strand.run(move || {
///             // What may take its time, such as a file, is asked here.
///             let size = |lane| texts.get(lane).map_or(0, <[u8]>::len);
///             lanes.map(|lane| (lane, size(lane) as u64)).collect::<Vec<_>>()
///         });
///         let sizes = sizes.await?;
///         port.send(|packets| {
///             for (lane, size) in sizes {
///                 packets.set_word(lane, 0, size);
///             }
///         })
///         .await;
///         Ok(port)
///     }
/// })?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct Strand {
    jobs: Mutex<Option<Sender<Job>>>,
}

type Job = Box<dyn FnOnce() + Send>;

impl Strand {
    /// Has something done after all that was asked before, and waits for the result.
    ///
    /// # Errors
    ///
    /// [`Fault::Handler`] if the job panics, or there can be no thread.
    pub fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> Outcome<T> {
        let place = Arc::new(Place(Mutex::new(Held::Nothing(None))));
        let result = Filled(Some(Arc::clone(&place)));
        self.ask(Box::new(move || result.fill(job())));
        Outcome(place)
    }

    /// A job that cannot be asked for is dropped, which its future hears of.
    fn ask(&self, job: Job) {
        let mut jobs = lock(&self.jobs);
        let sender = match &*jobs {
            Some(sender) => sender,
            None => {
                let (sender, asked) = channel::<Job>();
                let work = move || {
                    for job in asked {
                        // What a job that panics held is dropped with it.
                        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(job));
                    }
                };
                // Without a name it would have that of the thread that serves.
                let named = thread::Builder::new().name("gpurpc".into());
                if named.spawn(work).is_err() {
                    return;
                }
                jobs.insert(sender)
            }
        };
        // The thread is there for as long as this end is.
        let _ = sender.send(job);
    }
}

/// Where a result is put.
#[derive(Debug)]
struct Place<T>(Mutex<Held<T>>);

#[derive(Debug)]
enum Held<T> {
    Nothing(Option<Waker>),
    Result(T),
    /// There will be none.
    Lost,
}

/// The end that puts a result there, or drops it.
struct Filled<T>(Option<Arc<Place<T>>>);

impl<T> Filled<T> {
    fn fill(mut self, result: T) {
        if let Some(place) = self.0.take() {
            place.put(Held::Result(result));
        }
    }
}

impl<T> Drop for Filled<T> {
    fn drop(&mut self) {
        if let Some(place) = self.0.take() {
            place.put(Held::Lost);
        }
    }
}

impl<T> Place<T> {
    fn put(&self, held: Held<T>) {
        let before = std::mem::replace(&mut *lock(&self.0), held);
        if let Held::Nothing(Some(waker)) = before {
            waker.wake();
        }
    }
}

/// What comes of a job.
#[derive(Debug)]
pub struct Outcome<T>(Arc<Place<T>>);

impl<T> Future for Outcome<T> {
    type Output = Result<T, Fault>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut held = lock(&self.0.0);
        match std::mem::replace(&mut *held, Held::Lost) {
            Held::Nothing(_) => {
                *held = Held::Nothing(Some(context.waker().clone()));
                Poll::Pending
            }
            Held::Result(result) => Poll::Ready(Ok(result)),
            Held::Lost => Poll::Ready(Err(Fault::Handler)),
        }
    }
}

/// Nothing that is locked here is left half-done by a panic.
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
    fn jobs_are_done_in_turn() {
        let strand = Strand::default();
        let (sender, done) = channel();
        let other = sender.clone();
        let first = strand.run(move || sender.send(1).is_ok());
        let second = strand.run(move || other.send(2).is_ok());
        assert_eq!(wait(second), Ok(true));
        assert_eq!(wait(first), Ok(true));
        assert_eq!(done.iter().collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn a_panic_is_a_fault_and_no_end() {
        let strand = Strand::default();
        assert_eq!(
            wait(strand.run(|| panic!("as asked"))),
            Err::<(), _>(Fault::Handler)
        );
        assert_eq!(wait(strand.run(|| 5)), Ok(5));
    }
}
