//! Cargo workspaces: packages, their `GpuStub.toml`, the dependency graph, and the finalizer crates that
//! device links need.

pub mod cargo_tree;
pub mod device_graph;
pub mod directories;
pub mod environment;
pub mod finalizer;
pub mod graph;
pub mod helper_source;
pub mod imports;
pub mod lock;
pub mod package_index;
pub mod providers;
pub mod selection;
pub mod shared_root;
pub mod tables;
pub mod workspace;
