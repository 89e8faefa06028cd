//! Finalizers whose package was renamed after they were written.

use std::collections::BTreeSet;

use crate::display_path::display_path;
use cargo_metadata::{Dependency, Package};
use gpustub_core::diag::{Diagnostic, OUT_OF_SYNC};

use super::naming::{PREFIX, finalizer_directory, finalizer_name};
use crate::graph::PackageGraph;
use crate::workspace::directory;

/// Former names under which a package depends on its finalizer, as `sync` has written them.
pub fn former(package: &Package) -> BTreeSet<&str> {
    let current = finalizer_name(package);
    dependencies_on_finalizer(package)
        .filter(|dependency| dependency.rename.is_none())
        .map(|dependency| dependency.name.as_str())
        .filter(|name| name.starts_with(PREFIX) && *name != current)
        .collect()
}

/// Reports that the finalizer cannot be renamed, because the user's files name it: cargo could not
/// read the workspace afterwards.
pub fn conflict(graph: &PackageGraph, package: &Package) -> Option<Diagnostic> {
    let dir = finalizer_directory(package);
    let new = finalizer_name(package);
    let old = graph
        .packages
        .iter()
        .find(|finalizer| directory(finalizer) == dir && *finalizer.name != *new)?;
    let user = named_by_hand(graph, package)?;
    let message = format!(
        "the finalizer of `{}` is called `{}` and becomes `{new}`, and `{}` names it by hand",
        package.name, old.name, user.name
    );
    let help = format!(
        "remove `{}` from that Cargo.toml, run `cargo gpustub sync`, and name `{new}` there",
        old.name
    );
    let file = display_path(user.manifest_path.as_std_path());
    Some(
        Diagnostic::error(&OUT_OF_SYNC, message)
            .with_origin(&file, 0..0)
            .help(help),
    )
}

/// A package whose dependency on the finalizer of this one was not written by `sync`.
pub fn named_by_hand<'a>(graph: &PackageGraph<'a>, package: &Package) -> Option<&'a Package> {
    let dir = finalizer_directory(package);
    for (&user, edges) in graph.packages.iter().zip(&graph.edges) {
        let is_by_hand = if user.id == package.id {
            dependencies_on_finalizer(package)
                .any(|dependency| dependency.rename.is_some() || dependency.target.is_some())
        } else {
            (edges.iter()).any(|edge| directory(graph.packages[edge.to]) == dir)
        };
        if is_by_hand {
            return Some(user);
        }
    }
    None
}

/// Dependencies of a package on the directory of its finalizer.
fn dependencies_on_finalizer(package: &Package) -> impl Iterator<Item = &Dependency> {
    let dir = finalizer_directory(package);
    package
        .dependencies
        .iter()
        .filter(move |dependency| dependency.path.as_ref().is_some_and(|path| *path == dir))
}
