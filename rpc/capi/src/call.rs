//! `gpurpc_port_t`: an open call with a queue of operations.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use gpurpc::server::{
    Budget, Buffer, Fault, JobFuture, Messages, OpenCall, RecvN, SendN, SerialExecutor, Session,
    Step,
};

use crate::callback::{
    Bytes, CDevice, Callback, PlainCallback, PortCallback, RecvNCallback, SendNCallback,
};
use crate::messages::aligned_messages;

/// `gpurpc_opcode_callback_ty`.
pub type OpcodeCallback = unsafe extern "C" fn(port: *mut Call, data: *mut c_void);

/// A queued operation.
#[derive(Clone, Copy)]
pub enum Operation {
    Recv(Option<Callback<PortCallback>>),
    Send(Option<Callback<PortCallback>>),
    RecvAndSend(Option<Callback<PortCallback>>),
    RecvN(Callback<RecvNCallback>),
    SendN(Callback<SendNCallback>),
    OnSent(Callback<PlainCallback>),
    RunBlocking(Callback<PlainCallback>),
}

/// An open call.
pub struct Call {
    pub(crate) device: CDevice,
    pub(crate) opcode: u32,
    pub(crate) mask: u64,
    budget: Arc<Budget>,
    has_failed: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Operation>,
    blocks: Vec<Buffer>,
    close_callbacks: Vec<Callback<PlainCallback>>,
}

impl Call {
    /// Queues an operation.
    pub(crate) fn queue(&self, operation: Operation) {
        self.state().queue.push_back(operation);
    }

    /// Ends the call without an answer.
    pub(crate) fn fail(&self) {
        self.has_failed.store(true, Ordering::Relaxed);
    }

    /// Registers a function that is called when the call has ended.
    pub(crate) fn on_close(&self, callback: Callback<PlainCallback>) {
        self.state().close_callbacks.push(callback);
    }

    /// Allocates memory that is released with the call.
    pub(crate) fn alloc(&self, size: usize) -> Result<*mut u8, Fault> {
        let block = self.budget.allocate(size)?;
        let start = block.as_ptr();
        self.state().blocks.push(block);
        Ok(start)
    }

    /// Returns a fault if a callback has called `gpurpc_port_fail`.
    fn check_failed(&self) -> Result<(), Fault> {
        // Relaxed: a worker's store happens before the wake of the call.
        if self.has_failed.load(Ordering::Relaxed) {
            Err(Fault::Other("a callback called gpurpc_port_fail"))
        } else {
            Ok(())
        }
    }

    fn next_operation(&self) -> Option<Operation> {
        self.state().queue.pop_front()
    }

    /// Passes messages to a callback, as aligned copies that are released with the call.
    fn deliver(&self, received: Messages, callback: Callback<RecvNCallback>) -> Result<(), Fault> {
        let (messages, sizes) = aligned_messages(received, |size| self.alloc(size))?;
        callback.receive(&messages, &sizes);
        Ok(())
    }

    /// Locks the state. Never held while a callback runs, because it may queue operations.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls the functions for messages that are not sent, and for the end of the call, then releases its memory. Operations may use it again.
    fn end(&mut self) {
        let state = self.state.get_mut();
        let state = state.unwrap_or_else(PoisonError::into_inner);
        for operation in state.queue.drain(..) {
            if let Operation::OnSent(callback) = operation {
                callback.call();
            }
        }
        while let Some(callback) = state.close_callbacks.pop() {
            callback.call();
        }
        state.blocks.clear();
        *self.has_failed.get_mut() = false;
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.end();
    }
}

/// Serves the calls of an opcode on a port: runs queued operations in order until none is left.
pub struct QueuedCalls {
    device: CDevice,
    callback: Callback<OpcodeCallback>,
    /// Pinned by the `Arc`, because the program knows its address. Kept for the next call.
    call: Option<Arc<Call>>,
    /// Whether the callback was called for this call.
    has_begun: bool,
    queue: Queue,
}

/// Runs the operations of a call.
struct Queue {
    in_place: bool,
    /// Operation that waits.
    current: Option<Operation>,
    /// State of an operation that waits several times.
    progress: Option<Progress>,
    /// Starts its thread with the first job.
    executor: Option<SerialExecutor>,
}

enum Progress {
    RecvN(Box<RecvN>),
    SendN(Box<(SendN, [Bytes; 64])>),
    RunBlocking(JobFuture<()>),
}

impl QueuedCalls {
    pub fn new(device: CDevice, callback: Callback<OpcodeCallback>, in_place: bool) -> Self {
        Self {
            device,
            callback,
            call: None,
            has_begun: false,
            queue: Queue {
                in_place,
                current: None,
                progress: None,
                executor: None,
            },
        }
    }

    /// Begins a call: the callback queues operations.
    fn begin(&mut self, open: &OpenCall<'_>) {
        self.has_begun = true;
        let call = match self.call.as_mut().and_then(Arc::get_mut) {
            Some(call) => {
                (call.opcode, call.mask) = (open.opcode(), open.mask());
                &*call
            }
            None => self.call.insert(Arc::new(Call {
                device: self.device,
                opcode: open.opcode(),
                mask: open.mask(),
                budget: Arc::clone(open.budget()),
                has_failed: AtomicBool::new(false),
                state: Mutex::default(),
            })),
        };
        let (function, data) = self.callback.parts();
        // SAFETY: the function is as the header requires; the call exists until it returns.
        unsafe { function(std::ptr::from_ref(call).cast_mut(), data) }
    }
}

