//! Structs that the caller fills in, and that may grow.

use std::ffi::c_void;
use std::mem::size_of;
use std::time::Duration;

use gpurpc::server::{Idle, Limits, Opcodes};

use crate::callback::{Alloc, Free};
use crate::status::Status;

/// A struct of which the first member is its size where it was compiled.
///
/// # Safety
///
/// It is `repr(C)`, begins with a `u64`, holds any bytes, and has no padding.
pub unsafe trait Options: Copy {
    /// All zero, which is what a member that the caller does not know has.
    const ZERO: Self;
    /// Bytes of its first version.
    const FIRST: usize;
}

/// `gpurpc_server_options_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ServerOptions {
    /// Its bytes where the caller was compiled.
    pub struct_size: u64,
    /// How often to look around in a row.
    pub spins: u32,
    /// How often to look around while others run.
    pub yields: u32,
    /// Nanoseconds.
    pub longest_sleep: u64,
}

/// `gpurpc_device_options_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DeviceOptions {
    /// Its bytes where the caller was compiled.
    pub struct_size: u64,
    /// How many calls can be under way.
    pub ports: u32,
    /// Threads of a warp.
    pub lanes: u32,
    /// Null: `alloc`.
    pub memory: *mut c_void,
    /// Bytes of `memory`.
    pub memory_size: u64,
    /// Makes the memory.
    pub alloc: Option<Alloc>,
    /// Gives it back.
    pub free: Option<Free>,
    /// For both.
    pub data: *mut c_void,
    /// How the client writes them.
    pub opcodes: u32,
    /// 0.
    pub reserved: u32,
    /// Bytes of a message of a lane.
    pub message_limit: u64,
    /// Bytes of all calls.
    pub memory_limit: u64,
}

// SAFETY: as declared; a function is any address or none, and none is called before all is checked.
unsafe impl Options for ServerOptions {
    const ZERO: Self = Self {
        struct_size: 0,
        spins: 0,
        yields: 0,
        longest_sleep: 0,
    };
    const FIRST: usize = size_of::<Self>();
}

// SAFETY: as declared; a function is any address or none.
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
        reserved: 0,
        message_limit: 0,
        memory_limit: 0,
    };
    const FIRST: usize = size_of::<Self>();
}

/// The caller's options. Of a struct that is newer than this library, what is not known here is to be 0.
///
/// # Safety
///
/// `from` is null, or points to as many bytes as its first member says.
pub unsafe fn read<T: Options>(from: *const T) -> Result<T, Status> {
    if from.is_null() || !from.is_aligned() {
        return Err(Status::INVALID_ARGUMENT);
    }
    // SAFETY: as the caller promises; `Options` says what comes first.
    let size = unsafe { from.cast::<u64>().read() };
    // No struct is as large as that: it was not filled in.
    let size = usize::try_from(size).ok().filter(|size| *size <= 4096);
    let size = size.filter(|size| *size >= T::FIRST);
    let size = size.ok_or(Status::STRUCT_SIZE)?;
    let known = size.min(size_of::<T>());
    // SAFETY: as the caller promises.
    let rest = unsafe { std::slice::from_raw_parts(from.cast::<u8>().add(known), size - known) };
    if rest.iter().any(|byte| *byte != 0) {
        return Err(Status::INVALID_ARGUMENT);
    }
    let mut options = T::ZERO;
    let to: *mut T = &mut options;
    // SAFETY: both have these bytes, of which any are good, as `Options` says.
    unsafe {
        to.cast::<u8>().copy_from_nonoverlapping(from.cast(), known);
    }
    Ok(options)
}

/// A number, or what it is by default.
pub(crate) fn given<T: Default + PartialEq>(value: T, default: T) -> T {
    if value == T::default() {
        default
    } else {
        value
    }
}

impl ServerOptions {
    /// How to wait.
    pub fn idle(&self) -> Idle {
        let default = Idle::default();
        Idle {
            spins: given(self.spins, default.spins),
            yields: given(self.yields, default.yields),
            longest: given(Duration::from_nanos(self.longest_sleep), default.longest),
        }
    }
}

impl DeviceOptions {
    /// What calls may hold. More than there can be is as much as there can be.
    pub fn limits(&self) -> Limits {
        let default = Limits::default();
        let bytes = |given: u64| usize::try_from(given).unwrap_or(usize::MAX);
        Limits {
            message: given(bytes(self.message_limit), default.message),
            memory: given(bytes(self.memory_limit), default.memory),
        }
    }

    /// How the client writes opcodes.
    pub fn opcodes(&self) -> Result<Opcodes, Status> {
        match (self.opcodes, self.reserved) {
            (0, 0) => Ok(Opcodes::Wide),
            (1, 0) => Ok(Opcodes::Narrow),
            _ => Err(Status::INVALID_ARGUMENT),
        }
    }
}
