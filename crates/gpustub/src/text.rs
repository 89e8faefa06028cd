//! Strings of the run time.

use core::ffi::CStr;
use core::fmt::{self, Write as _};

/// A string that stays valid until the process ends. UTF-8 except for file names in other
/// encodings; when displayed, other bytes become U+FFFD.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Text(&'static CStr);

impl Text {
    pub(crate) fn new(string: &'static CStr) -> Self {
        Self(string)
    }

    /// The unchanged string.
    pub fn as_c_str(self) -> &'static CStr {
        self.0
    }

    /// The string, if it is UTF-8.
    pub fn to_str(self) -> Option<&'static str> {
        self.0.to_str().ok()
    }

    /// Returns whether the string is empty.
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(text) = self.to_str() {
            return f.pad(text);
        }
        for chunk in self.0.to_bytes().utf8_chunks() {
            f.write_str(chunk.valid())?;
            if !chunk.invalid().is_empty() {
                f.write_char(char::REPLACEMENT_CHARACTER)?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
