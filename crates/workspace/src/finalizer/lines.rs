//! Lines about finalizers in the source files of a package.

use std::path::Path;

use crate::edit::use_line;
use crate::error::Result;
use crate::ops::Pending;
use cargo_metadata::Package;

use super::naming::place;

/// Removes lines about a finalizer of another name, or of none, from files of a package.
pub fn remove_stale_lines<'p>(
    package: &Package,
    paths: impl IntoIterator<Item = &'p Path>,
    name: Option<&str>,
    pending: &mut Pending,
) -> Result<()> {
    let place = place(package);
    // The finalizer of another package, which the user names.
    let is_other = |name: &str| {
        package.dependencies.iter().any(|one| {
            let known = one.rename.as_ref().unwrap_or(&one.name).replace('-', "_");
            known == name && one.path.as_ref().is_none_or(|path| *path != place)
        })
    };
    for path in paths.into_iter().filter(|path| path.exists()) {
        // Cargo reports unreadable files.
        let Ok(text) = pending.read(path) else {
            continue;
        };
        let keep = |one: &str| Some(one) == name || is_other(one);
        let new = use_line::retain(&text, &use_line::DEVICE_LINK, keep);
        pending.write(path, new)?;
    }
    Ok(())
}

/// Removes the lines about a finalizer from a package that has none.
pub fn remove_lines(package: &Package, pending: &mut Pending) -> Result<()> {
    let paths = package.targets.iter();
    let paths = paths.map(|target| target.src_path.as_std_path());
    remove_stale_lines(package, paths, None, pending)
}
