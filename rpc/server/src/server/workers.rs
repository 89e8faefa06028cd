//! Worker threads of blocking handlers.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::vec::Vec;

use super::fault::Fault;
use super::serial_executor::{JobFuture, SerialExecutor};

/// Waits for a job on this thread.
pub(crate) fn block_on<T>(mut job: JobFuture<T>) -> Result<T, Fault> {
    struct Unpark(Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        match Pin::new(&mut job).poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(result) => return result,
            Poll::Pending => thread::park(),
        }
    }
}

/// Maximum number of idle worker threads of a handler.
const MAX_IDLE: usize = 8;

/// Idle worker threads of a handler.
#[derive(Default)]
pub(crate) struct Workers(Mutex<Vec<SerialExecutor>>);

impl Workers {
    pub fn get(&self) -> SerialExecutor {
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        idle.pop().unwrap_or_default()
    }

    pub fn put(&self, worker: SerialExecutor) {
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < MAX_IDLE {
            idle.push(worker);
        }
    }
}
