//! The services of LLVM's libc, called as its client does.

#[cfg(feature = "files")]
mod files;
mod hostile;
mod print;
mod program;
mod rig;
mod streams;