impl Queue {
    /// Runs operations until one waits.
    fn run(&mut self, call: &Arc<Call>, open: &mut OpenCall<'_>) -> Result<Step, Fault> {
        let mut next = self.current.take();
        loop {
            let operation = match next.take() {
                Some(operation) => operation,
                None => match call.next_operation() {
                    Some(operation) => operation,
                    None => return Ok(Step::Done),
                },
            };
            let is_done = match operation {
                Operation::Recv(callback) => self.recv(open, callback),
                Operation::Send(callback) => self.send(open, callback),
                Operation::RecvAndSend(callback) => {
                    let received = self.recv(open, callback);
                    if received {
                        call.check_failed()?;
                        open.poll_send(|_| {});
                        continue;
                    }
                    false
                }
                Operation::RecvN(callback) => self.recv_n(call, open, callback)?,
                Operation::SendN(callback) => self.send_n(call, open, callback)?,
                Operation::OnSent(callback) => {
                    callback.call();
                    true
                }
                Operation::RunBlocking(callback) => self.run_blocking(call, open, callback)?,
            };
            if !is_done {
                self.current = Some(operation);
                return Ok(Step::Pending);
            }
            call.check_failed()?;
        }
    }

    /// Passes packets that have arrived to a callback. Returns whether any have.
    fn recv(&self, open: &mut OpenCall<'_>, callback: Option<Callback<PortCallback>>) -> bool {
        let received = match callback {
            Some(callback) if self.in_place => {
                open.poll_recv(|packets| callback.each_in_place(packets))
            }
            Some(callback) => open.poll_recv_copies(|packets| callback.each(packets)),
            None => open.poll_recv(|_| {}),
        };
        received.is_some()
    }

    /// Sends packets that a callback fills. Returns whether the server owned them.
    fn send(&self, open: &mut OpenCall<'_>, callback: Option<Callback<PortCallback>>) -> bool {
        let sent = match callback {
            Some(callback) if self.in_place => {
                open.poll_send(|packets| callback.each_in_place(packets))
            }
            Some(callback) => open.poll_send_copies(|packets| callback.each(packets)),
            None => open.poll_send(|_| {}),
        };
        sent.is_some()
    }

    /// Receives messages and passes them to a callback. Returns whether all have arrived.
    fn recv_n(
        &mut self,
        call: &Call,
        open: &mut OpenCall<'_>,
        callback: Callback<RecvNCallback>,
    ) -> Result<bool, Fault> {
        let mut receive = match self.progress.take() {
            Some(Progress::RecvN(receive)) => receive,
            _ => Box::default(),
        };
        let Some(messages) = receive.poll(open)? else {
            self.progress = Some(Progress::RecvN(receive));
            return Ok(false);
        };
        call.deliver(messages, callback)?;
        Ok(true)
    }

    /// Sends messages that a callback returns. Returns whether all are sent.
    fn send_n(
        &mut self,
        call: &Call,
        open: &mut OpenCall<'_>,
        callback: Callback<SendNCallback>,
    ) -> Result<bool, Fault> {
        let mut send = match self.progress.take() {
            Some(Progress::SendN(send)) => send,
            _ => {
                let mut messages = [Bytes::EMPTY; 64];
                for lane in open.lanes() {
                    messages[lane as usize] = callback.message(lane);
                }
                call.check_failed()?;
                Box::new((SendN::default(), messages))
            }
        };
        let (progress, messages) = &mut *send;
        let is_sent = progress.poll(open, |lane| messages[lane as usize].get());
        if !is_sent {
            self.progress = Some(Progress::SendN(send));
        }
        Ok(is_sent)
    }

    /// Runs a callback on a thread of the call. Returns whether it has returned.
    fn run_blocking(
        &mut self,
        call: &Arc<Call>,
        open: &mut OpenCall<'_>,
        callback: Callback<PlainCallback>,
    ) -> Result<bool, Fault> {
        let mut job = match self.progress.take() {
            Some(Progress::RunBlocking(job)) => job,
            _ => {
                // Keeps the call until the work is done, even if the call is dropped meanwhile.
                let kept = Arc::clone(call);
                let executor = self.executor.get_or_insert_default();
                executor.spawn(move || {
                    callback.call();
                    drop(kept);
                })
            }
        };
        match Pin::new(&mut job).poll(&mut Context::from_waker(open.waker())) {
            Poll::Ready(ended) => ended.map(|()| true),
            Poll::Pending => {
                self.progress = Some(Progress::RunBlocking(job));
                Ok(false)
            }
        }
    }
}

impl Session for QueuedCalls {
    fn step(&mut self, open: &mut OpenCall<'_>) -> Result<Step, Fault> {
        if !self.has_begun {
            self.begin(open);
        }
        let call = self.call.as_ref().ok_or(Fault::HandlerFailed)?;
        call.check_failed()?;
        self.queue.run(call, open)
    }

    fn end(&mut self) {
        self.has_begun = false;
        self.queue.progress = None;
        match self.call.as_mut().map(Arc::get_mut) {
            Some(Some(call)) => call.end(),
            // A worker thread that still uses the call ends it.
            Some(None) => self.call = None,
            None => {}
        }
    }
}
