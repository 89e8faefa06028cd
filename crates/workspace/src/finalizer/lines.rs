//! Lines about finalizers in the source files of a package.

use std::path::Path;

use crate::edit::use_line;
use crate::error::Result;
use crate::ops::Pending;
use cargo_metadata::Package;

use super::naming::finalizer_directory;

/// Removes lines about a finalizer of another name, or of none, from files of a package.
pub fn remove_stale_lines<'p>(
    package: &Package,
    paths: impl IntoIterator<Item = &'p Path>,
    name: Option<&str>,
    pending: &mut Pending,
) -> Result<()> {
    for path in paths.into_iter().filter(|path| path.exists()) {
        // Cargo reports unreadable files.
        let Ok(text) = pending.read(path) else {
            continue;
        };
        let text = use_line::retain(&text, &use_line::DEVICE_LINK, |crate_name| {
            Some(crate_name) == name || is_other_dependency(package, crate_name)
        });
        pending.write(path, text)?;
    }
    Ok(())
}

/// Whether a crate is a dependency other than the package's finalizer: the finalizer of another
/// package, which the user names.
fn is_other_dependency(package: &Package, crate_name: &str) -> bool {
    let directory = finalizer_directory(package);
    package.dependencies.iter().any(|dependency| {
        let key = dependency.rename.as_ref().unwrap_or(&dependency.name);
        key.replace('-', "_") == crate_name
            && dependency
                .path
                .as_ref()
                .is_none_or(|path| *path != directory)
    })
}

/// Removes the lines about a finalizer from a package that has none.
pub fn remove_lines(package: &Package, pending: &mut Pending) -> Result<()> {
    let paths = (package.targets.iter()).map(|target| target.src_path.as_std_path());
    remove_stale_lines(package, paths, None, pending)
}
