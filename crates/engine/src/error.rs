//! Errors of a build: human-readable text, and a code and a location for programs.

use std::fmt;
#[cfg(feature = "device-link")]
use std::ops::Range;
use std::path::Path;

use gpustub_core::by_name::ByName;
use gpustub_core::diag::{Code, Diagnostic, IO_ERROR, Level, LineColumn, line_column};
use gpustub_core::directives::Directive;

/// Reason why a build failed. The text names the next step and may have several lines.
#[derive(Clone)]
pub struct Error {
    code: Option<&'static Code>,
    location: Option<Location>,
    message: String,
}

/// A position in a text file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// Path of the file, as messages print it.
    pub file: String,
    /// Line, counted from 1.
    pub line: usize,
    /// Column, counted from 1; `None` if only the line is known.
    pub column: Option<usize>,
}

/// `GpuStub.toml:4:1`, as compilers print positions.
impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)?;
        match self.column {
            Some(column) => write!(f, ":{column}"),
            None => Ok(()),
        }
    }
}

impl Error {
    pub(crate) fn new(code: &'static Code, message: impl Into<String>) -> Self {
        Self {
            code: Some(code),
            location: None,
            message: Diagnostic::error(code, message).to_string(),
        }
    }

    /// An environment variable that cargo sets for build scripts is missing.
    pub(crate) fn unset(variable: &str) -> Self {
        let message = format!("error: the environment variable {variable} is not set");
        let error = Self {
            code: None,
            location: None,
            message,
        };
        error.help("gpustub-build works inside a build script, where cargo sets it")
    }

    /// Diagnostic code of the first problem; `None` outside of a build script, where cargo's
    /// variables are missing.
    pub fn code(&self) -> Option<&'static Code> {
        self.code
    }

    /// Position of the first problem in the user's files.
    pub fn location(&self) -> Option<&Location> {
        self.location.as_ref()
    }

    /// Adds the next step.
    pub(crate) fn help(mut self, help: impl fmt::Display) -> Self {
        self.message += &format!("\n  help: {help}");
        self
    }

    /// Puts a position before the message.
    #[cfg(feature = "device-link")]
    pub(crate) fn with_location(mut self, location: Location) -> Self {
        self.message = format!("{location}: {}", self.message);
        self.location = Some(location);
        self
    }

    /// Adds the command that failed. The last part: such lines are long.
    #[cfg(feature = "device-link")]
    pub(crate) fn command(mut self, line: &str) -> Self {
        self.message += &format!("\n  command: {line}");
        self
    }

    /// Adds the output of a tool. A long text is truncated to start near its first error: a hundred
    /// warnings may precede it.
    pub(crate) fn output(mut self, output: &[u8]) -> Self {
        const MAX_LINES: usize = 40;
        // Compilers print the chain of includes before the error.
        const LINES_BEFORE_ERROR: usize = 5;
        let text = String::from_utf8_lossy(output);
        let lines: Vec<_> = text.lines().collect();
        let first_error = lines
            .iter()
            .position(|line| line.contains("error") || line.contains("fatal"));
        let start = match first_error {
            Some(index) if lines.len() > MAX_LINES => index.saturating_sub(LINES_BEFORE_ERROR),
            _ => 0,
        };
        if start > 0 {
            self.message += &format!("\n  | … {start} lines");
        }
        let lines = &lines[start..];
        for line in lines.iter().take(MAX_LINES) {
            self.message += &format!("\n  | {line}");
        }
        if lines.len() > MAX_LINES {
            self.message += &format!("\n  | … and {} more lines", lines.len() - MAX_LINES);
        }
        self
    }

    /// A file or directory that could not be read or written.
    pub(crate) fn io(action: &str, path: &Path, error: &std::io::Error) -> Self {
        let message = format!("cannot {action} {}: {error}", path.display());
        let is_encoding = error.kind() == std::io::ErrorKind::InvalidData;
        let error = Self::new(&IO_ERROR, message);
        if is_encoding {
            // Windows shells write UTF-16 when output is redirected.
            error.help("save the file as UTF-8")
        } else {
            error
        }
    }

    /// All errors among diagnostics. `texts` are the files with their locations.
    pub(crate) fn from_diagnostics(diagnostics: &[Diagnostic], texts: &ByName<String>) -> Self {
        let mut error = Self {
            code: None,
            location: None,
            message: String::new(),
        };
        for diagnostic in diagnostics.iter().filter(|d| d.level == Level::Error) {
            let location = location(diagnostic, texts);
            if error.code.is_none() {
                error.code = Some(diagnostic.code);
                error.location = location.clone();
            } else {
                error.message.push('\n');
            }
            error.message += &located(diagnostic, location.as_ref());
        }
        error
    }
}

