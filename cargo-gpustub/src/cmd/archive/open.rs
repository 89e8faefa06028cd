//! Super-archives of the command line, and what their views and layers are called.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Deref;
use std::path::Path;

use gpustub_archive::{SuperArchive, View};
use gpustub_core::diag::{Diagnostic, MALFORMED_SUPER_ARCHIVE};
use gpustub_core::suggest::nearest;
use gpustub_workspace::display_path::slashes;
use gpustub_workspace::error::{Error, Result};
use gpustub_workspace::report::Sources;
use gpustub_workspace::shell::Shell;
use memmap2::Mmap;

/// Failure of a command on a super-archive.
pub enum Failure {
    /// The file is malformed: a finding.
    File(gpustub_archive::Error),
    /// The command cannot run.
    Command(Error),
}

impl From<gpustub_archive::Error> for Failure {
    fn from(error: gpustub_archive::Error) -> Self {
        Self::File(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Command(error)
    }
}

pub type ArchiveResult<T> = std::result::Result<T, Failure>;

/// Opens a super-archive and runs a command on it.
pub fn with_archive(
    path: &Path,
    shell: &mut Shell,
    command: impl FnOnce(&SuperArchive<'_>, &mut Shell) -> ArchiveResult<bool>,
) -> Result<bool> {
    let bytes = bytes_of(path).map_err(|e| Error::io("read", path, &e))?;
    let archive = SuperArchive::parse(&bytes).map_err(Failure::File);
    match archive.and_then(|archive| command(&archive, shell)) {
        Ok(is_clean) => Ok(is_clean),
        Err(Failure::Command(error)) => Err(error),
        Err(Failure::File(error)) => {
            let message = format!("`{}`: {error}", slashes(path));
            let diagnostic =
                Diagnostic::error(&MALFORMED_SUPER_ARCHIVE, message).help(help(&error));
            shell.diagnostics(&[diagnostic], &Sources::new())?;
            Ok(false)
        }
    }
}

fn help(error: &gpustub_archive::Error) -> &'static str {
    use gpustub_archive::Error as ArchiveError;
    match error {
        ArchiveError::NotAnArchive => "pass a file that `archive build` has written",
        ArchiveError::NoViews => {
            "`ar t` lists an ordinary archive; if another tool dropped the views, build it again"
        }
        ArchiveError::UnsupportedVersion { .. }
        | ArchiveError::UnsupportedFeatures { .. }
        | ArchiveError::UnsupportedExtension { .. }
        | ArchiveError::UnsupportedContents { .. }
        | ArchiveError::Compressed { .. } => "use a newer gpustub",
        ArchiveError::MemberMoved { .. } | ArchiveError::OrdinaryMembers { .. } => {
            "after `strip -g` or a tool like it, run `cargo gpustub archive refresh`; \
             otherwise build it again"
        }
        ArchiveError::IndexIncomplete { .. } | ArchiveError::IndexChanged => {
            "write the index again with `llvm-ranlib`, or `ranlib` with a plugin for LTO"
        }
        _ => "build it again; change its inputs with other tools, not the file",
    }
}

/// Contents of a file. A regular file is mapped, so only the accessed pages are read.
fn bytes_of(path: &Path) -> io::Result<Box<dyn Deref<Target = [u8]>>> {
    let mut file = File::open(path)?;
    if !file.metadata()?.is_file() {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        return Ok(Box::new(bytes));
    }
    // SAFETY: the map is private and read-only. If another process truncates the file while it is
    // read, this one receives SIGBUS, like every linker that maps its inputs; other changes only yield
    // other bytes, and the reader trusts none. `extract` does not overwrite its own input.
    let map = unsafe { Mmap::map(&file) }?;
    Ok(Box::new(map))
}

/// The view of this name, or all views.
pub fn views<'a>(archive: &SuperArchive<'a>, name: Option<&str>) -> ArchiveResult<Vec<View<'a>>> {
    let views: Vec<View<'a>> = archive.views().collect::<std::result::Result<_, _>>()?;
    let Some(name) = name else {
        return Ok(views);
    };
    if let Some(view) = archive.view(name)? {
        return Ok(vec![view]);
    }
    let names: Vec<String> = views.iter().map(|view| text(view.name())).collect();
    let error = Error::new(format!("unknown view `{name}`"));
    Err(Failure::Command(
        match nearest(name, names.iter().map(String::as_str)) {
            Some(near) => error.help(format!("did you mean `{near}`?")),
            None => error.help(format!("views are: {}", names.join(", "))),
        },
    ))
}

/// The names of a view's layers.
pub fn layers(view: &View<'_>) -> ArchiveResult<Vec<String>> {
    let mut names = Vec::new();
    for layer in view.layers() {
        names.push(text(layer?.name));
    }
    Ok(names)
}

/// A human-readable form of a name with any bytes.
pub fn text(name: &[u8]) -> String {
    let mut text = String::new();
    for letter in String::from_utf8_lossy(name).chars() {
        if letter.is_control() {
            text.extend(letter.escape_default());
        } else {
            text.push(letter);
        }
    }
    text
}

/// Rows in aligned columns, without trailing spaces.
pub fn columns(rows: &[Vec<String>]) -> String {
    let mut widths = vec![0; rows.iter().map(Vec::len).max().unwrap_or(0)];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (index, (cell, &width)) in row.iter().zip(&widths).enumerate() {
            let gap = if index == 0 { "" } else { "  " };
            let is_number = index > 0 && cell.starts_with(|c: char| c.is_ascii_digit());
            line += &if is_number {
                format!("{gap}{cell:>width$}")
            } else {
                format!("{gap}{cell:<width$}")
            };
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_escapes_control_characters() {
        assert_eq!(text(b"a\x1b[1m\xff\n"), "a\\u{1b}[1m\u{fffd}\\n");
    }
}
