//! Services implemented by functions of the host: exit, abort, memory, commands, host calls.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CStr;
use std::sync::{Arc, Mutex, PoisonError};

use super::lanes::{Words, c_str, read_words, send_answers, signed};
use super::pool::Pool;
use crate::error::Error;
use crate::opcode;
use crate::server::{Fault, Handlers, SerialExecutor};

pub(crate) type OnExit = Arc<dyn Fn(i32) + Send + Sync>;
pub(crate) type OnAbort = Arc<dyn Fn() + Send + Sync>;
pub(crate) type System = Arc<dyn Fn(&CStr) -> i32 + Send + Sync>;
pub(crate) type HostCall = Arc<dyn Fn(u64, &mut [u8]) -> u64 + Send + Sync>;

/// `exit` and `abort`. The client is answered before it sends the status: by then all earlier calls of its warp
/// are done.
pub(crate) fn register_exit(
    on_exit: Option<OnExit>,
    on_abort: Option<OnAbort>,
    handlers: &mut Handlers,
) -> Result<(), Error> {
    handlers.on_session(opcode::EXIT, move |mut port| {
        let on_exit = on_exit.clone();
        async move {
            port.recv_and_send(|_| {}).await;
            let status = port
                .recv(|packets| {
                    // All lanes send a status; that of the first one is used.
                    let [a, b, c, d, ..] = packets.word(packets.lanes().next()?, 0).to_ne_bytes();
                    Some(i32::from_ne_bytes([a, b, c, d]))
                })
                .await
                .ok_or(Fault::Other("exit without a participating lane"))?;
            if let Some(exit) = on_exit {
                exit(status);
            }
            Ok(port)
        }
    })?;
    handlers.on_session(opcode::ABORT, move |mut port| {
        let on_abort = on_abort.clone();
        async move {
            port.recv_and_send(|_| {}).await;
            port.recv(|_| {}).await;
            if let Some(abort) = on_abort {
                abort();
            }
            Ok(port)
        }
    })?;
    Ok(())
}

/// Memory of the device. One thread makes all calls, in the order of the requests.
pub(crate) struct Allocator {
    executor: SerialExecutor,
    calls: Arc<Calls>,
}

struct Calls {
    alloc: Box<dyn Fn(u64) -> u64 + Send + Sync>,
    free: Box<dyn Fn(u64) + Send + Sync>,
    /// Allocated addresses: no others are freed.
    live: Mutex<BTreeSet<u64>>,
}

impl Allocator {
    pub fn new(
        alloc: impl Fn(u64) -> u64 + Send + Sync + 'static,
        free: impl Fn(u64) + Send + Sync + 'static,
    ) -> Self {
        let calls = Calls {
            alloc: Box::new(alloc),
            free: Box::new(free),
            live: Mutex::default(),
        };
        Self {
            executor: SerialExecutor::default(),
            calls: Arc::new(calls),
        }
    }

    async fn alloc(&self, words: Words, max: usize) -> Result<BTreeMap<u32, u64>, Fault> {
        let calls = Arc::clone(&self.calls);
        self.executor
            .spawn(move || {
                words
                    .into_iter()
                    .map(|(lane, [size, ..])| (lane, calls.alloc(size, max)))
                    .collect()
            })
            .await
    }

    async fn free(&self, words: Words) -> Result<(), Fault> {
        let calls = Arc::clone(&self.calls);
        self.executor
            .spawn(move || {
                for [address, ..] in words.into_values() {
                    calls.free(address);
                }
            })
            .await
    }
}

impl Calls {
    fn alloc(&self, size: u64, max: usize) -> u64 {
        // No other thread adds addresses.
        if self.live(|live| live.len()) >= max {
            return 0;
        }
        let address = (self.alloc)(size);
        if address != 0 {
            self.live(|live| live.insert(address));
        }
        address
    }

    fn free(&self, address: u64) {
        if self.live(|live| live.remove(&address)) {
            (self.free)(address);
        }
    }

    fn live<T>(&self, work: impl FnOnce(&mut BTreeSet<u64>) -> T) -> T {
        work(&mut self.live.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// `malloc` and `free`. Without an allocator, `malloc` returns a null pointer.
pub(crate) fn register_memory(
    allocator: Option<Allocator>,
    max: usize,
    handlers: &mut Handlers,
) -> Result<(), Error> {
    let allocator = allocator.map(Arc::new);
    let freeing = allocator.clone();
    handlers.on_session(opcode::MALLOC, move |mut port| {
        let allocator = allocator.clone();
        async move {
            let words = port.recv(read_words).await;
            let addresses = match allocator {
                Some(allocator) => allocator.alloc(words, max).await?,
                None => BTreeMap::new(),
            };
            send_answers(&mut port, &addresses, 0).await;
            Ok(port)
        }
    })?;
    handlers.on_session(opcode::FREE, move |mut port| {
        let allocator = freeing.clone();
        async move {
            let words = port.recv(read_words).await;
            if let Some(allocator) = allocator {
                allocator.free(words).await?;
            }
            Ok(port)
        }
    })?;
    Ok(())
}

/// `system` and host calls, each only if the host has registered a function for it.
pub(crate) fn register_calls(
    system: Option<System>,
    host_call: Option<HostCall>,
    pool: &Arc<Pool>,
    handlers: &mut Handlers,
) -> Result<(), Error> {
    let threads = Arc::clone(pool);
    handlers.on_session(opcode::SYSTEM, move |mut port| {
        let (system, pool) = (system.clone(), Arc::clone(&threads));
        async move {
            let commands = port.recv_n().await?;
            let lanes = port.lanes();
            let statuses = pool
                .spawn_blocking(move || {
                    let mut statuses = BTreeMap::new();
                    for lane in lanes {
                        let status = match (&system, c_str(commands.get(lane))) {
                            (Some(system), Some(command)) => system(command),
                            _ => -1,
                        };
                        statuses.insert(lane, signed(status));
                    }
                    statuses
                })
                .await?;
            send_answers(&mut port, &statuses, signed(-1)).await;
            Ok(port)
        }
    })?;
    let threads = Arc::clone(pool);
    handlers.on_session(opcode::HOST_CALL, move |mut port| {
        let (host_call, pool) = (host_call.clone(), Arc::clone(&threads));
        async move {
            let host_call = host_call.ok_or(Fault::Other(
                "host calls are disabled: no `host_call` function is registered",
            ))?;
            let mut arguments = port.recv_n().await?;
            let functions = port.recv(read_words).await;
            let results = pool
                .spawn_blocking(move || {
                    let mut results = BTreeMap::new();
                    for (lane, [function, ..]) in functions {
                        let arguments = arguments.get_mut(lane).unwrap_or_default();
                        results.insert(lane, host_call(function, arguments));
                    }
                    results
                })
                .await?;
            send_answers(&mut port, &results, 0).await;
            Ok(port)
        }
    })?;
    Ok(())
}
