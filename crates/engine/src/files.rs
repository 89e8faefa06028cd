//! Files in OUT_DIR.

use std::fs;
use std::path::{Path, PathBuf};

use gpustub_core::diag::{Diagnostic, IO_ERROR};
use gpustub_core::sources::SourceSet;

use crate::error::Error;

/// Writes the sources into `dir`, creating it; files with the same bytes are not written.
pub fn write_sources(dir: &Path, sources: &SourceSet) -> Result<(), Error> {
    for (path, text) in sources {
        write_if_changed(&dir.join(path), text.as_bytes())?;
    }
    Ok(())
}

/// Writes a file and creates its directories, unless it already has these bytes.
pub(crate) fn write_if_changed(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    if fs::read(path).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir).map_err(|e| Error::io("create the directory", dir, &e))?;
    }
    let new = sibling(path);
    fs::write(&new, bytes).map_err(|e| Error::io("write", &new, &e))?;
    rename(&new, path)
}

/// Directory of cargo's own libraries, which `cargo run` and `cargo test` search, of a script with this OUT_DIR:
/// `<profile>/build/<package>/out`. `None`: another layout.
pub(crate) fn cargo_libraries(out_dir: &Path) -> Option<PathBuf> {
    let build = out_dir.ancestors().nth(2)?;
    let deps = build.parent()?.join("deps");
    (build.ends_with("build") && deps.is_dir()).then_some(deps)
}

/// Makes `link` another name of the file `to`; a symbolic one, so that it follows a file that is
/// written again.
#[cfg(all(feature = "device-link", unix))]
pub(crate) fn link(to: &Path, link: &Path) -> Result<(), Error> {
    use std::os::unix::fs::symlink;

    if fs::read_link(link).is_ok_and(|old| old == to) {
        return Ok(());
    }
    let new = sibling(link);
    match symlink(to, &new) {
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {
            fs::remove_file(&new).and_then(|()| symlink(to, &new))
        }
        result => result,
    }
    .map_err(|e| Error::io("write", &new, &e))?;
    rename(&new, link)
}

/// Copies the file instead, on systems where symbolic links need rights that builds do not have.
#[cfg(all(feature = "device-link", not(unix)))]
pub(crate) fn link(to: &Path, link: &Path) -> Result<(), Error> {
    fs::copy(to, link).map_err(|e| Error::io("write", link, &e))?;
    Ok(())
}

#[cfg(any(feature = "archive", feature = "device-link"))]
const WILDCARDS: [char; 3] = ['*', '?', '['];

#[cfg(any(feature = "archive", feature = "device-link"))]
pub(crate) fn is_pattern(text: &str) -> bool {
    text.contains(WILDCARDS)
}

/// Directory above the first wildcard; empty for the package.
#[cfg(any(feature = "archive", feature = "device-link"))]
pub(crate) fn fixed_part(pattern: &str) -> &str {
    let end = pattern.find(WILDCARDS).unwrap_or(pattern.len());
    pattern[..end]
        .rsplit_once('/')
        .map_or("", |(directory, _)| directory)
}

/// Files that a pattern matches below a directory, sorted: at least one. `refuse` creates the error
/// for the pattern.
#[cfg(any(feature = "archive", feature = "device-link"))]
pub(crate) fn matching(
    root: &Path,
    pattern: &str,
    refuse: &dyn Fn(&str) -> Diagnostic,
) -> Result<Vec<PathBuf>, Box<Diagnostic>> {
    // `glob` accepts text only.
    let escaped_root = glob::Pattern::escape(&text(root)?);
    let pattern = if Path::new(pattern).is_absolute() {
        pattern.to_owned()
    } else {
        format!("{escaped_root}/{pattern}")
    };
    let paths = glob::glob(&pattern).map_err(|e| refuse(&format!("is not a pattern: {e}")))?;
    let mut files = Vec::new();
    for path in paths {
        let path = path.map_err(|e| unread(e.path(), e.error()))?;
        // A dangling link is kept: opening it reports the error.
        if fs::metadata(&path).map_or(true, |metadata| metadata.is_file()) {
            files.push(path);
        }
    }
    if files.is_empty() {
        Err(refuse("matches no file").into())
    } else {
        Ok(files)
    }
}

/// Help for a pattern without a match.
#[cfg(any(feature = "archive", feature = "device-link"))]
pub(crate) fn pattern_help(root: &Path) -> String {
    let root = root.display();
    format!("patterns are relative to {root}; `*` matches within a directory, `**` also below it")
}

#[cfg(any(feature = "archive", feature = "device-link"))]
pub(crate) fn unread(path: &Path, error: &std::io::Error) -> Diagnostic {
    let message = format!("cannot read {}: {error}", path.display());
    Diagnostic::error(&IO_ERROR, message)
}

/// Directories in which a new file could match, for cargo to watch. Not the package itself, which
/// may contain the target directory.
#[cfg(any(feature = "archive", feature = "device-link"))]
pub(crate) fn watched<'a>(patterns: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut directories: Vec<_> = patterns
        .filter(|pattern| is_pattern(pattern))
        .map(|pattern| fixed_part(pattern).to_owned())
        .filter(|directory| !directory.is_empty())
        .collect();
    directories.sort();
    directories.dedup();
    directories
}

/// A path as one line of UTF-8, the only form that cargo accepts.
pub(crate) fn text(path: &Path) -> Result<String, Box<Diagnostic>> {
    match path.to_str().filter(|text| !text.contains('\n')) {
        Some(text) => Ok(text.to_owned()),
        None => {
            let message = format!("{path:?} cannot be passed to cargo");
            let help =
                "use names of files and directories that are valid UTF-8 and have no line break";
            Err(Box::new(Diagnostic::error(&IO_ERROR, message).help(help)))
        }
    }
}

/// Temporary name next to `path`, renamed to it when complete: readers see no partial file.
pub(crate) fn sibling(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    name.into()
}

pub(crate) fn rename(from: &Path, to: &Path) -> Result<(), Error> {
    fs::rename(from, to).map_err(|e| Error::io("write", to, &e))
}

/// Removes a file, if it exists.
pub(crate) fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::io("remove", path, &e)),
        _ => Ok(()),
    }
}

/// Removes the files in `dir` that do not have one of these names.
pub(crate) fn remove_others(dir: &Path, keep: &[String]) -> Result<(), Error> {
    remove_unlisted(dir, keep).map_err(|e| Error::io("clear", dir, &e))
}

fn remove_unlisted(dir: &Path, keep: &[String]) -> std::io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        if keep.iter().all(|kept| name != kept.as_str()) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}
