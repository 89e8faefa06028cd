//! The pipeline of gpustub as plain values.
//!
//! `GpuStub.toml` → [`manifest::Manifest`] → [`plan::Plan`] → [`sources::SourceSet`], and
//! [`directives::Directive`]s for cargo. Every stage is a function of its arguments: no stage
//! reads the environment, a file, a clock or a process, and the same input gives the same bytes
//! on every host. Problems are returned as [`diag::Diagnostic`]s together with the value.

pub mod abi_table;
pub mod by_name;
#[cfg(feature = "tools")]
pub mod date;
mod decode;
#[cfg(feature = "device-link")]
pub mod device_link;
pub mod diag;
pub mod directives;
pub mod fields;
#[cfg(feature = "tools")]
#[doc(hidden)]
pub mod fuzz;
#[cfg(feature = "device-link")]
pub mod gpu_arch;
pub mod ids;
#[cfg(feature = "tools")]
pub mod imports;
pub mod library;
pub mod manifest;
#[cfg(any(feature = "archive", feature = "device-link"))]
pub mod offload;
pub mod plan;
pub mod planner;
pub mod reserved;
mod returns;
mod search_dir;
pub mod sources;
mod spanned;
pub mod suggest;
pub mod symbols;
pub mod target;
pub mod text;
pub mod version;
