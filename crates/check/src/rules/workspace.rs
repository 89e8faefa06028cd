//! Rules on declarations, dependencies and configuration of a cargo workspace.

mod command;
mod config;
mod graph;
mod tables;

pub use command::{
    DYLIB_CRATE, HEADER_VERSION_MISMATCH, INCOMPATIBLE_STUBS, MISSING_PROVIDER, OUT_OF_SYNC,
    UNUSED_ALLOW,
};
pub use config::{FORCED_LIBRARY_PATH, STATIC_TARGET};
pub use graph::{
    BUILD_TIME_TOOLKIT, DLOPENING_DEPENDENCY, MIXED_HEADER_VERSIONS, STATIC_CUDART_DEPENDENCY,
    UNSTUBBED_LIBRARY,
};
pub use tables::{
    MISSING_FALLBACK, NONPORTABLE_SEARCH_DIR, UNKNOWN_LOAD_NAME, UNSUPPORTED_HEADER_VERSION,
    UNUSABLE_MAJOR, newer_headers, real_names,
};
