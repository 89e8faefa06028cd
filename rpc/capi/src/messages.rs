//! Received messages, as the program gets them.

use std::ffi::c_void;

use gpurpc::server::{Fault, Messages};

/// Copies messages to memory of `alloc`, which is aligned. Returns the address and the size of the message of each lane;
/// null and 0 for lanes that do not participate.
pub fn aligned_messages(
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
