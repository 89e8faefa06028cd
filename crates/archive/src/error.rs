//! Errors of the reader.

use core::fmt;

/// Reason for which a super-archive, or a part of it, cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The bytes do not begin as an archive does.
    NotAnArchive,
    /// An archive without views: an ordinary one, or one whose views another tool has dropped.
    NoViews,
    /// Written in a format that this reader does not know.
    UnsupportedVersion {
        /// The major version of that format.
        major: u16,
    },
    /// The archive is longer or shorter than it was when it was written.
    SizeMismatch {
        /// Its length in bytes then.
        written: u64,
        /// Its length in bytes now.
        found: u64,
    },
    /// A member is no longer where it was, or its header is another.
    MemberMoved {
        /// The index of the member.
        member: u32,
    },
    /// The contents of a member are not those that were written.
    HashMismatch {
        /// The index of the member.
        member: u32,
    },
    /// Numbers that point nowhere, or a table that is not as written.
    Malformed(Part),
}

/// A part of a super-archive.
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
