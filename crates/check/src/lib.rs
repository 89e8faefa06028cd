//! The rules of `cargo gpustub check`: faults that keep a program, library or wheel that uses GPUs from
//! starting, or from being installed, on other machines.
//!
//! [`read`](mod@read) converts files, directories and archives to [`Package`]s: facts, no bytes. The
//! [`RULES`] return diagnostics for each package; a [`policy`] sets their levels.
//! The crate prints nothing, and only `read` accesses files.

mod display_path;
pub mod evidence;
#[doc(hidden)]
pub mod fuzz;
pub mod gpu_file;
mod gpu_relation;
mod imports;
pub mod known_crates;
pub mod package;
pub mod platform_tag;
pub mod policy;
pub mod read;
pub mod remedy;
mod rule;
mod rules;
pub mod search_dirs;
pub mod symbol_names;
mod toolkit_label;
pub mod user_defined;
pub mod wheel;
pub mod workspace;

pub use gpu_relation::{ImageId, LoadGraph, gpu_images};
pub use imports::imports;
pub use package::{ContainerKind, Content, Flaw, FlawKind, Member, Package, PackageImage};
pub use rule::{Check, Findings, Rule};
pub use rules::workspace::{
    DLOPENING_DEPENDENCY, MISSING_PROVIDER, MIXED_HEADER_VERSIONS, OUT_OF_SYNC, UNKNOWN_LOAD_NAME,
    UNUSED_ALLOW, newer_headers, real_names,
};
pub use rules::{RULES, check, check_process, check_workspace, sorted};
