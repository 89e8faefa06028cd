//! Host services for GPU programs: a server for the RPC of LLVM's libc.
//!
//! A program on a GPU has no system calls. LLVM's libc for GPUs calls the host instead, through mailboxes
//! in memory that both access: warps write packets and change a mailbox, and a server on the host executes
//! the requests. This crate is that server, for programs with their own GPU runtime: it needs only the
//! memory. The layout of the memory, the order of accesses, and the numbers of services are those of LLVM's
//! libc, so that programs linked with it are served unmodified.
//!
//! - `memory` (feature `server`): the memory, which is untrusted: no contents crash the server.
//! - `server` (feature `server`): finds calls of clients and answers them. A handler answers one packet of each lane of a
//!   warp, or, with the feature `blocking`, waits in its operations, on pooled coroutines: a waiting call blocks no other
//!   call.
//! - [`opcode`]: the numbers of services.
//! - `libc` (feature `std`): the services of LLVM's libc: streams, files, memory, the program's end.
//! - `client` (feature `server`): the other side of the protocol, for threads of the host.
//!
//! Without features the crate is the wire format: opcodes, layouts and generations. That needs no allocator and compiles
//! for devices: `gpurpc-device` is built on it.

#![cfg_attr(not(feature = "std"), no_std)]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "server")]
extern crate alloc;
// Unit tests that share a file with integration tests name public items through the crate.
#[cfg(all(test, feature = "std"))]
extern crate self as gpurpc;

// Compiles the example of the README.
#[cfg(all(doctest, feature = "files"))]
#[doc = include_str!("../README.md")]
mod readme {}

#[cfg(feature = "server")]
pub mod client;
mod error;
mod generation;
#[cfg(feature = "server")]
pub mod handshake;
mod lanes;
mod layout;
#[cfg(feature = "std")]
pub mod libc;
#[cfg(feature = "server")]
pub mod memory;
pub mod opcode;
mod opcode_encoding;
#[cfg(feature = "server")]
mod packets;
#[cfg(feature = "server")]
pub mod server;

pub use error::Error;
pub use generation::{Generation, PointerOffsets, Symbol};
pub use lanes::Lanes;
pub use layout::{ClientBytes, HEADER_SIZE, Layout, PACKET_SIZE, PACKET_WORDS, Packet, PortIndex};
pub use opcode_encoding::Opcodes;
#[cfg(feature = "server")]
pub use packets::{PacketCopies, Packets};
