//! Finalizers whose package was renamed after they were written.

use std::collections::BTreeSet;

use crate::display_path::display_path;
use cargo_metadata::{Dependency, Package};
use gpustub_core::diag::{Diagnostic, OUT_OF_SYNC};

use super::naming::{PREFIX, name, place};
use crate::graph::Graph;
use crate::workspace::directory;

/// Former names under which a package depends on its finalizer, as `sync` has written them.
pub fn former(package: &Package) -> BTreeSet<&str> {
    let own = name(package);
    on_directory(package)
        .filter(|one| one.rename.is_none() && one.name.starts_with(PREFIX) && one.name != own)
        .map(|one| one.name.as_str())
        .collect()
}

/// Reports that the finalizer cannot be renamed, because the user's files name it: cargo could not
/// read the workspace afterwards.
pub fn refused(graph: &Graph, package: &Package) -> Option<Diagnostic> {
    let dir = place(package);
    let new = name(package);
    let mut packages = graph.packages.iter();
    let old = packages.find(|one| directory(one) == dir && *one.name != *new)?;
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
pub fn named_by_hand<'a>(graph: &Graph<'a>, package: &Package) -> Option<&'a Package> {
    let dir = place(package);
    let own = on_directory(package).any(|one| one.rename.is_some() || one.target.is_some());
    let mut all = graph.packages.iter().zip(&graph.edges);
    let (user, _) = all.find(|(user, edges)| {
        if user.id == package.id {
            own
        } else {
            edges
                .iter()
                .any(|edge| directory(graph.packages[edge.to]) == dir)
        }
    })?;
    Some(*user)
}

/// Dependencies of a package on the directory of its finalizer.
fn on_directory(package: &Package) -> impl Iterator<Item = &Dependency> {
    let dir = place(package);
    let all = package.dependencies.iter();
    all.filter(move |one| one.path.as_ref().is_some_and(|path| *path == dir))
}
