//! Source files that are the root of targets of several packages.

use std::path::Path;

use crate::codes::SHARED_ROOT;
use crate::display_path::display_path;
use cargo_metadata::{DependencyKind, Package};
use gpustub_core::diag::Diagnostic;

use crate::workspace::library;

/// Packages other than `package` with a target whose root is `path`.
pub fn sharing_packages<'p>(
    members: &[&'p Package],
    package: &Package,
    path: &Path,
) -> impl Iterator<Item = &'p Package> {
    // Cargo spells a path always the same; a comparison by component is slow in large workspaces.
    let path = path.as_os_str();
    members.iter().copied().filter(move |member| {
        member.id != package.id
            && (member.targets.iter()).any(|target| target.src_path.as_os_str() == path)
    })
}

/// Rejects a line that names crate `name` in a root file of `package`, if the file is also a root of
/// a package that does not know the crate: one of both would not compile.
pub fn unknown_crate(
    members: &[&Package],
    package: &Package,
    path: &Path,
    name: &str,
) -> Option<Diagnostic> {
    let unaware = sharing_packages(members, package, path).find(|member| !knows(member, name))?;
    let root = display_path(path);
    let message = format!(
        "`{root}` is the root of targets of packages `{}` and `{}`, and crate `{name}` of the first is \
         unknown in the second",
        package.name, unaware.name
    );
    let help = format!(
        "write a root file for each package, which contains `include!(\"…\");` with the path of `{root}`"
    );
    let manifest = display_path(package.manifest_path.as_std_path());
    let error = Diagnostic::error(&SHARED_ROOT, message);
    Some(error.with_origin(manifest, 0..0).help(help))
}

/// Whether all targets of a package can name a crate.
fn knows(package: &Package, name: &str) -> bool {
    if library(package).is_some_and(|library| library.name.replace('-', "_") == name) {
        return true;
    }
    package.dependencies.iter().any(|dependency| {
        let key = dependency.rename.as_ref().unwrap_or(&dependency.name);
        dependency.kind == DependencyKind::Normal
            && !dependency.optional
            && dependency.target.is_none()
            && key.replace('-', "_") == name
    })
}
