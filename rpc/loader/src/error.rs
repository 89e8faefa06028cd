//! Errors of the loader: message, help and exit code.

use std::fmt;

/// Exit codes of the loader, as of `timeout`, `env` and container runtimes, so that they are seldom mistaken for
/// the program's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// No GPU can run the image: no driver, no device, or too old ones.
    NoGpu = 123,
    /// The program was still running at the end of `--timeout`.
    TimedOut = 124,
    /// The loader failed: wrong usage, or a call of the driver.
    Failed = 125,
    /// The image cannot be run: it is not an image, or lacks a requested kernel.
    NotRunnable = 126,
    /// The image does not exist.
    NotFound = 127,
}

/// Exit code of an aborted program, as in shells: 128 plus the number of SIGABRT.
pub const ABORTED: u8 = 134;

/// An error that ends the loader.
#[derive(Debug)]
pub struct Error {
    /// Exit code.
    pub code: Code,
    /// Message.
    pub message: String,
    /// Next step, if one is known.
    pub help: Option<String>,
}

/// Result of a fallible operation.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error without a next step.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            help: None,
        }
    }

    /// Adds a next step.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.message)?;
        match &self.help {
            Some(help) => write!(f, "\nhelp: {help}"),
            None => Ok(()),
        }
    }
}
