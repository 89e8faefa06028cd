//! Runs compilers and reads their output.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// Maximum output of a compiler, in bytes: the headers of a GPU library give a few millions.
pub const MAX_OUTPUT: u64 = 1 << 28;

/// Maximum part of a compiler's error output that is kept, in bytes.
const MAX_ERROR_OUTPUT: u64 = 1 << 16;

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
    /// The compiler wrote more than [`MAX_OUTPUT`].
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
                write!(f, "{program}: it wrote more than {} MiB", MAX_OUTPUT >> 20)
            }
            Self::Output(reason) => write!(f, "what clang wrote is not understood: {reason}"),
            Self::TwoMeanings(message) => f.write_str(message),
            Self::Nothing => f.write_str("no function is declared"),
        }
    }
}

impl std::error::Error for Error {}

/// Output of a command for the input `input`.
///
/// # Errors
///
/// Fails if the command cannot be run, fails, or writes more than [`MAX_OUTPUT`].
pub fn output(command: &mut Command, input: &str) -> Result<String, Error> {
    output_up_to(command, input, MAX_OUTPUT)
}

fn cannot_run(program: &str, cause: io::Error) -> Error {
    Error::Missing {
        program: program.to_owned(),
        cause,
    }
}

fn output_up_to(command: &mut Command, input: &str, limit: u64) -> Result<String, Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|cause| cannot_run(&program, cause))?;
    let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(mut stdin), Some(stdout), Some(mut stderr)) = pipes else {
        return Err(cannot_run(&program, io::Error::other("no pipes")));
    };
    // Concurrently: a compiler may write before it has read all input.
    let (mut output, mut error_output) = (Vec::new(), Vec::new());
    let result = std::thread::scope(|scope| {
        // Ignores errors: a compiler that stops early reports the reason itself.
        scope.spawn(move || stdin.write_all(input.as_bytes()));
        let error_output = &mut error_output;
        scope.spawn(move || {
            stderr
                .by_ref()
                .take(MAX_ERROR_OUTPUT)
                .read_to_end(error_output)
                .and_then(|_| io::copy(&mut stderr, &mut io::sink()))
        });
        let result = stdout.take(limit + 1).read_to_end(&mut output);
        if output.len() as u64 > limit {
            // Ends the other two threads as well.
            let _ = child.kill();
        }
        result
    });
    let status = child.wait().map_err(|cause| cannot_run(&program, cause))?;
    result.map_err(|cause| cannot_run(&program, cause))?;
    if output.len() as u64 > limit {
        return Err(Error::TooMuch { program });
    }
    if !status.success() {
        let message = if error_output.is_empty() {
            status.to_string()
        } else {
            String::from_utf8_lossy(&error_output).into_owned()
        };
        return Err(Error::Refused { program, message });
    }
    Ok(String::from_utf8_lossy(&output).into_owned())
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
    pub(crate) fn run(
        &self,
        arguments: &[&str],
        defines: &[String],
        source: &str,
    ) -> Result<String, Error> {
        let mut command = Command::new(&self.program);
        // Prevents a crash report in the directory for temporary files.
        command.args(["-x", "c", "-w", "-fno-crash-diagnostics"]);
        // Attributes of C23, as in rocsparse.h: `[[deprecated]]`.
        command.arg("-fdouble-square-bracket-attributes");
        command.args(arguments).args(&self.arguments);
        for define in defines {
            // `NAME` or `NAME VALUE`.
            command.arg(format!("-D{}", define.replacen(' ', "=", 1)));
        }
        output(command.arg("-"), source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, input: &str, limit: u64) -> Result<String, Error> {
        output_up_to(Command::new("sh").args(["-c", script]), input, limit)
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
        assert_eq!(message.len() as u64, MAX_ERROR_OUTPUT);
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
