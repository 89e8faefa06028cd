//! Server side of the protocol.

#[cfg(feature = "blocking")]
mod blocking;
mod budget;
mod buffer;
mod catch_panic;
mod device;
mod device_state;
mod doorbell;
mod fault;
mod handler;
#[cfg(feature = "std")]
mod idle;
mod messages;
#[cfg(feature = "blocking")]
mod parked;
mod port;
mod ready_set;
mod refusal;
#[cfg(feature = "blocking")]
mod runners;
#[cfg(feature = "std")]
mod serial_executor;
#[cfg(feature = "std")]
mod serving;
#[cfg(feature = "blocking")]
mod serving_thread;
mod session;
mod session_future;
#[cfg(feature = "std")]
mod sleepers;
#[cfg(feature = "blocking")]
mod workers;

pub use crate::opcode_encoding::Opcodes;
#[cfg(feature = "blocking")]
pub use blocking::BlockingCall;
pub use budget::{Budget, Limits, Reservation};
pub use buffer::Buffer;
pub use device::Device;
pub use doorbell::Doorbell;
pub use fault::Fault;
pub use handler::{DroppedCall, Handlers, Warp};
#[cfg(feature = "std")]
pub use idle::IdlePolicy;
pub use messages::{Messages, RecvN, SendN};
#[doc(hidden)]
pub use port::Port;
pub use refusal::RefusedCall;
#[cfg(feature = "std")]
pub(crate) use serial_executor::{JobFuture, SerialExecutor};
#[cfg(feature = "std")]
pub use serving::{DeviceId, Server};
pub use session::OpenCall;
#[cfg(feature = "std")]
pub use sleepers::WaitHooks;
