//! The rules of `cargo gpustub check`: what keeps a program, library or wheel that uses GPUs from
//! starting, or from being installed, where it was meant to.
//!
//! [`read`](mod@read) makes [`Package`]s of files, directories and archives: facts, no bytes. The
//! [`RULES`] look at each and give diagnostics; a [`policy`] says how seriously each is taken.
//! Nothing here prints, and nothing but `read` touches a file.

mod crates;
mod evidence;
#[doc(hidden)]
pub mod fuzz;
pub mod gpu;
mod imports;
mod label;
pub mod names;
pub mod package;
mod places;
pub mod policy;
pub mod read;
mod related;
mod rules;
mod shown;
pub mod tag;
pub mod wheel;
pub mod workspace;

pub use imports::imports;
pub use package::{Content, Flaw, FlawKind, Image, Kind, Member, Package};
pub use related::gpu_images;
pub use rules::workspace::{
    MISSING_HEADER_VERSION, MISSING_PROVIDER, OUT_OF_SYNC, UNKNOWN_LOAD_NAME, UNUSED_ALLOW,
    real_names,
};
pub use rules::{Findings, Look, RULES, Rule, check, check_workspace, sorted};
