//! Paths in messages.

use std::path::Path;

/// A path, relative to the current directory if it is below it.
pub fn display_path(path: &Path) -> String {
    let current = std::env::current_dir().unwrap_or_default();
    slashes(path.strip_prefix(current).unwrap_or(path))
}

/// A path with `/` between its parts.
pub fn slashes(path: &Path) -> String {
    let text = path.display().to_string();
    if cfg!(windows) {
        text.replace('\\', "/")
    } else {
        text
    }
}
