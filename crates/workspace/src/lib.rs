//! Cargo workspaces: packages, their `GpuStub.toml`, the dependency graph, and the finalizer crates that
//! device links need. Also edits of their files, and the output of `cargo gpustub`: diagnostics in each
//! `--message-format`, status lines, and changes to files as values.

pub mod cargo;
pub mod cargo_tree;
pub mod codes;
pub mod device_graph;
pub mod directories;
pub mod display_path;
pub mod edit;
pub mod environment;
pub mod error;
pub mod finalizer;
pub mod graph;
pub mod helper_source;
pub mod imports;
pub mod lock;
pub mod ops;
pub mod output;
pub mod package_index;
pub mod providers;
pub mod report;
pub mod selection;
pub mod shared_root;
pub mod shell;
pub mod status_line;
pub mod system;
pub mod tables;
pub mod temporary;
mod triples;
pub mod workspace;
