//! Errors in the inputs of a super-archive.

use std::fmt;
use std::path::{Path, PathBuf};

/// Fault of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// The file cannot be opened, read or mapped; with the system's reason.
    Unreadable(String),
    /// The file is empty.
    Empty,
    /// The file ends before a part that its headers describe.
    Truncated(&'static str),
    /// Headers or tables contradict themselves.
    Malformed(&'static str),
    /// The file is neither an archive nor an object file nor bitcode.
    UnsupportedInput,
    /// The object file is of a format that this build does not read.
    DisabledFormat {
        /// The format.
        format: &'static str,
        /// Cargo feature that adds it, of `gpustub-build` as of this crate.
        feature: &'static str,
    },
    /// The directory has no files.
    EmptyDirectory,
    /// The super-archive has no view of that name, or no default view.
    UnknownView {
        /// The name; `None` for the default view.
        name: Option<String>,
        /// Names of the views that the super-archive has.
        known: Vec<String>,
    },
    /// The archive has a member with the tables of a super-archive, to which they do not belong here.
    LostViews,
    /// A changed member of a super-archive does not define this symbol any more.
    LostSymbol(String),
    /// A super-archive is malformed, or was changed by another tool.
    SuperArchive(gpustub_archive::Error),
}

/// A [`Problem`], with the file and the archive member that have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    file: Option<PathBuf>,
    member: Option<String>,
    problem: Problem,
}

impl Error {
    /// A file that cannot be opened, read or mapped.
    pub(crate) fn unreadable(path: &Path, reason: impl fmt::Display) -> Self {
        Self::from(Problem::Unreadable(reason.to_string())).in_file(path)
    }

    /// Adds the path of the file.
    pub(crate) fn in_file(self, path: &Path) -> Self {
        Self {
            file: Some(path.to_owned()),
            ..self
        }
    }

    /// Adds the name of the archive member.
    pub(crate) fn in_member(self, name: &[u8]) -> Self {
        Self {
            member: Some(String::from_utf8_lossy(name).into_owned()),
            ..self
        }
    }

    /// The fault.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// The next step for the user.
    pub fn help(&self) -> String {
        match &self.problem {
            Problem::Unreadable(_) => "check the path and the permissions".into(),
            Problem::Empty | Problem::Truncated(_) | Problem::Malformed(_) => {
                "the file is damaged or still being written: unpack or install it again".into()
            }
            Problem::UnsupportedInput => {
                "give a static library, a directory of object files, an object file, or \
                LLVM bitcode; of a universal (\"fat\") file, the part for one \
                machine, of clang's offload bundles and binaries that for one architecture"
                    .into()
            }
            Problem::DisabledFormat { feature, .. } => {
                format!("add feature `{feature}` to the build-dependency `gpustub-build`")
            }
            Problem::EmptyDirectory => {
                "check the path, and that the build step that writes its files has run".into()
            }
            Problem::UnknownView { known, .. } if known.is_empty() => "write it with views".into(),
            Problem::UnknownView { known, .. } => {
                format!("name one of its views: {}", known.join(", "))
            }
            Problem::LostViews => {
                "give the super-archive itself, or a view of it: `FILE:VIEW`; tools that \
                merge archives take its default view only"
                    .into()
            }
            Problem::LostSymbol(_) => "build it again from stripped members".into(),
            Problem::SuperArchive(_) => {
                "build it again, or run `cargo gpustub archive refresh` after `strip -g`".into()
            }
        }
    }
}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        Self {
            file: None,
            member: None,
            problem,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, &self.member) {
            (Some(file), None) => write!(f, "`{}` ", file.display())?,
            // As linkers name members.
            (Some(file), Some(member)) => write!(f, "`{}({member})` ", file.display())?,
            (None, _) => f.write_str("the file ")?,
        }
        match &self.problem {
            Problem::Unreadable(reason) => write!(f, "cannot be read: {reason}"),
            Problem::Empty => f.write_str("is empty"),
            Problem::Truncated(part) => write!(f, "is truncated: incomplete {part}"),
            Problem::Malformed(fault) => write!(f, "is malformed: {fault}"),
            Problem::UnsupportedInput => f.write_str("is neither an archive nor an object file"),
            Problem::DisabledFormat { format, feature } => {
                write!(
                    f,
                    "is a {format} object, and feature `{feature}` is disabled"
                )
            }
            Problem::EmptyDirectory => f.write_str("is a directory without files"),
            Problem::UnknownView {
                name: Some(name), ..
            } => write!(f, "has no view `{name}`"),
            Problem::UnknownView { name: None, .. } => {
                f.write_str("is a super-archive without a default view")
            }
            Problem::LostSymbol(symbol) => write!(f, "does not define `{symbol}` any more"),
            Problem::LostViews => {
                f.write_str("contains views of a super-archive that was merged into this archive")
            }
            Problem::SuperArchive(error) => write!(f, "is not a valid super-archive: {error}"),
        }
    }
}

impl std::error::Error for Error {}
