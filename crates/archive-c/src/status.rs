//! `enum gpustub_archive_status`.

use std::ffi::{CStr, c_int};

use gpustub_archive::Error;

pub const OK: c_int = 0;
pub const NONE: c_int = 1;
pub const ARGUMENT: c_int = -1;
const NOT_AN_ARCHIVE: c_int = -2;
const NO_VIEWS: c_int = -3;
const VERSION: c_int = -4;
const LENGTH: c_int = -5;
const MOVED: c_int = -6;
const CONTENTS: c_int = -7;
const DAMAGED: c_int = -8;
const OTHER: c_int = -9;

/// The status of an error.
pub fn of(error: Error) -> c_int {
    match error {
        Error::NotAnArchive => NOT_AN_ARCHIVE,
        Error::NoViews => NO_VIEWS,
        Error::UnsupportedVersion { .. } => VERSION,
        Error::SizeMismatch { .. } => LENGTH,
        Error::MemberMoved { .. } => MOVED,
        Error::HashMismatch { .. } => CONTENTS,
        Error::Malformed(_) => DAMAGED,
        _ => OTHER,
    }
}

/// A sentence for a status.
pub fn text(status: c_int) -> &'static CStr {
    match status {
        OK => c"all is well",
        NONE => c"there is none",
        ARGUMENT => {
            c"a pointer is null or misaligned, a size impossible, or a struct was not opened"
        }
        NOT_AN_ARCHIVE => c"this is no archive",
        NO_VIEWS => c"this archive has no views of a super-archive",
        VERSION => c"this super-archive is of a format that this reader does not know",
        LENGTH => c"this super-archive has been changed: it has another length",
        MOVED => c"this super-archive has been changed: a member is not where it was",
        CONTENTS => c"this super-archive has been changed: a member has other contents",
        DAMAGED => c"this super-archive is damaged",
        _ => c"an error that has no number",
    }
}
