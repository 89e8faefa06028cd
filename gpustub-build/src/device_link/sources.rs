//! The `.cu` files of a library, by the patterns that it names them with.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use gpustub_core::by_name::ByName;
use gpustub_core::diag::{Diagnostic, FILE_ERROR, NO_SOURCES};
use gpustub_core::manifest::Spanned;

use super::compile::Place;
use crate::Error;

/// The files that the patterns match, relative to the package, sorted, each once.
pub(super) fn all(
    place: &Place,
    library: &str,
    patterns: &[Spanned<String>],
) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    for Spanned { value, span } in patterns {
        let files = matching(place.package, library, value);
        found.extend(files.map_err(|wrong| {
            let error = Error::diagnostics(&[*wrong], &ByName::default());
            error.at(place.manifest.place(span))
        })?);
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
    let root = glob::Pattern::escape(utf_8(package)?);
    let paths = glob::glob(&format!("{root}/{pattern}"))
        .map_err(|e| bad(&format!("is no pattern: {e}")))?;
    let mut found = Vec::new();
    for path in paths {
        let path = path.map_err(|e| unread(e.path(), e.error()))?;
        if path.is_dir() {
            continue;
        }
        // nvcc says of whatever is in its way that there is no such file.
        File::open(&path).map_err(|e| unread(&path, &e))?;
        let relative = path.strip_prefix(package).unwrap_or(&path);
        found.push(relative.to_path_buf());
    }
    if is_pattern(pattern) {
        all_utf_8(&package.join(fixed(pattern)))?;
    }
    match found.is_empty() {
        false => Ok(found),
        true => Err(Box::new(bad("matches no file").help(format!(
            "it is relative to {}; `*` stays within a folder, `**` goes into all below it",
            package.display()
        )))),
    }
}

fn unread(path: &Path, why: &io::Error) -> Diagnostic {
    let message = format!("cannot read {}: {why}", path.display());
    Diagnostic::error(&FILE_ERROR, message)
}

fn utf_8(path: &Path) -> Result<&str, Box<Diagnostic>> {
    path.to_str().ok_or_else(|| {
        let message = format!("{path:?} cannot be told to cargo");
        let help = "use names of files and folders that are valid UTF-8 and have no line break";
        Box::new(Diagnostic::error(&FILE_ERROR, message).help(help))
    })
}

/// The crate leaves names out, without a word, that are not UTF-8.
fn all_utf_8(dir: &Path) -> Result<(), Box<Diagnostic>> {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return Ok(());
    };
    let is_source = |path: &PathBuf| path.extension().is_some_and(|end| end == "cu");
    let paths = entries.flatten().map(|entry| entry.path());
    let mut paths = paths.filter(is_source);
    paths.try_for_each(|path| utf_8(&path).map(|_| ()))
}

const WILDCARDS: [char; 3] = ['*', '?', '['];

fn is_pattern(text: &str) -> bool {
    text.contains(WILDCARDS)
}

/// The folder above the first wildcard; empty for the package.
fn fixed(pattern: &str) -> &str {
    let end = pattern.find(WILDCARDS).unwrap_or(pattern.len());
    pattern[..end]
        .rsplit_once('/')
        .map_or("", |(folder, _)| folder)
}

/// The folders in which a new file could match, for cargo to look at. Not the package itself,
/// which may hold the target directory.
pub(super) fn watched<'a>(patterns: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut folders: Vec<_> = patterns
        .filter(|pattern| is_pattern(pattern))
        .map(|pattern| fixed(pattern).to_owned())
        .filter(|folder| !folder.is_empty())
        .collect();
    folders.sort();
    folders.dedup();
    folders
}
