//! Server side of the protocol.

mod budget;
mod catch_panic;
mod device;
mod doorbell;
mod fault;
mod handler;
mod port;
mod ready_set;
#[cfg(feature = "std")]
mod serial_executor;
#[cfg(feature = "std")]
mod serving;

pub use crate::generation::Opcodes;
pub use budget::{Budget, Limits, Reservation};
pub use device::Device;
pub use doorbell::Doorbell;
pub use fault::Fault;
pub use handler::{DroppedCall, HandlerFuture, Handlers};
pub use port::{Messages, Port};
#[cfg(feature = "std")]
pub use serial_executor::{JobFuture, SerialExecutor};
#[cfg(feature = "std")]
pub use serving::{DeviceId, IdlePolicy, Server};
