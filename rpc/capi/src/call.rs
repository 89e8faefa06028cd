//! `gpurpc_port_t`: a call, of which the program queues what is to be done.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gpurpc::Packets;
use gpurpc::memory::Shared;
use gpurpc::server::{Budget, Fault, Messages, Port, Strand};

use crate::block::Block;
use crate::callback::{
    Bytes, CDevice, Callback, OpcodeCallback, PlainCallback, PortCallback, RecvNCallback,
    SendNCallback,
};

/// What is to be done.
pub enum Operation {
    Recv(Option<Callback<PortCallback>>),
    Send(Option<Callback<PortCallback>>),
    RecvAndSend(Option<Callback<PortCallback>>),
    RecvN(Callback<RecvNCallback>),
    SendN(Callback<SendNCallback>),
    Work(Callback<PlainCallback>),
}

/// A call that is being served.
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
    blocks: Vec<Block>,
    ends: Vec<Callback<PlainCallback>>,
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

    /// Has something done after all that is queued.
    pub(crate) fn queue(&self, operation: Operation) {
        self.state().queue.push_back(operation);
    }

    /// Ends it without an answer.
    pub(crate) fn fail(&self) {
        self.state().failed = true;
    }

    /// Has a function called when it has ended.
    pub(crate) fn at_end(&self, end: Callback<PlainCallback>) {
        self.state().ends.push(end);
    }

    /// Memory that lasts as long as the call.
    pub(crate) fn alloc(&self, size: usize) -> Result<*mut u8, Fault> {
        let block = Block::new(size, &self.budget)?;
        let start = block.start();
        self.state().blocks.push(block);
        Ok(start)
    }

    /// Whether no callback has let it fail.
    fn check(&self) -> Result<(), Fault> {
        match self.state().failed {
            true => Err(Fault::Other("a callback let the call fail")),
            false => Ok(()),
        }
    }

    fn next(&self) -> Result<Option<Operation>, Fault> {
        self.check()?;
        Ok(self.state().queue.pop_front())
    }

    /// Hands over messages, which last as long as the call then, and are aligned.
    fn hand_over(
        &self,
        received: Messages,
        callback: Callback<RecvNCallback>,
    ) -> Result<(), Fault> {
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
        callback.done(&messages, &sizes);
        Ok(())
    }

    /// Never locked while a function of the program runs: it may queue more.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let ends = std::mem::take(&mut self.state().ends);
        for end in ends.iter().rev() {
            end.call();
        }
    }
}

/// Serves a call: what is queued in turn, until nothing is left.
pub async fn serve(
    mut port: Port,
    device: CDevice,
    callback: Callback<OpcodeCallback>,
) -> Result<Port, Fault> {
    // Where it stays: the program knows its address.
    let call = Arc::new(Call::new(&port, device));
    // Without a thread, until there is work.
    let strand = Strand::default();
    callback.begin(&call);
    while let Some(operation) = call.next()? {
        match operation {
            Operation::Recv(callback) => {
                port.recv(|packets| each(callback, packets)).await;
            }
            Operation::Send(callback) => {
                port.send(|packets| each(callback, packets)).await;
            }
            Operation::RecvAndSend(callback) => {
                port.recv(|packets| each(callback, packets)).await;
                call.check()?;
                port.send(|_| {}).await;
            }
            Operation::RecvN(callback) => {
                let messages = port.recv_n().await?;
                call.hand_over(messages, callback)?;
            }
            Operation::SendN(callback) => {
                let mut messages = [Bytes::NONE; 64];
                for lane in port.lanes() {
                    messages[lane as usize] = callback.message(lane);
                }
                call.check()?;
                port.send_n(|lane| messages[lane as usize].get()).await;
            }
            Operation::Work(callback) => {
                // The call is there for as long as the work, though it may be dropped meanwhile.
                let held = Arc::clone(&call);
                let work = move || {
                    callback.call();
                    drop(held);
                };
                strand.run(work).await?;
            }
        }
    }
    Ok(port)
}

fn each(callback: Option<Callback<PortCallback>>, packets: &mut Packets<'_, Shared>) {
    if let Some(callback) = callback {
        callback.each(packets);
    }
}
