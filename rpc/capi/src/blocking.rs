//! `gpurpc_blocking_t`: an open call in a blocking callback.

use std::cell::{Cell, OnceCell, RefCell};
use std::ffi::{c_int, c_void};
use std::ptr::NonNull;

use gpurpc::server::{self, Buffer, Fault, Messages, OpenCall, RecvN, SendN};

use crate::callback::{Bytes, CDevice, Callback, PlainCallback, PortCallback};
use crate::nesting::{self, Nested};
use crate::pointer::{deref, output};
use crate::status::{Status, catch_status};

/// `gpurpc_blocking_callback_ty`.
pub type BlockingCallback = unsafe extern "C" fn(call: *mut Blocking, data: *mut c_void);

/// An open call in a blocking callback.
pub struct Blocking {
    /// Accessed by one operation at a time, while `is_busy`.
    call: NonNull<server::BlockingCall<'static>>,
    is_busy: Cell<bool>,
    device: CDevice,
    in_place: bool,
    opcode: u32,
    mask: u64,
    /// Nesting of the poll that runs the callback.
    depth: Cell<usize>,
    owned: OnceCell<Box<Owned>>,
}

/// Objects that most calls do not have.
#[derive(Default)]
struct Owned {
    /// Received messages.
    blocks: RefCell<Vec<Buffer>>,
    /// Set when the call is abandoned: then the callback may run outside of any poll.
    abandoned: OnceCell<Nested>,
}

impl Callback<BlockingCallback> {
    /// Calls the function with a call.
    #[inline]
    pub fn block(
        &self,
        call: &mut server::BlockingCall<'_>,
        device: CDevice,
        in_place: bool,
    ) -> Result<(), Fault> {
        let blocking = Blocking {
            is_busy: Cell::new(false),
            device,
            in_place,
            opcode: call.opcode(),
            mask: call.mask(),
            depth: Cell::new(nesting::depth()),
            owned: OnceCell::new(),
            call: NonNull::from(call).cast(),
        };
        let (function, data) = self.parts();
        // SAFETY: the function is as the header requires; the call exists until it returns.
        unsafe { function(std::ptr::from_ref(&blocking).cast_mut(), data) }
        Ok(())
    }
}

/// Exclusive use of a call by one operation.
struct Operation<'b>(&'b Blocking);

impl Operation<'_> {
    #[expect(clippy::mut_from_ref, reason = "each call has one operation at a time")]
    fn call(&self) -> &mut server::BlockingCall<'static> {
        // SAFETY: `block` keeps the call while the callback runs, and no other operation uses it.
        unsafe { &mut *self.0.call.as_ptr() }
    }
}

impl Drop for Operation<'_> {
    fn drop(&mut self) {
        self.0.is_busy.set(false);
    }
}

