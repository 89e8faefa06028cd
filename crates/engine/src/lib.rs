//! Engine of `gpustub-build` and `cargo-gpustub`.
//!
//! Build scripts use the crate `gpustub-build`, whose interface is stable. This crate has no stable
//! interface: any release may change it, and both users require the version that they were released with.
//!
//! [`build`] does the work of a build script. The modules offer the steps to the subcommand:
//! [`toolchain`] compiles generated sources, [`device_link`] handles libraries of relocatable CUDA
//! code, [`archive`] writes super-archives.

#[cfg(feature = "archive")]
pub mod archive;
mod build;
#[cfg(feature = "device-link")]
pub mod device_link;
mod env;
mod error;
mod files;
#[cfg(feature = "device-link")]
mod fingerprint;
mod input;
mod lock;
mod output;
mod settings;
#[cfg(feature = "device-link")]
mod store;
mod stubs;
mod target_dir;
pub mod toolchain;

pub use build::build;
pub use env::Env;
pub use error::{Error, Location};
pub use files::write_sources;
pub use output::Output;
pub use settings::Settings;
