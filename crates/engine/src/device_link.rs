//! Libraries of relocatable code of CUDA and HIP (RDC), and the one device link of a program that has them.
//!
//! ```text
//! OUT_DIR/gpustub/device-link/
//!     objects/<library>/     an object, a list of its inputs and a fingerprint for each source
//!     lib/                   the archives and shared libraries, for the linker and the loader
//!     finals/<library>/      the device link of a shared library
//!     modules/<module>/      the device link of a module
//!     libraries              metadata for dependents (`metadata.rs`)
//!     link/                  the device link of the package's programs
//! OUT_DIR/gpustub/exports.rs code of a finalizer crate
//! ```

mod beside;
mod closure;
mod compile;
mod compiler;
mod context;
mod cuda_clang;
mod describe;
mod directories;
mod disabled;
mod exports;
mod external;
mod final_link;
mod generated;
mod graph;
mod hip;
mod jobs;
mod libraries;
mod loadable;
mod lto;
pub mod metadata;
mod modules;
mod nvcc;
mod nvcc_report;
mod nvlink;
pub(crate) mod requested;
mod runtime;
mod shared;
pub mod sources;
mod symbol_index;
mod tables;
pub mod visibility;

pub use directories::Directories;
pub use external::check_archive;
pub use final_link::Delivery;
pub use hip::{HIP_SOURCES, hip_symbols};
pub use loadable::check_loadable;
pub(crate) use modules::build_empty_declared;
pub(crate) use tables::{build_declared, build_nothing};
