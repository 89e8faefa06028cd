//! Types and statuses of all functions.

use std::ffi::{c_int, c_void};

/// `rpc_alloc_ty`.
pub type Alloc = unsafe extern "C" fn(size: u64, data: *mut c_void) -> *mut c_void;
/// `rpc_free_ty`.
pub type Free = unsafe extern "C" fn(ptr: *mut c_void, data: *mut c_void);

pub const SUCCESS: c_int = 0;
pub const ERROR: c_int = 0x1000;
pub const UNHANDLED_OPCODE: c_int = 0x1001;
pub const INVALID_LANE_SIZE: c_int = 0x1002;
