//! Device code on hosts: its client, and warps whose lanes are threads.

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use crate::arch::simulated::launch;
use crate::client::{self, CLIENT};

/// Size in bytes of the client: 552, with the feature `llvm-23` 2096.
///
/// ```
/// use gpurpc::Layout;
/// use gpurpc_device::host;
///
/// let client = Layout::new(4, 1)?.client(0);
/// # #[cfg(not(feature = "llvm-23"))]
/// assert_eq!(client.len(), host::CLIENT_SIZE);
/// # Ok::<(), gpurpc::Error>(())
/// ```
pub const CLIENT_SIZE: usize = client::SIZE;

/// Device code of this process is connected with its host until this is dropped.
///
/// ```
/// use gpurpc_device::host::Connection;
///
/// fn disconnect(connection: Connection) {
///     drop(connection);
/// }
/// ```
#[must_use = "the connection ends when it is dropped"]
#[derive(Debug)]
pub struct Connection {
    /// A process has one client, as an image for a device has.
    _only: MutexGuard<'static, ()>,
}

static CONNECTED: Mutex<()> = Mutex::new(());

/// Initializes the client of this process with the bytes of `gpurpc::Layout::client`, as the host program of a device does
/// by a copy to the symbol `__llvm_rpc_client`. Waits until an earlier connection was dropped.
///
/// # Safety
///
/// The memory that the client points to has the layout of the client, with as many lanes as the warps that call, and
/// outlives the connection. No call outlives the connection.
///
/// ```
/// use gpurpc::memory::Region;
/// use gpurpc::{Generation, Layout};
/// use gpurpc_device::host;
///
/// let generation = Generation::find(c"__llvm_rpc_client", host::CLIENT_SIZE).ok_or("unknown")?;
/// // For threads of the host: warps of one lane.
/// let layout = Layout::with_generation(generation, 4, 1)?;
/// let memory = Region::zeroed(layout)?;
/// let client = layout.client(memory.start().as_ptr() as u64);
/// // SAFETY: there are no calls.
/// let connection = unsafe { host::connect(client.first_chunk().ok_or("too small")?) };
/// drop(connection);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub unsafe fn connect(client: &[u8; CLIENT_SIZE]) -> Connection {
    let only = CONNECTED.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: the caller's promise; no call of an earlier connection is open.
    unsafe { CLIENT.fill(client) };
    Connection { _only: only }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: no call is open. Later calls panic.
        unsafe { CLIENT.fill(&[0; CLIENT_SIZE]) };
    }
}

#[cfg(test)]
mod tests {
    /// No other test of this process connects.
    #[test]
    #[should_panic = "the client is not initialized: gpurpc_device::host::connect"]
    fn calls_panic_without_a_connection() {
        crate::println!("lost");
    }
}
