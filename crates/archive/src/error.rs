//! What can be wrong.

use core::fmt;

/// Why something of a super-archive cannot be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The bytes do not begin as an archive does.
    NotAnArchive,
    /// An archive without views: an ordinary one, or one whose views another tool has dropped.
    NoViews,
    /// Written in a format that this reader does not know.
    Version {
        /// The major version of that format.
        major: u16,
    },
    /// The archive is longer or shorter than it was when it was written.
    Length {
        /// Its length in bytes then.
        written: u64,
        /// Its length in bytes now.
        found: u64,
    },
    /// A member is no longer where it was, or its header is another.
    Moved {
        /// The index of the member.
        member: u32,
    },
    /// The contents of a member are not those that were written.
    Contents {
        /// The index of the member.
        member: u32,
    },
    /// Numbers that point nowhere, or a table that is not as written.
    Damaged(Part),
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
            Self::NotAnArchive => f.write_str("this is no archive"),
            Self::NoViews => f.write_str("this archive has no views of a super-archive"),
            Self::Version { major } => {
                write!(
                    f,
                    "this super-archive is of format {major}, which this reader does not know"
                )
            }
            Self::Length { written, found } => write!(
                f,
                "this super-archive has been changed: it has {found} bytes, and was written with {written}"
            ),
            Self::Moved { member } => write!(
                f,
                "this super-archive has been changed: member {member} is not where it was"
            ),
            Self::Contents { member } => write!(
                f,
                "this super-archive has been changed: member {member} has other contents"
            ),
            Self::Damaged(part) => write!(f, "this super-archive is damaged in {part}"),
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Archive => "its first members",
            Self::Header => "the header of its tables",
            Self::Views => "its list of views",
            Self::Symbols => "a view's table of symbols",
            Self::Members => "its list of members",
        })
    }
}

impl core::error::Error for Error {}
