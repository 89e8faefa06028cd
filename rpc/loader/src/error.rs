//! Why there was no run, or no end of it: the reason, what to do about it, and the exit code.

use std::fmt;

/// Which exit code tells of it. As `timeout`, `env` and container runtimes have them, so that a program's
/// own codes are seldom taken for one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// There is no GPU here that can run the image: no driver, no device, or too old ones.
    NoGpu = 123,
    /// The program was still running when its time was over.
    TimedOut = 124,
    /// The loader failed: wrong usage, or a call of the driver.
    Failed = 125,
    /// The image cannot be run: it is none, or lacks what is asked for.
    NotRunnable = 126,
    /// There is no such image.
    NotFound = 127,
}

/// What a shell tells of a program that was aborted: 128 and the number of SIGABRT.
pub const ABORTED: u8 = 134;

/// Ends the loader.
#[derive(Debug)]
pub struct Error {
    /// What is told by the exit code.
    pub code: Code,
    /// What went wrong.
    pub message: String,
    /// The next step, where one is known.
    pub help: Option<String>,
}

/// The result of what may fail.
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

    /// The same, with a next step.
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