impl Blocking {
    /// Begins an operation. Fails in callbacks for packets, and in those of a poll that the callback makes: if they waited,
    /// that poll would stop in its middle.
    #[inline]
    fn begin(&self) -> Result<Operation<'_>, Status> {
        if self.is_busy.get() || nesting::depth() != self.depth.get() {
            return Err(Status::BUSY);
        }
        self.is_busy.set(true);
        Ok(Operation(self))
    }

    /// Waits until `poll` returns a value.
    #[inline]
    fn wait_for<T>(
        &self,
        mut poll: impl FnMut(&mut OpenCall<'_>) -> Result<Option<T>, Fault>,
    ) -> Result<T, Status> {
        let operation = self.begin()?;
        let mut has_waited = false;
        let value = operation.call().wait_for(|open| {
            if has_waited {
                self.depth.set(nesting::depth());
            }
            has_waited = true;
            poll(open)
        });
        value.map_err(|fault| self.failed(&fault))
    }

    #[cold]
    fn owned(&self) -> &Owned {
        self.owned.get_or_init(Box::default)
    }

    /// Status of a fault.
    #[cold]
    fn failed(&self, fault: &Fault) -> Status {
        if *fault == Fault::Abandoned {
            self.owned().abandoned.get_or_init(Nested::new);
            self.depth.set(nesting::depth());
        }
        Status::from_fault(fault)
    }

    /// Passes packets that have arrived to a callback.
    #[inline]
    fn poll_recv(
        &self,
        open: &mut OpenCall<'_>,
        callback: Option<Callback<PortCallback>>,
    ) -> Option<()> {
        match callback {
            Some(callback) if self.in_place => {
                open.poll_recv(|packets| callback.each_in_place(packets))
            }
            Some(callback) => open.poll_recv_copies(|packets| callback.each(packets)),
            None => open.poll_recv(|_| {}),
        }
    }

    fn recv(&self, callback: Option<Callback<PortCallback>>) -> Result<(), Status> {
        self.wait_for(|open| Ok(self.poll_recv(open, callback)))
    }

    fn recv_and_send(&self, callback: Option<Callback<PortCallback>>) -> Result<(), Status> {
        self.wait_for(|open| {
            let received = match callback {
                Some(callback) if !self.in_place => {
                    open.poll_recv_copies(|packets| callback.each(packets))
                }
                callback => self.poll_recv(open, callback),
            };
            // Never waits after a receive.
            Ok(received.and_then(|()| open.poll_send(|_| {})))
        })
    }

    fn send(&self, callback: Option<Callback<PortCallback>>) -> Result<(), Status> {
        self.wait_for(|open| {
            Ok(match callback {
                Some(callback) if self.in_place => {
                    open.poll_send(|packets| callback.each_in_place(packets))
                }
                Some(callback) => open.poll_send_copies(|packets| callback.each(packets)),
                None => open.poll_send(|_| {}),
            })
        })
    }

    fn recv_n(&self) -> Result<([*mut c_void; 64], [u64; 64]), Status> {
        let mut receive = RecvN::default();
        self.wait_for(|open| {
            let Some(received) = receive.poll(open)? else {
                return Ok(None);
            };
            let budget = open.budget();
            let messages = aligned_messages(received, |size| {
                let block = budget.allocate(size)?;
                let start = block.as_ptr();
                self.owned().blocks.borrow_mut().push(block);
                Ok(start)
            });
            messages.map(Some)
        })
    }

    fn send_n(&self, messages: &[Bytes; 64]) -> Result<(), Status> {
        let mut send = SendN::default();
        self.wait_for(|open| {
            let is_sent = send.poll(open, |lane| messages[lane as usize].get());
            Ok(is_sent.then_some(()))
        })
    }
}

/// Copies messages to memory of `alloc`, which is aligned. Returns the address and the size of the message of each lane;
/// null and 0 for lanes that do not participate.
fn aligned_messages(
    received: Messages,
    mut alloc: impl FnMut(usize) -> Result<*mut u8, Fault>,
) -> Result<([*mut c_void; 64], [u64; 64]), Fault> {
    let (mut messages, mut sizes) = ([std::ptr::null_mut(); 64], [0; 64]);
    for lane in 0..64 {
        if let Some(message) = received.get(lane) {
            let start = alloc(message.len())?;
            // SAFETY: just allocated, with as many bytes.
            unsafe { start.copy_from_nonoverlapping(message.as_ptr(), message.len()) };
            messages[lane as usize] = start.cast();
            sizes[lane as usize] = message.len() as u64;
        }
    }
    Ok((messages, sizes))
}

/// Receives packets.
///
/// # Safety
///
/// [Rules for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_blocking_recv(
    call: *mut Blocking,
    r#use: Option<PortCallback>,
    data: *mut c_void,
) -> c_int {
    let callback = r#use.map(|function| Callback::new(function, data));
    // SAFETY: guaranteed by the caller.
    catch_status(|| unsafe { deref(call) }?.recv(callback))
}

