//! Modules of bitcode, split into members by LLVM's textual form, which llvm-dis writes and llvm-as reads.
//!
//! Definitions that cannot be in different members are a *unit*. A member has units that the same modules have, up to a
//! size: each member repeats types, declarations and metadata.

mod emit;
mod global;
mod groups;
mod layers;
mod lexer;
mod llvm;
mod module;
mod prepared;
mod reason;
mod references;
mod units;

pub use layers::{SplitBitcode, UnsplitModule};

#[cfg(test)]
mod tests;
