#![no_std]
#![cfg_attr(
    target_arch = "nvptx64",
    feature(link_llvm_intrinsics, stdarch_nvptx),
    allow(internal_features)
)]
#![cfg_attr(
    target_arch = "amdgpu",
    feature(link_llvm_intrinsics, stdarch_amdgpu),
    allow(internal_features)
)]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![doc = include_str!("../README.md")]

#[cfg(not(any(target_arch = "nvptx64", target_arch = "amdgpu")))]
extern crate std;

// Compiles the example of the page.
#[cfg(doctest)]
#[doc = include_str!("../../docs/rpc.md")]
mod page {}

pub mod alloc;
mod arch;
mod call;
mod client;
mod error;
pub mod fs;
#[cfg(not(any(target_arch = "nvptx64", target_arch = "amdgpu")))]
pub mod host;
pub mod io;
pub mod panic;
mod print;
pub mod process;
mod stream;
pub mod thread;

pub use call::Call;
