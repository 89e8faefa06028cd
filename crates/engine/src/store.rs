//! Outputs that all build scripts of a target directory share: what `cargo build` compiled, `cargo
//! clippy` finds here.
//!
//! ```text
//! <target directory>/gpustub-store/
//!     <step>/                hash of a command and its surroundings; locked by the process that runs it
//!         <inputs>/          hash of the contents of the files that the command read
//!             record         the step, these files with their hashes, and hashes of the outputs
//!             0, 1 …         outputs, of which OUT_DIR has hard links
//!     <step>.<process>       entry that is being written
//!     pruned                 time of the last pruning (`prune.rs`)
//! ```
//!
//! An entry is complete before it is renamed to its place, and its hashes are compared at each use.
//! The store only saves time: where it cannot be read or written, each build script runs its
//! commands itself.

mod hash;
mod lock;
mod prune;
mod record;
