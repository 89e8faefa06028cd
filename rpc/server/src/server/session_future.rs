//! Sessions of `async` handlers.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use super::fault::Fault;
use super::port::Port;
use super::session::{OpenCall, Session, Step};

/// Calls that a function starts as futures. Each takes the place of the one before, in the same memory.
pub(crate) struct SessionFuture<H, F> {
    handler: Arc<H>,
    future: Pin<Box<Option<F>>>,
}

impl<H, F> SessionFuture<H, F> {
    pub fn new(handler: Arc<H>) -> Self {
        Self {
            handler,
            future: Box::pin(None),
        }
    }
}

impl<H, F> Session for SessionFuture<H, F>
where
    H: Fn(Port) -> F + Send + Sync,
    F: Future<Output = Result<Port, Fault>> + Send,
{
    fn step(&mut self, call: &mut OpenCall<'_>) -> Result<Step, Fault> {
        if self.future.is_none() {
            let port = Port::new(
                call.handshake.clone(),
                call.opcode(),
                Arc::clone(call.device),
            );
            self.future.as_mut().set(Some((self.handler)(port)));
        }
        let Some(future) = self.future.as_mut().as_pin_mut() else {
            return Err(Fault::HandlerFailed);
        };
        match future.poll(&mut Context::from_waker(call.waker())) {
            Poll::Pending => {
                let state = call.device.port(call.index());
                call.handshake.set_state(state.outbox, state.owns);
                Ok(Step::Pending)
            }
            // A handler may have swapped its port for that of another call.
            Poll::Ready(Ok(port)) if port.is_port_of(call.device, call.index()) => {
                *call.handshake = port.into_handshake();
                Ok(Step::Done)
            }
            Poll::Ready(Ok(_)) => Err(Fault::HandlerFailed),
            Poll::Ready(Err(fault)) => Err(fault),
        }
    }

    fn end(&mut self) {
        self.future.as_mut().set(None);
    }
}
