//! Server side of the protocol.

mod budget;
mod buffer;
mod catch_panic;
mod device;
mod device_state;
mod doorbell;
mod fault;
mod handler;
mod messages;
mod port;
mod ready_set;
mod refusal;
#[cfg(feature = "std")]
mod serial_executor;
#[cfg(feature = "std")]
mod serving;
mod session;
mod session_future;

pub use crate::opcode_encoding::Opcodes;
pub use budget::{Budget, Limits, Reservation};
pub use buffer::Buffer;
pub use device::Device;
pub use doorbell::Doorbell;
pub use fault::Fault;
pub use handler::{DroppedCall, Handlers, Warp};
pub use messages::{Messages, RecvN, SendN};
pub use port::Port;
pub use refusal::RefusedCall;
#[cfg(feature = "std")]
pub use serial_executor::{JobFuture, SerialExecutor};
#[cfg(feature = "std")]
pub use serving::{DeviceId, IdlePolicy, Server};
pub use session::{OpenCall, Session, Step};
