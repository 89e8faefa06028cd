//! Strings of the run time.

use core::ffi::CStr;
use core::fmt::{self, Write as _};

/// A string that stays valid until the process ends, or its image is unloaded. UTF-8 except for file names
/// in other encodings; when displayed, other bytes become U+FFFD.
///
/// ```no_run
/// let reason: gpustub::Text = gpustub::reason("cudart");
/// println!("{reason}");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Text(&'static CStr);

impl Text {
    pub(crate) fn new(string: &'static CStr) -> Self {
        Self(string)
    }

    /// The unchanged string.
    ///
    /// ```no_run
    /// let bytes = gpustub::reason("cudart").as_c_str().to_bytes();
    /// println!("{} bytes", bytes.len());
    /// ```
    pub fn as_c_str(self) -> &'static CStr {
        self.0
    }

    /// The string, if it is UTF-8.
    ///
    /// ```no_run
    /// if let Some(reason) = gpustub::reason("cudart").to_str() {
    ///     assert!(!reason.contains('\n'));
    /// }
    /// ```
    pub fn to_str(self) -> Option<&'static str> {
        self.0.to_str().ok()
    }

    /// Returns whether the string is empty.
    ///
    /// ```no_run
    /// if gpustub::reason("cudart").is_empty() {
    ///     println!("CUDA is available");
    /// }
    /// ```
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
