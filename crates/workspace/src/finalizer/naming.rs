//! Names of finalizers: packages, crates and directories.

use std::path::PathBuf;

use cargo_metadata::Package;

use crate::workspace::folder;

/// The folder of a package's finalizer, in the package's own.
pub const FOLDER: &str = "gpustub-final";

/// Beginning of the names of all finalizers.
pub const PREFIX: &str = "gpustub-final-";

/// The name of a package's finalizer.
pub fn name(package: &Package) -> String {
    format!("{PREFIX}{}", package.name)
}

/// Whether a finalizer is what this package is.
pub fn is_one(package: &Package) -> bool {
    package.name.starts_with(PREFIX)
}

/// What Rust code calls a package's finalizer.
pub fn crate_name(package: &Package) -> String {
    name(package).replace('-', "_")
}

/// The folder of a package's finalizer.
pub fn place(package: &Package) -> PathBuf {
    folder(package).join(FOLDER)
}
