//! Errors of the reader.

use core::fmt;

/// Reason why a super-archive, or a part of it, cannot be read.
///
/// ```
/// use gpustub_archive::{Error, SuperArchive};
///
/// # let bytes = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sample.a"));
/// let cut = &bytes[..bytes.len() - 1];
/// match SuperArchive::parse(cut) {
///     Err(Error::SizeMismatch { written, found }) => assert_eq!(written, found + 1),
///     other => panic!("{other:?}"),
/// }
/// assert_eq!(SuperArchive::parse(b"text").unwrap_err(), Error::NotAnArchive);
/// assert_eq!(SuperArchive::parse(b"!<arch>\n").unwrap_err(), Error::NoViews);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The bytes do not begin with the magic of an archive.
    NotAnArchive,
    /// An archive without views: an ordinary one, or one whose views another tool has dropped.
    NoViews,
    /// Unknown major version of the format.
    UnsupportedVersion {
        /// The major version of that format.
        major: u16,
    },
    /// The archive is longer or shorter than when it was written.
    SizeMismatch {
        /// Original length in bytes.
        written: u64,
        /// Present length in bytes.
        found: u64,
    },
    /// A member was moved, or its header changed.
    MemberMoved {
        /// The index of the member.
        member: u32,
    },
    /// The contents of a member differ from those that were written.
    HashMismatch {
        /// The index of the member.
        member: u32,
    },
    /// An offset out of bounds, or a table that differs from the one that was written.
    Malformed(Part),
}

/// A part of a super-archive.
///
/// ```
/// use gpustub_archive::{Error, Part};
///
/// let error = Error::Malformed(Part::Symbols);
/// assert!(error.to_string().contains("symbol table"), "{error}");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Part {
    /// The headers of the archive's first members.
    Archive,
    /// The header of the tables.
    Header,
    /// The list of views.
    Views,
    /// The table of symbols of a view.
    Symbols,
    /// The list of members.
    Members,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAnArchive => f.write_str("not an archive"),
            Self::NoViews => f.write_str("archive without the views of a super-archive"),
            Self::UnsupportedVersion { major } => {
                write!(f, "unsupported format version {major} of a super-archive")
            }
            Self::SizeMismatch { written, found } => write!(
                f,
                "super-archive changed: {found} bytes, but {written} were written"
            ),
            Self::MemberMoved { member } => {
                write!(f, "super-archive changed: member {member} was moved")
            }
            Self::HashMismatch { member } => write!(
                f,
                "super-archive changed: contents of member {member} do not match their hash"
            ),
            Self::Malformed(part) => write!(f, "malformed super-archive: {part}"),
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Archive => "header of one of the first members",
            Self::Header => "header of the tables",
            Self::Views => "list of views",
            Self::Symbols => "symbol table of a view",
            Self::Members => "list of members",
        })
    }
}

impl core::error::Error for Error {}
