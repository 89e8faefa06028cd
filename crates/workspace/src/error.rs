//! Errors that keep a command from running.

use crate::display_path::slashes;
use std::fmt;
use std::io;
use std::path::Path;

/// Ends a command with exit code 101. A fault *in* the user's files is a
/// [`gpustub_core::diag::Diagnostic`] instead.
#[derive(Debug)]
pub struct Error {
    /// The reason.
    pub message: String,
    /// The next step, if one is known.
    pub help: Option<String>,
}

/// Result of a fallible operation.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error without a next step.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            help: None,
        }
    }

    /// Adds a next step.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// "could not `verb` `path`: `cause`".
    pub fn io(verb: &str, path: &Path, cause: &io::Error) -> Self {
        let error = Self::new(format!("could not {verb} `{}`: {cause}", slashes(path)));
        // Windows shells write UTF-16 when output is redirected.
        match cause.kind() {
            io::ErrorKind::InvalidData => error.help("save the file as UTF-8"),
            _ => error,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
