//! The rules of `cargo gpustub check`: what keeps a program, library or wheel that uses GPUs from
//! starting, or from being installed, where it was meant to.
//!
//! [`read`](mod@read) makes a [`Package`] of files, directories and archives: facts, no bytes. The
//! [`RULES`] look at it and give diagnostics; a [`policy`] says how seriously each is taken.
//! Nothing here prints, and nothing but `read` touches a file.

pub mod gpu;
mod label;
pub mod package;
mod places;
pub mod policy;
pub mod read;
mod rules;
pub mod tag;
pub mod wheel;

pub use package::{Content, Image, Kind, Member, Package};
pub use rules::{Look, RULES, Rule, check};
