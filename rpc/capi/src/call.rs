//! `gpurpc_port_t`: an open call with a queue of operations.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gpurpc::Packets;
use gpurpc::memory::SharedMemory;
use gpurpc::server::{Budget, Buffer, Fault, Messages, Port, SerialExecutor};

use crate::callback::{
    Bytes, CDevice, Callback, PlainCallback, PortCallback, RecvNCallback, SendNCallback,
};

/// `gpurpc_opcode_callback_ty`.
pub type OpcodeCallback = unsafe extern "C" fn(port: *mut Call, data: *mut c_void);

/// A queued operation.
pub enum Operation {
    Recv(Option<Callback<PortCallback>>),
    Send(Option<Callback<PortCallback>>),
    RecvAndSend(Option<Callback<PortCallback>>),
    RecvN(Callback<RecvNCallback>),
    SendN(Callback<SendNCallback>),
    RunBlocking(Callback<PlainCallback>),
}

/// An open call.
pub struct Call {
    pub(crate) device: CDevice,
    pub(crate) opcode: u32,
    pub(crate) mask: u64,
    budget: Arc<Budget>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Operation>,
    failed: bool,
    blocks: Vec<Buffer>,
    close_callbacks: Vec<Callback<PlainCallback>>,
}

impl Call {
    fn new(port: &Port, device: CDevice) -> Self {
        Self {
            device,
            opcode: port.opcode(),
            mask: port.lanes().fold(0, |mask, lane| mask | 1 << lane),
            budget: port.budget(),
            state: Mutex::default(),
        }
    }

    /// Queues an operation.
    pub(crate) fn queue(&self, operation: Operation) {
        self.state().queue.push_back(operation);
    }

    /// Ends the call without an answer.
    pub(crate) fn fail(&self) {
        self.state().failed = true;
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
        if self.state().failed {
            Err(Fault::Other("a callback called gpurpc_port_fail"))
        } else {
            Ok(())
        }
    }

    fn next_operation(&self) -> Result<Option<Operation>, Fault> {
        self.check_failed()?;
        Ok(self.state().queue.pop_front())
    }

    /// Passes messages to a callback, as aligned copies that are released with the call.
    fn deliver(&self, received: Messages, callback: Callback<RecvNCallback>) -> Result<(), Fault> {
        let (mut messages, mut sizes) = ([std::ptr::null_mut(); 64], [0; 64]);
        for lane in 0..64 {
            if let Some(message) = received.get(lane) {
                let start = self.alloc(message.len())?;
                // SAFETY: just allocated, with as many bytes.
                unsafe { start.copy_from_nonoverlapping(message.as_ptr(), message.len()) };
                messages[lane as usize] = start.cast();
                sizes[lane as usize] = message.len() as u64;
            }
        }
        drop(received);
        callback.receive(&messages, &sizes);
        Ok(())
    }

    /// Locks the state. Never held while a callback runs, because it may queue operations.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let callbacks = std::mem::take(&mut self.state().close_callbacks);
        for callback in callbacks.iter().rev() {
            callback.call();
        }
    }
}

/// Serves a call: runs queued operations in order until none is left.
pub async fn serve(
    mut port: Port,
    device: CDevice,
    callback: Callback<OpcodeCallback>,
) -> Result<Port, Fault> {
    // Pinned by the `Arc`, because the program knows its address.
    let call = Arc::new(Call::new(&port, device));
    // Starts its thread with the first job.
    let executor = SerialExecutor::default();
    let (function, data) = callback.parts();
    // SAFETY: the function is as the header requires; the call exists until it returns.
    unsafe { function(Arc::as_ptr(&call).cast_mut(), data) }
    while let Some(operation) = call.next_operation()? {
        match operation {
            Operation::Recv(callback) => {
                port.recv(|packets| call_for_lanes(callback, packets)).await;
            }
            Operation::Send(callback) => {
                port.send(|packets| call_for_lanes(callback, packets)).await;
            }
            Operation::RecvAndSend(callback) => {
                port.recv(|packets| call_for_lanes(callback, packets)).await;
                call.check_failed()?;
                port.send(|_| {}).await;
            }
            Operation::RecvN(callback) => {
                let messages = port.recv_n().await?;
                call.deliver(messages, callback)?;
            }
            Operation::SendN(callback) => {
                let mut messages = [Bytes::EMPTY; 64];
                for lane in port.lanes() {
                    messages[lane as usize] = callback.message(lane);
                }
                call.check_failed()?;
                port.send_n(|lane| messages[lane as usize].get()).await;
            }
            Operation::RunBlocking(callback) => {
                // Keeps the call until the work is done, even if the call is dropped meanwhile.
                let kept = Arc::clone(&call);
                let work = move || {
                    callback.call();
                    drop(kept);
                };
                executor.spawn(work).await?;
            }
        }
    }
    Ok(port)
}

fn call_for_lanes(
    callback: Option<Callback<PortCallback>>,
    packets: &mut Packets<'_, SharedMemory>,
) {
    if let Some(callback) = callback {
        callback.each(packets);
    }
}
