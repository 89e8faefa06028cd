//! What went wrong, readable without its source.

use std::fmt;
#[cfg(feature = "device-link")]
use std::ops::Range;
use std::path::Path;

use gpustub_core::by_name::ByName;
use gpustub_core::diag::{Code, Diagnostic, IO_ERROR, Level, line_column};
use gpustub_core::directives::Directive;

/// Why the stubs could not be built. Its text says what to do about it; it may have several lines.
#[derive(Clone)]
pub struct Error {
    message: String,
}

impl Error {
    pub(crate) fn new(code: &'static Code, message: impl Into<String>) -> Self {
        let message = Diagnostic::error(code, message).to_string();
        Self { message }
    }

    /// A variable that cargo sets for build scripts is missing.
    pub(crate) fn unset(variable: &str) -> Self {
        let message = format!("error: the environment variable {variable} is not set");
        Self { message }.help("gpustub-build works inside a build script, where cargo sets it")
    }

    /// The same, with a next step.
    pub(crate) fn help(mut self, help: impl fmt::Display) -> Self {
        self.message += &format!("\n  help: {help}");
        self
    }

    /// The same, about a place in a file.
    #[cfg(feature = "device-link")]
    pub(crate) fn at(mut self, place: String) -> Self {
        self.message = format!("{place}: {}", self.message);
        self
    }

    /// The same, with the command that failed. The last part: such lines are long.
    #[cfg(feature = "device-link")]
    pub(crate) fn command(mut self, line: &str) -> Self {
        self.message += &format!("\n  command: {line}");
        self
    }

    /// The same, with what a tool printed. Of a long text, the part from its first error on: a
    /// hundred warnings may stand before it.
    pub(crate) fn output(mut self, output: &[u8]) -> Self {
        const LINES: usize = 40;
        // In which file a file was included, which compilers say first.
        const BEFORE: usize = 5;
        let text = String::from_utf8_lossy(output);
        let lines: Vec<_> = text.lines().collect();
        let is_error = |line: &&str| line.contains("error") || line.contains("fatal");
        let first = match lines.iter().position(is_error) {
            Some(at) if lines.len() > LINES => at.saturating_sub(BEFORE),
            _ => 0,
        };
        if first > 0 {
            self.message += &format!("\n  | … {first} lines");
        }
        let shown = &lines[first..];
        for line in shown.iter().take(LINES) {
            self.message += &format!("\n  | {line}");
        }
        if shown.len() > LINES {
            self.message += &format!("\n  | … and {} more lines", shown.len() - LINES);
        }
        self
    }

    /// A file or folder that could not be read or written.
    pub(crate) fn io(doing: &str, path: &Path, error: &std::io::Error) -> Self {
        let failed = Self::new(
            &IO_ERROR,
            format!("cannot {doing} {}: {error}", path.display()),
        );
        // Windows shells write UTF-16 when output is redirected.
        match error.kind() {
            std::io::ErrorKind::InvalidData => failed.help("save the file as UTF-8"),
            _ => failed,
        }
    }

    /// The errors among diagnostics, all of them. `texts` are the files they are about.
    pub(crate) fn diagnostics(found: &[Diagnostic], texts: &ByName<String>) -> Self {
        let errors = found.iter().filter(|d| d.level == Level::Error);
        let errors: Vec<_> = errors.map(|d| located(d, texts)).collect();
        let message = errors.join("\n");
        Self { message }
    }
}

/// Of what is found without the texts of files.
#[doc(hidden)]
impl From<Diagnostic> for Error {
    fn from(found: Diagnostic) -> Self {
        let message = located(&found, &ByName::default());
        Self { message }
    }
}

#[doc(hidden)]
impl From<Box<Diagnostic>> for Error {
    fn from(found: Box<Diagnostic>) -> Self {
        (*found).into()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// As `Display`, so that a build script's `main` that returns it prints something readable.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl std::error::Error for Error {}

/// A file that the user wrote.
#[cfg(feature = "device-link")]
#[derive(Clone, Copy)]
pub(crate) struct Written<'a> {
    pub(crate) name: &'a str,
    pub(crate) text: &'a str,
}

#[cfg(feature = "device-link")]
impl Written<'_> {
    /// `GpuStub.toml:4:1`.
    pub(crate) fn place(&self, span: &Range<usize>) -> String {
        let (line, column) = line_column(self.text, span.start);
        format!("{}:{line}:{column}", self.name)
    }
}

/// `GpuStub.toml:4:1: error[unknown-key]: …`, then the next step.
fn located(diagnostic: &Diagnostic, texts: &ByName<String>) -> String {
    match &diagnostic.origin {
        None => diagnostic.to_string(),
        Some(origin) => match texts.get(&origin.file) {
            None => format!("{}: {diagnostic}", origin.file),
            Some(text) => {
                let (line, column) = line_column(text, origin.span.start);
                format!("{}:{line}:{column}: {diagnostic}", origin.file)
            }
        },
    }
}

/// The warnings among what was found, as cargo takes them: one line each.
pub(crate) fn warnings(found: &[Diagnostic], texts: &ByName<String>) -> Vec<Directive> {
    let warnings = found.iter().filter(|one| one.level == Level::Warning);
    let texts = warnings.map(|one| located(one, texts));
    let mut lines = Vec::new();
    for text in texts {
        lines.extend(text.lines().map(|line| Directive::Warning(line.to_owned())));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpustub_core::diag::UNKNOWN_KEY;

    #[test]
    fn a_diagnostic_is_shown_with_its_place() {
        let text = "schema = 1\n[stub.cudart]\nmajor = 12\n";
        let start = text.find("major").unwrap();
        let found = Diagnostic::error(&UNKNOWN_KEY, "unknown key `major`")
            .at("GpuStub.toml", start..start + 5)
            .help("did you mean `majors`?");
        let texts = ByName::from_iter([("GpuStub.toml".to_owned(), text.to_owned())]);
        assert_eq!(
            Error::diagnostics(&[found], &texts).to_string(),
            "GpuStub.toml:3:1: error[unknown-key]: unknown key `major`\n  help: did you mean `majors`?"
        );
    }

    #[test]
    fn long_output_of_a_tool_is_cut() {
        let output = "x\n".repeat(100);
        let error = Error::new(&IO_ERROR, "no")
            .output(output.as_bytes())
            .to_string();
        assert_eq!(error.lines().count(), 42);
        assert!(error.ends_with("… and 60 more lines"), "{error}");
    }

    #[test]
    fn of_long_output_the_error_is_shown() {
        let output = format!("{}a.cu(1): error: no\n", "warning\n".repeat(100));
        let error = Error::new(&IO_ERROR, "no")
            .output(output.as_bytes())
            .to_string();
        assert!(error.contains("\n  | … 95 lines\n"), "{error}");
        assert!(error.ends_with("\n  | a.cu(1): error: no"), "{error}");
    }
}