/// A diagnostic whose file's text is unknown.
impl From<Diagnostic> for Error {
    fn from(diagnostic: Diagnostic) -> Self {
        Self {
            code: Some(diagnostic.code),
            location: None,
            message: located(&diagnostic, None),
        }
    }
}

impl From<Box<Diagnostic>> for Error {
    fn from(diagnostic: Box<Diagnostic>) -> Self {
        (*diagnostic).into()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Same as `Display`: a build script whose `main` returns the error prints readable text.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// A text file of the user.
#[cfg(feature = "device-link")]
#[derive(Clone, Copy)]
pub(crate) struct SourceText<'a> {
    pub(crate) name: &'a str,
    pub(crate) text: &'a str,
}

#[cfg(feature = "device-link")]
impl SourceText<'_> {
    /// Position of the first byte of a span.
    pub(crate) fn location(&self, span: &Range<usize>) -> Location {
        let LineColumn { line, column } = line_column(self.text, span.start);
        Location {
            file: self.name.to_owned(),
            line,
            column: Some(column),
        }
    }
}

fn location(diagnostic: &Diagnostic, texts: &ByName<String>) -> Option<Location> {
    let origin = diagnostic.origin.as_ref()?;
    let LineColumn { line, column } = line_column(texts.get(&origin.file)?, origin.span.start);
    Some(Location {
        file: origin.file.clone(),
        line,
        column: Some(column),
    })
}

/// `GpuStub.toml:4:1: error[unknown-key]: …`, then the next step.
fn located(diagnostic: &Diagnostic, location: Option<&Location>) -> String {
    match (location, &diagnostic.origin) {
        (Some(location), _) => format!("{location}: {diagnostic}"),
        (None, Some(origin)) => format!("{}: {diagnostic}", origin.file),
        (None, None) => diagnostic.to_string(),
    }
}

/// Warnings among diagnostics as directives, one line each: cargo splits at line breaks.
pub(crate) fn warnings(diagnostics: &[Diagnostic], texts: &ByName<String>) -> Vec<Directive> {
    let mut lines = Vec::new();
    for warning in diagnostics.iter().filter(|d| d.level == Level::Warning) {
        let text = located(warning, location(warning, texts).as_ref());
        for line in text.lines() {
            lines.push(Directive::Warning(line.to_owned()));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpustub_core::diag::UNKNOWN_KEY;

    #[test]
    fn diagnostics_keep_code_and_location() {
        let text = "schema = 1\n[stub.cudart]\nmajor = 12\n";
        let start = text.find("major").unwrap();
        let diagnostic = Diagnostic::error(&UNKNOWN_KEY, "unknown key `major`")
            .with_origin("GpuStub.toml", start..start + 5)
            .help("did you mean `majors`?");
        let texts = ByName::from_iter([("GpuStub.toml".to_owned(), text.to_owned())]);
        let error = Error::from_diagnostics(&[diagnostic], &texts);
        assert_eq!(
            error.to_string(),
            "GpuStub.toml:3:1: error[unknown-key]: unknown key `major`\n  help: did you mean `majors`?"
        );
        assert_eq!(error.code(), Some(&UNKNOWN_KEY));
        assert_eq!(error.location().unwrap().to_string(), "GpuStub.toml:3:1");
    }

    #[test]
    fn long_output_of_a_tool_is_truncated() {
        let output = "x\n".repeat(100);
        let error = Error::new(&IO_ERROR, "no")
            .output(output.as_bytes())
            .to_string();
        assert_eq!(error.lines().count(), 42);
        assert!(error.ends_with("… and 60 more lines"), "{error}");
    }

    #[test]
    fn long_output_is_shown_from_its_error() {
        let output = format!("{}a.cu(1): error: no\n", "warning\n".repeat(100));
        let error = Error::new(&IO_ERROR, "no")
            .output(output.as_bytes())
            .to_string();
        assert!(error.contains("\n  | … 95 lines\n"), "{error}");
        assert!(error.ends_with("\n  | a.cu(1): error: no"), "{error}");
    }
}
