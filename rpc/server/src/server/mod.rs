//! The end that answers.

mod budget;
mod device;
mod fault;
mod guard;
mod handler;
mod port;
#[cfg(feature = "std")]
mod serving;
#[cfg(feature = "std")]
mod strand;
mod woken;

pub use budget::{Budget, Limits, Reservation};
pub use device::{Device, Opcodes};
pub use fault::Fault;
pub use handler::{Dropped, Handlers, Serving};
pub use port::{Messages, Port};
#[cfg(feature = "std")]
pub use serving::{DeviceId, Idle, Server};
#[cfg(feature = "std")]
pub use strand::{Outcome, Strand};
