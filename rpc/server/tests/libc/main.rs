//! The services of LLVM's libc, asked as its client asks.

#[cfg(feature = "files")]
mod files;
mod hostile;
mod print;
mod program;
mod rig;
mod streams;
