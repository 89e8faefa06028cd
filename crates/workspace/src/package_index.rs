//! Index of a package in the dependency graph.

use gpustub_core::define_id;

define_id! {
    /// Index of a package in the lists of a [`PackageGraph`](crate::graph::PackageGraph).
    pub struct PackageIndex;
}
