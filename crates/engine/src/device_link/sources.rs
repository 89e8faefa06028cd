//! Finds the sources of a library by its patterns.

use std::fs::File;
use std::path::{Path, PathBuf};

use gpustub_core::diag::{Diagnostic, UNMATCHED_SOURCES};
use gpustub_core::manifest::{Spanned, in_out_dir, is_device_source};

use super::context::Context;
use super::directories::Directories;
use crate::error::Error;
use crate::files::{self, fixed_part, is_pattern};

pub(super) fn is_generated(path: &str) -> bool {
    in_out_dir(path).is_some()
}

/// Files that the patterns match, sorted, each once: relative to the package, or absolute in
/// `OUT_DIR`.
pub(super) fn matching_files(
    context: &Context,
    library: &str,
    patterns: &[Spanned<String>],
) -> Result<Vec<PathBuf>, Error> {
    let mut files = Vec::new();
    for Spanned { value, span } in patterns {
        let matched = matching(context.directories(), library, value).map_err(|diagnostic| {
            Error::from(diagnostic).with_location(context.manifest.location(span))
        })?;
        files.extend(matched);
    }
    files.sort();
    files.dedup();
    Ok(files)
}

/// Files that one pattern of a library matches, relative to the package, or absolute in `OUT_DIR`:
/// at least one, except for a pattern in `OUT_DIR` before the build script runs.
pub fn matching(
    directories: Directories<'_>,
    library: &str,
    pattern: &str,
) -> Result<Vec<PathBuf>, Box<Diagnostic>> {
    let (Some(base), rest) = directories.split(pattern) else {
        return Ok(Vec::new());
    };
    if is_pattern(rest) {
        check_names(&base.join(fixed_part(rest)))?;
    }
    let paths = files::matching(base, rest, &|problem| {
        let message = format!("`sources` of device-link.{library}: `{pattern}` {problem}");
        Diagnostic::error(&UNMATCHED_SOURCES, message).help(files::pattern_help(base))
    })?;
    let mut sources = Vec::new();
    for path in paths {
        // Opened because nvcc reports every failure to open a file as "no such file".
        File::open(&path).map_err(|e| files::unread(&path, &e))?;
        sources.push(match path.strip_prefix(base) {
            Ok(relative) if !is_generated(pattern) => relative.to_path_buf(),
            _ => path,
        });
    }
    Ok(sources)
}

/// Rejects names of sources that are not UTF-8, which `glob` silently skips.
fn check_names(dir: &Path) -> Result<(), Box<Diagnostic>> {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return Ok(());
    };
    for entry in entries.flatten() {
        let path = entry.path();
        if is_device_source(&path) {
            files::text(&path)?;
        }
    }
    Ok(())
}

/// Directories in which a new file could match, for cargo to watch; without those that the script
/// writes after its start, which cargo compares with.
pub(super) fn watched<'a>(patterns: impl Iterator<Item = &'a str>) -> Vec<String> {
    files::watched(patterns.filter(|pattern| !is_generated(pattern)))
}
