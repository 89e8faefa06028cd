//! `enum gpustub_archive_status`.

use std::ffi::{CStr, c_int};

use gpustub_archive::Error;

pub const OK: c_int = 0;
pub const NONE: c_int = 1;
pub const ARGUMENT: c_int = -1;
const NOT_AN_ARCHIVE: c_int = -2;
const NO_VIEWS: c_int = -3;
const VERSION: c_int = -4;
const MOVED: c_int = -6;
const CONTENTS: c_int = -7;
const DAMAGED: c_int = -8;
const ORDINARY: c_int = -5;
const OTHER: c_int = -9;

/// Status code of an error.
pub fn error_status(error: Error) -> c_int {
    match error {
        Error::NotAnArchive => NOT_AN_ARCHIVE,
        Error::NoViews => NO_VIEWS,
        Error::UnsupportedVersion { .. } => VERSION,
        Error::UnsupportedFeatures { .. }
        | Error::UnsupportedExtension { .. }
        | Error::UnsupportedContents { .. }
        | Error::Compressed { .. } => VERSION,
        Error::OrdinaryMembers { .. } | Error::IndexChanged | Error::IndexIncomplete { .. } => {
            ORDINARY
        }
        Error::MemberMoved { .. } => MOVED,
        Error::HashMismatch { .. } => CONTENTS,
        Error::Malformed(_) => DAMAGED,
        _ => OTHER,
    }
}

/// English text of a status.
pub fn text(status: c_int) -> &'static CStr {
    match status {
        OK => c"success",
        NONE => c"not found",
        ARGUMENT => {
            c"invalid argument: null or misaligned pointer, impossible size, or struct not opened"
        }
        NOT_AN_ARCHIVE => c"not an archive",
        NO_VIEWS => c"archive without the views of a super-archive",
        VERSION => c"super-archive requires a later reader",
        ORDINARY => c"super-archive changed: ordinary tools do not see its default view",
        MOVED => c"super-archive changed: a member was moved",
        CONTENTS => c"super-archive changed: the contents of a member do not match their hash",
        DAMAGED => c"malformed super-archive",
        _ => c"unknown error",
    }
}
