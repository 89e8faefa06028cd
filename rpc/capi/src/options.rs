//! Versioned option structs that the caller fills in.

use std::ffi::c_void;
use std::mem::{offset_of, size_of};
use std::ptr::NonNull;
use std::time::Duration;

use gpurpc::server::{Doorbell, IdlePolicy, Limits, Opcodes, WaitHooks};
use gpurpc::{Generation, Layout};

use crate::callback::{Alloc, Callback, Free, PlainCallback, WaitCallback};
use crate::status::Status;

/// A struct whose first member is its size in the caller's version.
///
/// # Safety
///
/// The struct is `repr(C)`, begins with a `u64`, is valid for any bytes, and has no padding.
pub unsafe trait Options: Copy {
    /// All zero: the value of members that the caller does not know.
    const ZERO: Self;
    /// Size in bytes of the first version.
    const MIN_SIZE: usize;
}

/// `gpurpc_server_options_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ServerOptions {
    /// Size of the struct that the caller was compiled with.
    pub struct_size: u64,
    /// Number of polls while spinning.
    pub spin_count: u32,
    /// Number of polls while yielding.
    pub yield_count: u32,
    /// Longest sleep in nanoseconds.
    pub max_sleep_ns: u64,
    /// Waits for a doorbell.
    pub wait: Option<WaitCallback>,
    /// Ends a wait.
    pub wake: Option<PlainCallback>,
    /// Passed to both.
    pub data: *mut c_void,
    /// Longest wait in nanoseconds.
    pub max_wait_ns: u64,
}

/// `GPURPC_IN_PLACE`.
const IN_PLACE: u32 = 1;
/// `GPURPC_ANNOUNCED_KERNELS`.
const ANNOUNCED_KERNELS: u32 = 2;

/// `gpurpc_device_options_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DeviceOptions {
    /// Size of the struct that the caller was compiled with.
    pub struct_size: u64,
    /// Number of calls that can be open.
    pub ports: u32,
    /// Number of threads of a warp.
    pub lanes: u32,
    /// Memory of the device. Null: `alloc` is called.
    pub memory: *mut c_void,
    /// Size in bytes of `memory`.
    pub memory_size: u64,
    /// Allocates the memory.
    pub alloc: Option<Alloc>,
    /// Releases the memory.
    pub free: Option<Free>,
    /// Passed to both.
    pub data: *mut c_void,
    /// Encoding of opcodes by the client.
    pub opcodes: u32,
    /// Major release of LLVM, or 0.
    pub generation: u32,
    /// Maximum size of a message of a lane.
    pub message_limit: u64,
    /// Maximum memory of all calls.
    pub memory_limit: u64,
    /// Counter of open calls.
    pub doorbell_value: *mut u64,
    /// Mailbox for the event of the first call.
    pub doorbell_mailbox: *mut u64,
    /// The event.
    pub doorbell_event: u32,
    /// Bit mask of flags.
    pub flags: u32,
    /// Size in bytes of the stack of a blocking callback.
    pub stack_size: u64,
}

// SAFETY: as declared; a function is any address or null, and none is called before all members are validated.
unsafe impl Options for ServerOptions {
    const ZERO: Self = Self {
        struct_size: 0,
        spin_count: 0,
        yield_count: 0,
        max_sleep_ns: 0,
        wait: None,
        wake: None,
        data: std::ptr::null_mut(),
        max_wait_ns: 0,
    };
    const MIN_SIZE: usize = offset_of!(Self, wait);
}

// SAFETY: as declared; a function is any address or null.
unsafe impl Options for DeviceOptions {
    const ZERO: Self = Self {
        struct_size: 0,
        ports: 0,
        lanes: 0,
        memory: std::ptr::null_mut(),
        memory_size: 0,
        alloc: None,
        free: None,
        data: std::ptr::null_mut(),
        opcodes: 0,
        generation: 0,
        message_limit: 0,
        memory_limit: 0,
        doorbell_value: std::ptr::null_mut(),
        doorbell_mailbox: std::ptr::null_mut(),
        doorbell_event: 0,
        flags: 0,
        stack_size: 0,
    };
    const MIN_SIZE: usize = offset_of!(Self, doorbell_value);
}

/// Maximum size of a struct of options. A larger one was not initialised.
const MAX_STRUCT_SIZE: usize = 4096;

/// Reads the caller's options. Members of a newer version that are unknown here must be 0.
///
/// # Safety
///
/// `from` is null, or points to as many bytes as its first member states.
pub unsafe fn read<T: Options>(from: *const T) -> Result<T, Status> {
    if from.is_null() || !from.is_aligned() {
        return Err(Status::INVALID_ARGUMENT);
    }
    // SAFETY: guaranteed by the caller; `Options` begins with the size.
    let size = saturating_usize(unsafe { from.cast::<u64>().read() });
    if !(T::MIN_SIZE..=MAX_STRUCT_SIZE).contains(&size) {
        return Err(Status::INVALID_STRUCT_SIZE);
    }
    let known = size.min(size_of::<T>());
    // SAFETY: guaranteed by the caller.
    let rest = unsafe { std::slice::from_raw_parts(from.cast::<u8>().add(known), size - known) };
    if rest.iter().any(|byte| *byte != 0) {
        return Err(Status::INVALID_ARGUMENT);
    }
    let mut options = T::ZERO;
    let to: *mut T = &mut options;
    // SAFETY: both have these bytes, and `Options` is valid for any bytes.
    unsafe {
        to.cast::<u8>().copy_from_nonoverlapping(from.cast(), known);
    }
    Ok(options)
}

