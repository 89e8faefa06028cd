//! The end that answers.

mod budget;
mod device;
mod fault;
mod guard;
mod handler;
mod port;
mod woken;

pub use budget::Limits;
pub use device::{Device, Opcodes};
pub use fault::Fault;
pub use handler::{Dropped, Handlers, Serving};
pub use port::{Messages, Port};
