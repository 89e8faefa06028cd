//! Source files that are the root of targets of several packages.

use std::path::Path;

use crate::codes::SHARED_ROOT;
use crate::display_path::display_path;
use cargo_metadata::{DependencyKind, Package};
use gpustub_core::diag::Diagnostic;

use crate::workspace::library;

/// Packages other than `package` with a target whose root is `path`.
pub fn others<'p>(
    members: &[&'p Package],
    package: &Package,
    path: &Path,
) -> impl Iterator<Item = &'p Package> {
    // Cargo spells a path always the same; a comparison by component is slow in large workspaces.
    let path = path.as_os_str();
    let has = move |one: &&Package| {
        let mut targets = one.targets.iter();
        targets.any(|target| target.src_path.as_os_str() == path) && one.id != package.id
    };
    members.iter().copied().filter(has)
}

/// Rejects a line that names crate `name` in a root file of `package`, if the file is also a root of
/// a package that does not know the crate: one of both would not compile.
pub fn refused(
    members: &[&Package],
    package: &Package,
    path: &Path,
    name: &str,
) -> Option<Diagnostic> {
    let other = others(members, package, path).find(|other| !knows(other, name))?;
    let shown = display_path(path);
    let message = format!(
        "`{shown}` is the root of targets of packages `{}` and `{}`, and crate `{name}` of the first is \
         unknown in the second",
        package.name, other.name
    );
    let help = format!(
        "write a root file for each package, which contains `include!(\"…\");` with the path of `{shown}`"
    );
    let manifest = display_path(package.manifest_path.as_std_path());
    let error = Diagnostic::error(&SHARED_ROOT, message);
    Some(error.with_origin(manifest, 0..0).help(help))
}

/// Whether all targets of a package can name a crate.
fn knows(package: &Package, name: &str) -> bool {
    let own = library(package).map(|library| library.name.as_str());
    let dependencies = package.dependencies.iter().filter(|dependency| {
        dependency.kind == DependencyKind::Normal
            && !dependency.optional
            && dependency.target.is_none()
    });
    let names = dependencies.map(|one| one.rename.as_ref().unwrap_or(&one.name).as_str());
    let mut names = own.into_iter().chain(names);
    names.any(|one| one.replace('-', "_") == name)
}
