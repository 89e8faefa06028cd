//! Runs compilers and reads their output.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// Maximum output of a compiler, in bytes: the headers of a GPU library give a few millions.
pub const LIMIT: u64 = 1 << 28;

/// Maximum part of a compiler's error output that is kept, in bytes.
const COMPLAINTS: u64 = 1 << 16;

/// Reason why headers cannot be read.
#[derive(Debug)]
pub enum Error {
    /// The compiler cannot be run.
    Missing {
        /// Program name or path.
        program: String,
        /// System error.
        cause: io::Error,
    },
    /// The compiler reported an error.
    Refused {
        /// Program name or path.
        program: String,
        /// Error output, with file and line if the compiler names them.
        message: String,
    },
    /// The compiler wrote more than [`LIMIT`].
    TooMuch {
        /// Program name or path.
        program: String,
    },
    /// The compiler's output cannot be parsed, for this reason.
    Output(String),
    /// One name has two meanings in one version of the headers: the name and how they differ.
    TwoMeanings(String),
    /// The headers declare none of the requested functions.
    Nothing,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { program, cause } => write!(f, "{program}: {cause}"),
            Self::Refused { program, message } => write!(f, "{program}: {message}"),
            Self::TooMuch { program } => {
                write!(f, "{program}: it wrote more than {} MiB", LIMIT >> 20)
            }
            Self::Output(why) => write!(f, "what clang wrote is not understood: {why}"),
            Self::TwoMeanings(what) => f.write_str(what),
            Self::Nothing => f.write_str("no function is declared"),
        }
    }
}

impl std::error::Error for Error {}

/// Output of a command for the input `input`.
///
/// # Errors
///
/// Fails if the command cannot be run, fails, or writes more than [`LIMIT`].
pub fn output(command: &mut Command, input: &str) -> Result<String, Error> {
    limited(command, input, LIMIT)
}

fn limited(command: &mut Command, input: &str, limit: u64) -> Result<String, Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    let missing = |cause| Error::Missing {
        program: program.clone(),
        cause,
    };
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(missing)?;
    let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(mut stdin), Some(stdout), Some(mut stderr)) = pipes else {
        return Err(missing(io::Error::other("no pipes")));
    };
    // Concurrently: a compiler may write before it has read all input.
    let (mut text, mut complaints) = (Vec::new(), Vec::new());
    let read = std::thread::scope(|scope| {
        // Ignores errors: a compiler that stops early reports the reason itself.
        scope.spawn(move || stdin.write_all(input.as_bytes()));
        let complaints = &mut complaints;
        scope.spawn(move || {
            let kept = stderr.by_ref().take(COMPLAINTS).read_to_end(complaints);
            kept.and_then(|_| io::copy(&mut stderr, &mut io::sink()))
        });
        let mut stdout = stdout.take(limit + 1);
        let read = stdout.read_to_end(&mut text);
        if text.len() as u64 > limit {
            // Ends the other two threads as well.
            let _ = child.kill();
        }
        read
    });
    let status = child.wait().map_err(missing)?;
    read.map_err(missing)?;
    if text.len() as u64 > limit {
        return Err(Error::TooMuch { program });
    }
    if !status.success() {
        let message = match complaints.as_slice() {
            [] => status.to_string(),
            complaints => String::from_utf8_lossy(complaints).into_owned(),
        };
        return Err(Error::Refused { program, message });
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// clang with its arguments for all headers of one version.
#[derive(Debug, Clone)]
pub struct Clang {
    program: OsString,
    arguments: Vec<OsString>,
}

impl Clang {
    /// Creates a compiler from its name or path.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            arguments: Vec::new(),
        }
    }

    /// Adds a header directory; those that were added before are searched first.
    pub fn directory(self, directory: impl AsRef<Path>) -> Self {
        self.argument("-I").argument(directory.as_ref())
    }

    /// Adds an argument.
    pub fn argument(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    /// Output of clang for a C source.
    pub(crate) fn ask(
        &self,
        question: &[&str],
        defines: &[String],
        source: &str,
    ) -> Result<String, Error> {
        let mut command = Command::new(&self.program);
        // Prevents a crash report in the directory for temporary files.
        command.args(["-x", "c", "-w", "-fno-crash-diagnostics"]);
        command.args(question).args(&self.arguments);
        command.args(defines.iter().map(|define| argument(define)));
        output(command.arg("-"), source)
    }
}

/// Formats `NAME` or `NAME VALUE` for clang.
fn argument(define: &str) -> String {
    format!("-D{}", define.replacen(' ', "=", 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, input: &str, limit: u64) -> Result<String, Error> {
        limited(Command::new("sh").args(["-c", script]), input, limit)
    }

    #[test]
    fn output_is_limited() {
        assert_eq!(shell("cat", "abc", 3).unwrap(), "abc");
        let endless = shell("while :; do echo x; done", "", 3);
        assert!(matches!(endless, Err(Error::TooMuch { .. })), "{endless:?}");
        let loud = shell("head -c 1000000 /dev/zero | tr '\\0' x >&2; exit 3", "", 3);
        let Err(Error::Refused { message, .. }) = loud else {
            panic!("{loud:?}");
        };
        assert_eq!(message.len() as u64, COMPLAINTS);
    }

    #[test]
    fn a_program_that_reads_no_input_or_is_missing_does_not_hang() {
        let input = "x".repeat(1 << 20);
        assert_eq!(shell("exit 0", &input, 3).unwrap(), "");
        let silent = shell("exit 3", &input, 3).unwrap_err().to_string();
        assert_eq!(silent, "sh: exit status: 3");
        let missing = output(&mut Command::new("/nonexistent/clang"), "");
        assert!(matches!(missing, Err(Error::Missing { .. })), "{missing:?}");
    }
}
