//! Errors of the reader.

use core::fmt;

/// Reason why a super-archive, or a part of it, cannot be read.
///
/// ```
/// use gpustub_archive::{Error, SuperArchive};
///
/// # let bytes = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sample.a"));
/// let mut archive = bytes.to_vec();
/// let tables = bytes.windows(16).position(|window| window == gpustub_archive::MAGIC);
/// // The word of required features.
/// archive[tables.expect("tables") + 24] |= 4;
/// let error = SuperArchive::parse(&archive).unwrap_err();
/// assert_eq!(error, Error::UnsupportedFeatures { bits: 4 });
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
    /// The archive requires features that this reader does not know.
    UnsupportedFeatures {
        /// The unknown bits.
        bits: u32,
    },
    /// The archive requires an extension that this reader does not know.
    UnsupportedExtension {
        /// Kind of the extension.
        kind: u32,
    },
    /// A member has flags, or is compressed in a form, that this reader does not know.
    UnsupportedContents {
        /// The index of the contents.
        contents: u32,
    },
    /// A member is compressed: see `Contents::decompress`.
    Compressed {
        /// The index of the contents.
        contents: u32,
    },
    /// The caller's function failed, or the result is not what was written.
    Decompression {
        /// The index of the contents.
        contents: u32,
    },
    /// A member was moved, or its header changed.
    MemberMoved {
        /// The index of its contents.
        contents: u32,
    },
    /// The contents of a member differ from those that were written.
    HashMismatch {
        /// The index of the contents.
        contents: u32,
    },
    /// The members that ordinary tools see are not those of the default view.
    OrdinaryMembers {
        /// Position of the first other one.
        position: u32,
    },
    /// In the archive's own index, a symbol has a member that the default view does not give it.
    IndexChanged,
    /// The archive's own index lacks symbols of the default view: ordinary tools may not find them.
    IndexIncomplete {
        /// Number of these symbols.
        missing: u32,
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
    /// The headers of the archive's members, or its index.
    Archive,
    /// The header of the tables.
    Header,
    /// The list of views.
    Views,
    /// A dictionary of symbols, or a row of it.
    Symbols,
    /// A list of members, or of layers.
    Members,
    /// The contents of members.
    Contents,
    /// The table of extensions.
    Extensions,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAnArchive => f.write_str("not an archive"),
            Self::NoViews => f.write_str("archive without the views of a super-archive"),
            Self::UnsupportedVersion { major } => {
                write!(f, "unsupported format version {major} of a super-archive")
            }
            Self::UnsupportedFeatures { bits } => {
                write!(f, "super-archive requires unknown features {bits:#x}")
            }
            Self::UnsupportedExtension { kind } => {
                write!(f, "super-archive requires an unknown extension {kind}")
            }
            Self::UnsupportedContents { contents } => {
                write!(f, "contents {contents} of a super-archive have an unknown form")
            }
            Self::Compressed { contents } => {
                write!(f, "contents {contents} of a super-archive are compressed")
            }
            Self::Decompression { contents } => {
                write!(f, "contents {contents} of a super-archive cannot be decompressed")
            }
            Self::MemberMoved { contents } => write!(
                f,
                "super-archive changed: the member with contents {contents} was moved"
            ),
            Self::HashMismatch { contents } => write!(
                f,
                "super-archive changed: contents {contents} do not match their hash"
            ),
            Self::OrdinaryMembers { position } => write!(
                f,
                "super-archive changed: ordinary member {position} is not that of the default view"
            ),
            Self::IndexChanged => f.write_str(
                "super-archive changed: its index gives a symbol another member than the default view",
            ),
            Self::IndexIncomplete { missing } => write!(
                f,
                "super-archive changed: its index lacks {missing} symbols of the default view"
            ),
            Self::Malformed(part) => write!(f, "malformed super-archive: {part}"),
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Archive => "headers or index of the archive",
            Self::Header => "header of the tables",
            Self::Views => "list of views",
            Self::Symbols => "symbol table of a view",
            Self::Members => "list of members",
            Self::Contents => "contents of members",
            Self::Extensions => "table of extensions",
        })
    }
}

impl core::error::Error for Error {}
