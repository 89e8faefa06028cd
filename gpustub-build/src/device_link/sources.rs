//! The `.cu` files of a library, by the patterns that it names them with.

use std::path::{Path, PathBuf};

use gpustub_core::by_name::ByName;
use gpustub_core::diag::{Diagnostic, FILE_ERROR, NO_SOURCES};

use crate::Error;

/// The files that the patterns match, relative to the package, sorted, each once.
pub(super) fn all(
    package: &Path,
    library: &str,
    patterns: &[String],
) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    for pattern in patterns {
        let files = matching(package, library, pattern);
        found.extend(files.map_err(|error| Error::diagnostics(&[*error], &ByName::default()))?);
    }
    found.sort();
    found.dedup();
    Ok(found)
}

/// The files that one pattern of a library matches, relative to the package; at least one.
pub fn matching(
    package: &Path,
    library: &str,
    pattern: &str,
) -> Result<Vec<PathBuf>, Box<Diagnostic>> {
    let bad = |what: &str| {
        let message = format!("`sources` of device-link.{library}: `{pattern}` {what}");
        Diagnostic::error(&NO_SOURCES, message)
    };
    let unread = |path: &Path, why: &str| {
        Diagnostic::error(
            &FILE_ERROR,
            format!("cannot read {}: {why}", path.display()),
        )
    };
    let root = package.to_str();
    let root = root.ok_or_else(|| unread(package, "its name is not UTF-8"))?;
    let root = glob::Pattern::escape(root);
    let paths = glob::glob(&format!("{root}/{pattern}"))
        .map_err(|e| Box::new(bad(&format!("is no pattern: {e}"))))?;
    let mut found = Vec::new();
    for path in paths {
        let path = path.map_err(|e| unread(e.path(), &e.error().to_string()))?;
        let relative = path.strip_prefix(package).unwrap_or(&path);
        found.push(relative.to_path_buf());
    }
    match found.is_empty() {
        false => Ok(found),
        true => Err(Box::new(bad("matches no file").help(format!(
            "it is relative to {}; `*` stays within a folder, `**` goes into all below it",
            package.display()
        )))),
    }
}
