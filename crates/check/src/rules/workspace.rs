//! What is declared, depended on and configured in a cargo workspace.

mod command;
mod config;
mod declared;
mod graph;

pub use command::{
    DYLIB_CRATE, NO_PROVIDER, OUT_OF_SYNC, TWO_PROVIDERS, UNUSED_ALLOWANCE, WRONG_HEADER,
};
pub use config::{FORCED_OVERRIDE, STATIC_TARGET};
pub use declared::{
    HEADER_TOO_NEW, MACHINE_SEARCH_DIR, MISSING_FALLBACK, NO_HEADER, UNKNOWN_LOAD_NAME,
    UNUSABLE_MAJOR, real_names,
};
pub use graph::{BUILD_NEEDS_TOOLKIT, HEADER_MIX, STATIC_CUDART_DEPENDENCY, UNSTUBBED_LIBRARY};
