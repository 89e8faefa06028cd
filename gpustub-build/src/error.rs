//! The error of a build.

use std::fmt;

/// Reason why a build failed. The text names the next step and may have several lines.
///
/// ```
/// use gpustub_build::{Build, Env};
///
/// // Outside of a build script.
/// let error = Build::new().env(Env::from_iter([("PATH", "")])).try_build().unwrap_err();
/// assert_eq!(error.code(), None);
/// assert!(error.to_string().contains("CARGO_MANIFEST_DIR"), "{error}");
/// ```
#[derive(Clone)]
pub struct Error {
    error: gpustub_engine::Error,
}

impl Error {
    pub(crate) fn new(error: gpustub_engine::Error) -> Self {
        Self { error }
    }

    /// Diagnostic code of the first problem, for example `missing-compiler` or `unknown-key`;
    /// `cargo gpustub explain` explains it. `None` outside of a build script, where cargo's variables
    /// are missing.
    pub fn code(&self) -> Option<&'static str> {
        self.error.code().map(|code| code.id)
    }

    /// File of the first problem, as named in the text of the error.
    pub fn file(&self) -> Option<&str> {
        self.error.location().map(|location| location.file.as_str())
    }

    /// Line of the first problem in that file, counted from 1.
    pub fn line(&self) -> Option<usize> {
        self.error.location().map(|location| location.line)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

/// Same as `Display`: a build script whose `main` returns the error prints readable text.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for Error {}
