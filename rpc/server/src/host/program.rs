//! Services that the host's functions do: the program's end, its memory, calls.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CStr;
use std::sync::{Arc, Mutex, PoisonError};

use super::lanes::{Words, answer, signed, text, words};
use super::pool::Pool;
use crate::server::{Fault, Handlers, Strand};
use crate::{Error, opcode};

pub(crate) type OnExit = Arc<dyn Fn(i32) + Send + Sync>;
pub(crate) type OnAbort = Arc<dyn Fn() + Send + Sync>;
pub(crate) type System = Arc<dyn Fn(&CStr) -> i32 + Send + Sync>;
pub(crate) type HostCall = Arc<dyn Fn(u64, &mut [u8]) -> u64 + Send + Sync>;

/// `exit` and `abort`. The client is answered before it says the status: then all that its warp asked
/// for before is done.
pub(crate) fn ends(
    on_exit: Option<OnExit>,
    on_abort: Option<OnAbort>,
    handlers: &mut Handlers,
) -> Result<(), Error> {
    handlers.talk(opcode::EXIT, move |mut port| {
        let on_exit = on_exit.clone();
        async move {
            port.recv_and_send(|_| {}).await;
            let status = port.recv(|packets| {
                // All lanes give one; the first is as good as any.
                let [a, b, c, d, ..] = packets.word(packets.lanes().next()?, 0).to_ne_bytes();
                Some(i32::from_ne_bytes([a, b, c, d]))
            });
            let status = status.await;
            let status = status.ok_or(Fault::Other("no lane says the status of the exit"))?;
            if let Some(exit) = on_exit {
                exit(status);
            }
            Ok(port)
        }
    })?;
    handlers.talk(opcode::ABORT, move |mut port| {
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

/// The device's memory: all calls are made by one thread, in the order in which they are asked for.
pub(crate) struct Allocator {
    strand: Strand,
    calls: Arc<Calls>,
}

struct Calls {
    alloc: Box<dyn Fn(u64) -> u64 + Send + Sync>,
    free: Box<dyn Fn(u64) + Send + Sync>,
    /// What was allocated: nothing else is freed.
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
            strand: Strand::default(),
            calls: Arc::new(calls),
        }
    }

    async fn alloc(&self, asked: Words, most: usize) -> Result<BTreeMap<u32, u64>, Fault> {
        let calls = Arc::clone(&self.calls);
        let alloc = move |(lane, [size, ..]): (u32, [u64; 3])| (lane, calls.alloc(size, most));
        let alloc = move || asked.into_iter().map(alloc).collect();
        self.strand.run(alloc).await
    }

    async fn free(&self, asked: Words) -> Result<(), Fault> {
        let calls = Arc::clone(&self.calls);
        let free = move || asked.values().for_each(|words| calls.free(words[0]));
        self.strand.run(free).await
    }
}

impl Calls {
    fn alloc(&self, size: u64, most: usize) -> u64 {
        // This is the only thread that adds one.
        if self.live(|live| live.len()) >= most {
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

/// `malloc` and `free`. Without functions for them there is no memory.
pub(crate) fn memory(
    allocator: Option<Allocator>,
    most: usize,
    handlers: &mut Handlers,
) -> Result<(), Error> {
    let allocator = allocator.map(Arc::new);
    let other = allocator.clone();
    handlers.talk(opcode::MALLOC, move |mut port| {
        let allocator = allocator.clone();
        async move {
            let asked = port.recv(words).await;
            let addresses = match allocator {
                Some(allocator) => allocator.alloc(asked, most).await?,
                None => BTreeMap::new(),
            };
            answer(&mut port, &addresses, 0).await;
            Ok(port)
        }
    })?;
    handlers.talk(opcode::FREE, move |mut port| {
        let allocator = other.clone();
        async move {
            let asked = port.recv(words).await;
            if let Some(allocator) = allocator {
                allocator.free(asked).await?;
            }
            Ok(port)
        }
    })?;
    Ok(())
}

/// `system`, and calls of functions of the host: only what the host has a function for.
pub(crate) fn calls(
    system: Option<System>,
    host_call: Option<HostCall>,
    pool: &Arc<Pool>,
    handlers: &mut Handlers,
) -> Result<(), Error> {
    let threads = Arc::clone(pool);
    handlers.talk(opcode::SYSTEM, move |mut port| {
        let (system, pool) = (system.clone(), Arc::clone(&threads));
        async move {
            let commands = port.recv_n().await?;
            let lanes = port.lanes();
            let run = move || {
                let run = |lane| {
                    let status = system.as_ref().zip(text(commands.get(lane)));
                    status.map_or(-1, |(system, command)| system(command))
                };
                lanes.map(|lane| (lane, signed(run(lane)))).collect()
            };
            let statuses = pool.run(run).await?;
            answer(&mut port, &statuses, signed(-1)).await;
            Ok(port)
        }
    })?;
    let threads = Arc::clone(pool);
    handlers.talk(opcode::HOST_CALL, move |mut port| {
        let (host_call, pool) = (host_call.clone(), Arc::clone(&threads));
        async move {
            let refused = "the client calls a function of the host, which has none for it: `host_call` of the \
                           services gives one";
            let call = host_call.ok_or(Fault::Other(refused))?;
            let mut arguments = port.recv_n().await?;
            let functions = port.recv(words).await;
            let call = move || -> BTreeMap<u32, u64> {
                let result = |(lane, [function, ..]): (u32, [u64; 3])| {
                    let arguments = arguments.get_mut(lane).unwrap_or_default();
                    (lane, call(function, arguments))
                };
                functions.into_iter().map(result).collect()
            };
            let results = pool.run(call).await?;
            answer(&mut port, &results, 0).await;
            Ok(port)
        }
    })?;
    Ok(())
}
