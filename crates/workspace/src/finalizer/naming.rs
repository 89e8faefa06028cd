//! Names of finalizers: packages, crates and directories.

use std::path::PathBuf;

use cargo_metadata::Package;

use crate::workspace::directory;

/// Directory of a package's finalizer, relative to the package.
pub const DIRECTORY: &str = "gpustub-final";

/// Prefix of the names of all finalizers.
pub const PREFIX: &str = "gpustub-final-";

/// First line of the files that `sync` writes into a finalizer and may change or remove.
const HEAD: &str = "# Written by `cargo gpustub sync`; changes are lost.";

/// Whether `sync` wrote a file of a finalizer. Git may have changed its line breaks.
pub fn is_generated(text: &str) -> bool {
    text.lines().next() == Some(HEAD)
}

/// Name of a package's finalizer.
pub fn finalizer_name(package: &Package) -> String {
    format!("{PREFIX}{}", package.name)
}

/// Whether a package is a finalizer.
pub fn is_finalizer(package: &Package) -> bool {
    package.name.starts_with(PREFIX)
}

/// Crate name of a package's finalizer.
pub fn crate_name(package: &Package) -> String {
    finalizer_name(package).replace('-', "_")
}

/// Path of the directory of a package's finalizer.
pub fn finalizer_directory(package: &Package) -> PathBuf {
    directory(package).join(DIRECTORY)
}
