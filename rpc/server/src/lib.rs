//! Host services for GPU programs: a server for the RPC of LLVM's libc.
//!
//! A program on a GPU has no system calls. LLVM's libc for GPUs asks the host instead, through mailboxes
//! in memory that both see: warps write packets and change a mailbox, and a server on the host does what
//! they ask for. This is that server, for programs that bring their own GPU runtime: it needs the memory
//! only. The layout of the memory, the order of accesses, and the numbers of services are those of LLVM's
//! libc, so that programs linked with it are served as they are.
//!
//! - [`memory`]: the memory, which is never trusted: whatever a device writes there, the server lives.
//! - [`server`]: finds what clients ask for, and answers. Handlers are `async`: a call that waits keeps no
//!   other one waiting.
//! - [`opcode`]: the numbers of services.
//! - `host` (feature `std`): the services of LLVM's libc: streams, files, memory, the program's end.
//! - [`client`]: the other end, for threads of the host.

#![cfg_attr(not(feature = "std"), no_std)]

extern crate alloc;
// Tests of this crate that lie beside those with its public items have the same names for them.
#[cfg(all(test, feature = "std"))]
extern crate self as gpurpc;

// The example of the README compiles.
#[cfg(all(doctest, feature = "files"))]
#[doc = include_str!("../README.md")]
mod readme {}

pub mod client;
mod error;
#[cfg(feature = "std")]
pub mod host;
mod layout;
pub mod memory;
pub mod opcode;
mod packets;
pub mod server;
pub mod turn;

pub use error::Error;
pub use layout::{CLIENT_SIZE, HEADER_SIZE, Layout, MAX_PORTS, PACKET_SIZE, PACKET_WORDS};
pub use packets::{Lanes, Packets};