/// A size of the program, saturated to `usize`.
pub(crate) fn saturating_usize(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

/// A value, or the default for 0.
pub(crate) fn or_default<T: Default + PartialEq>(value: T, default: T) -> T {
    if value == T::default() {
        default
    } else {
        value
    }
}

impl ServerOptions {
    /// Policy while idle.
    pub fn idle(&self) -> IdlePolicy {
        let default = IdlePolicy::default();
        IdlePolicy {
            spin_count: or_default(self.spin_count, default.spin_count),
            yield_count: or_default(self.yield_count, default.yield_count),
            max_sleep: or_default(Duration::from_nanos(self.max_sleep_ns), default.max_sleep),
            max_wait: or_default(Duration::from_nanos(self.max_wait_ns), default.max_wait),
        }
    }

    /// Functions for waiting.
    pub fn hooks(&self) -> Result<Option<Hooks>, Status> {
        match (self.wait, self.wake) {
            (None, None) => Ok(None),
            (Some(wait), Some(wake)) => Ok(Some(Hooks {
                wait: Callback::new(wait, self.data),
                wake: Callback::new(wake, self.data),
            })),
            _ => Err(Status::INVALID_ARGUMENT),
        }
    }
}

/// Functions of the program by which a serving thread waits.
#[derive(Debug)]
pub struct Hooks {
    wait: Callback<WaitCallback>,
    wake: Callback<PlainCallback>,
}

impl WaitHooks for Hooks {
    fn wait(&self, timeout: Duration) -> bool {
        self.wait.wait(timeout)
    }

    fn wake(&self) {
        self.wake.call();
    }
}

impl DeviceOptions {
    /// Limits of calls, saturated to `usize`.
    pub fn limits(&self) -> Limits {
        let default = Limits::default();

        Limits {
            message: or_default(saturating_usize(self.message_limit), default.message),
            memory: or_default(saturating_usize(self.memory_limit), default.memory),
            stack: or_default(saturating_usize(self.stack_size), default.stack),
        }
    }

    /// Layout of the memory.
    pub fn layout(&self) -> Result<Layout, Status> {
        let generation = self.generation()?;
        Ok(Layout::with_generation(generation, self.ports, self.lanes)?)
    }

    /// Generation of the protocol. Without a release it is that of the opcodes.
    fn generation(&self) -> Result<&'static Generation, Status> {
        let opcodes = match self.opcodes {
            0 => Opcodes::Wide,
            1 => Opcodes::Narrow,
            _ => return Err(Status::INVALID_ARGUMENT),
        };
        let release = match (self.generation, opcodes) {
            (0, Opcodes::Wide) => Generation::LLVM_20.first_release,
            (0, Opcodes::Narrow) => Generation::LLVM_19.first_release,
            (release, _) => release,
        };
        let generation = Generation::for_release(release).ok_or(Status::INVALID_GENERATION)?;
        // 0 is also the encoding of the release.
        if opcodes != Opcodes::Wide && opcodes != generation.opcodes {
            return Err(Status::INVALID_ARGUMENT);
        }
        Ok(generation)
    }

    /// The doorbell of the device.
    pub fn doorbell(&self) -> Result<Option<Doorbell>, Status> {
        let (value, mailbox) = (self.doorbell_value, self.doorbell_mailbox);
        match (NonNull::new(value), NonNull::new(mailbox)) {
            (None, None) if self.doorbell_event == 0 => Ok(None),
            (Some(value), Some(mailbox))
                if value.is_aligned()
                    && mailbox.is_aligned()
                    && self.generation()?.has_doorbell() =>
            {
                // SAFETY: the header requires the lifetime of the counter, and atomic accesses.
                Ok(Some(unsafe {
                    Doorbell::new(value, mailbox, self.doorbell_event)
                }))
            }
            _ => Err(Status::INVALID_ARGUMENT),
        }
    }

    /// Whether callbacks get the packets themselves.
    pub fn in_place(&self) -> Result<bool, Status> {
        self.flag(IN_PLACE)
    }

    /// Whether the program announces kernels.
    pub fn announced_kernels(&self) -> Result<bool, Status> {
        self.flag(ANNOUNCED_KERNELS)
    }

    fn flag(&self, flag: u32) -> Result<bool, Status> {
        match self.flags & !(IN_PLACE | ANNOUNCED_KERNELS) {
            0 => Ok(self.flags & flag != 0),
            _ => Err(Status::INVALID_ARGUMENT),
        }
    }
}