/// Sends packets.
///
/// # Safety
///
/// [Rules for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_blocking_send(
    call: *mut Blocking,
    fill: Option<PortCallback>,
    data: *mut c_void,
) -> c_int {
    let callback = fill.map(|function| Callback::new(function, data));
    // SAFETY: guaranteed by the caller.
    catch_status(|| unsafe { deref(call) }?.send(callback))
}

/// Receives packets and sends them back.
///
/// # Safety
///
/// [Rules for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_blocking_recv_and_send(
    call: *mut Blocking,
    work: Option<PortCallback>,
    data: *mut c_void,
) -> c_int {
    let callback = work.map(|function| Callback::new(function, data));
    catch_status(|| {
        // SAFETY: guaranteed by the caller.
        unsafe { deref(call) }?.recv_and_send(callback)
    })
}

/// Receives messages.
///
/// # Safety
///
/// [Rules for all pointers](crate#pointers). Both arrays have 64 elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_blocking_recv_n(
    call: *mut Blocking,
    messages: *mut *mut c_void,
    sizes: *mut u64,
) -> c_int {
    catch_status(|| {
        let (messages, sizes) = (output(messages)?, output(sizes)?);
        // SAFETY: guaranteed by the caller.
        let received = unsafe { deref(call) }?.recv_n()?;
        // SAFETY: guaranteed by the caller.
        unsafe {
            messages.cast().write(received.0);
            sizes.cast().write(received.1);
        }
        Ok(())
    })
}

/// Sends messages.
///
/// # Safety
///
/// [Rules for all pointers](crate#pointers). Both arrays have 64 elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_blocking_send_n(
    call: *mut Blocking,
    messages: *const *const c_void,
    sizes: *const u64,
) -> c_int {
    catch_status(|| {
        // SAFETY: guaranteed by the caller.
        let call = unsafe { deref(call) }?;
        let mut bytes = [Bytes::EMPTY; 64];
        // SAFETY: guaranteed by the caller.
        unsafe {
            deref(messages)?;
            deref(sizes)?;
            for (lane, bytes) in bytes.iter_mut().enumerate() {
                if call.mask >> lane & 1 != 0 {
                    *bytes = Bytes::new(messages.add(lane).read(), sizes.add(lane).read());
                }
            }
        }
        call.send_n(&bytes)
    })
}

/// Runs work that may block.
///
/// # Safety
///
/// [Rules for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_blocking_run(
    call: *mut Blocking,
    work: Option<PlainCallback>,
    data: *mut c_void,
) -> c_int {
    catch_status(|| {
        let work = Callback::new(work.ok_or(Status::INVALID_ARGUMENT)?, data);
        // SAFETY: guaranteed by the caller.
        let call = unsafe { deref(call) }?;
        let result = call.begin()?.call().run(move || work.call());
        call.depth.set(nesting::depth());
        result.map_err(|fault| call.failed(&fault))
    })
}

/// Drops a call.
///
/// # Safety
///
/// [Rules for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_blocking_fail(call: *mut Blocking) -> c_int {
    catch_status(|| {
        // SAFETY: guaranteed by the caller.
        let operation = unsafe { deref(call) }?.begin()?;
        let fault = Fault::Other("a callback called gpurpc_blocking_fail");
        operation.call().fail(fault);
        Ok(())
    })
}

/// Opcode of a call.
///
/// # Safety
///
/// [Rules for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_blocking_opcode(call: *const Blocking) -> u32 {
    // SAFETY: guaranteed by the caller.
    unsafe { deref(call) }.map_or(0, |call| call.opcode)
}

/// Bit mask of the participating lanes.
///
/// # Safety
///
/// [Rules for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_blocking_lane_mask(call: *const Blocking) -> u64 {
    // SAFETY: guaranteed by the caller.
    unsafe { deref(call) }.map_or(0, |call| call.mask)
}

/// Device of a call.
///
/// # Safety
///
/// [Rules for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_blocking_device(call: *const Blocking) -> CDevice {
    // SAFETY: guaranteed by the caller.
    unsafe { deref(call) }.map_or_else(|_| CDevice::default(), |call| call.device)
}
