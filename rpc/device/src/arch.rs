//! Operations that differ between targets. Lane masks have 64 bits on all of them.

#[cfg(target_arch = "amdgpu")]
mod amdgpu;
#[cfg(target_arch = "nvptx64")]
mod nvptx64;
#[cfg(not(any(target_arch = "nvptx64", target_arch = "amdgpu")))]
pub(crate) mod simulated;

#[cfg(target_arch = "amdgpu")]
pub(crate) use amdgpu::*;
#[cfg(target_arch = "nvptx64")]
pub(crate) use nvptx64::*;
#[cfg(not(any(target_arch = "nvptx64", target_arch = "amdgpu")))]
pub(crate) use simulated::*;
