//! A TOML text as a tree with spans. Quoted headings are those of the specification, TOML 1.1
//! (toml.io/en/v1.1.0), a superset of TOML 1.0.
//!
//! No crate reads the grammar: every user compiles what reads `GpuStub.toml`. The tests compare trees and spans with
//! those of the `toml` crate, whose grammar the subcommand edits with.

mod reader;
mod scalar;
mod tree;

pub(crate) use reader::parse;
#[cfg(test)]
use tree::SyntaxError;
pub(crate) use tree::{Data, Entries, Key, Node};

#[cfg(test)]
mod tests;
