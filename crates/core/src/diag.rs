//! Diagnostics: problem, location and next step.

mod codes;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

pub use codes::*;

/// Severity of a diagnostic.
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(PartialOrd, Ord, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Information; the command continues.
    Note,
    /// Probably a mistake; the command continues.
    Warning,
    /// The value returned with this diagnostic must not be used.
    Error,
}

/// Text of `explanations/ID.md` of the crate that uses the macro, without the newline at its end.
#[cfg(feature = "tools")]
#[macro_export]
macro_rules! explanation {
    ($id:literal) => {
        include_str!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/explanations/",
            $id,
            ".md"
        ))
        .trim_ascii_end()
    };
}

/// [`Code`](crate::diag::Code) of an id and a summary, explained by `explanations/ID.md`.
#[cfg(feature = "tools")]
#[macro_export]
macro_rules! code {
    ($id:literal, $summary:literal $(,)?) => {
        $crate::diag::Code {
            id: $id,
            summary: $summary,
            explanation: $crate::explanation!($id),
        }
    };
}

/// A kind of diagnostic. The table [`CODES`] generates the reference and `explain`.
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(PartialEq, Eq)]
pub struct Code {
    /// Stable kebab-case name, for example `unknown-key`.
    pub id: &'static str,
    /// One-line summary.
    pub summary: &'static str,
    /// A paragraph: why it matters and how to fix it.
    #[cfg(feature = "tools")]
    pub explanation: &'static str,
}

/// A location in a file, or in a member of an archive.
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(PartialEq, Eq, Clone)]
pub struct Origin {
    /// The file's path as the user would name it.
    pub file: String,
    /// Path in the file, if that is an archive or a static library; `!` separates nested archives.
    pub member: Option<String>,
    /// Byte range in the file's text.
    pub span: Range<usize>,
}

impl Origin {
    /// A location in a file that is no archive.
    pub fn new(file: impl Into<String>, span: Range<usize>) -> Self {
        Self {
            file: file.into(),
            member: None,
            span,
        }
    }

    /// Display path: `dist/a.whl!a/b.so` for a member.
    pub fn display(&self) -> Cow<'_, str> {
        match &self.member {
            Some(member) => Cow::Owned(format!("{}!{member}", self.file)),
            None => Cow::Borrowed(&self.file),
        }
    }
}

/// One finding.
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Kind.
    pub code: &'static Code,
    /// Severity.
    pub level: Level,
    /// Problem in one sentence, without a full stop.
    pub message: String,
    /// Location, if the problem concerns part of a file.
    pub origin: Option<Origin>,
    /// Description of the text at that location, in a few words (may be empty).
    pub label: String,
    /// Next step for the user.
    pub help: Option<String>,
}

impl Diagnostic {
    /// An error without a location.
    pub fn error(code: &'static Code, message: impl Into<String>) -> Self {
        Self {
            code,
            level: Level::Error,
            message: message.into(),
            origin: None,
            label: String::new(),
            help: None,
        }
    }

    /// A warning without a location.
    pub fn warning(code: &'static Code, message: impl Into<String>) -> Self {
        Self {
            level: Level::Warning,
            ..Self::error(code, message)
        }
    }

    /// A note without a location.
    pub fn note(code: &'static Code, message: impl Into<String>) -> Self {
        Self {
            level: Level::Note,
            ..Self::error(code, message)
        }
    }

    /// Sets a location in a file that is no archive.
    pub fn with_origin(self, file: impl Into<String>, span: Range<usize>) -> Self {
        self.with_location(Origin::new(file, span))
    }

    /// Sets the location.
    pub fn with_location(mut self, origin: Origin) -> Self {
        self.origin = Some(origin);
        self
    }

    /// Sets the label of the location.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// Sets the next step.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

/// `level[code]: message`, then the next step: the form without a source excerpt.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]: {}", self.level, self.code.id, self.message)?;
        if let Some(help) = &self.help {
            write!(f, "\n  help: {help}")?;
        }
        Ok(())
    }
}

/// Whether any of the diagnostics is an error.
pub fn has_errors(diagnostics: &[Diagnostic]) -> bool {
    diagnostics
        .iter()
        .any(|diagnostic| diagnostic.level == Level::Error)
}

/// Inserts a diagnostic of a file behind those of earlier locations.
pub(crate) fn insert(diagnostics: &mut Vec<Diagnostic>, diagnostic: Diagnostic) -> &mut Diagnostic {
    fn start(diagnostic: &Diagnostic) -> usize {
        let origin = diagnostic.origin.as_ref();
        origin.map_or(0, |origin| origin.span.start)
    }
    let index = diagnostics.partition_point(|earlier| start(earlier) <= start(&diagnostic));
    diagnostics.insert(index, diagnostic);
    &mut diagnostics[index]
}

/// A position in a text. Both numbers start at 1.
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(PartialEq, Eq, Clone, Copy)]
pub struct LineColumn {
    /// Line number.
    pub line: usize,
    /// Column number, in characters.
    pub column: usize,
}

/// Line and column of a byte offset in `text`.
pub fn line_column(text: &str, offset: usize) -> LineColumn {
    let mut end = offset.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let before = &text[..end];
    let line = before.bytes().filter(|&byte| byte == b'\n').count() + 1;
    let line_start = before.rfind('\n').map_or(0, |index| index + 1);
    let column = before[line_start..].chars().count() + 1;
    LineColumn { line, column }
}

/// The first few of the names, and the number of the others.
pub fn listing<S: AsRef<str>>(names: &[S]) -> String {
    const MAX_NAMES: usize = 5;
    let mut listing = String::new();
    for (index, name) in names.iter().take(MAX_NAMES).enumerate() {
        if index > 0 {
            listing.push_str(", ");
        }
        listing.push_str(name.as_ref());
    }
    if names.len() > MAX_NAMES {
        listing.push_str(&format!(" and {} more", names.len() - MAX_NAMES));
    }
    listing
}

/// The code of this id, for `explain`.
pub fn code(id: &str) -> Option<&'static Code> {
    CODES
        .binary_search_by(|code| code.id.cmp(id))
        .ok()
        .map(|index| CODES[index])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_sorted_and_complete() {
        assert!(
            CODES.is_sorted_by(|a, b| a.id < b.id),
            "sorted by id, each once"
        );
        for listed in CODES {
            let Code {
                id,
                summary,
                explanation,
            } = listed;
            let is_kebab_case = id.chars().all(|c| c.is_ascii_lowercase() || c == '-');
            assert!(!id.is_empty() && is_kebab_case, "{id}");
            assert!(!summary.is_empty() && !summary.ends_with('.'), "{id}");
            assert!(explanation.len() > 2 * summary.len(), "{id}: too short");
            assert!(explanation.contains("\n\n    "), "{id}: no example");
            assert!(
                explanation.lines().all(|line| line.len() <= 100),
                "{id}: too wide"
            );
            assert_eq!(code(id), Some(*listed));
        }
        assert_eq!(code("no-such-code"), None);
    }

    #[test]
    fn columns_are_counted_in_characters() {
        let text = "ab\nß€x\n";
        for (offset, expected) in [
            (0, (1, 1)),
            (2, (1, 3)),
            (3, (2, 1)),
            (5, (2, 2)),
            (6, (2, 2)), // inside €
            (8, (2, 3)),
            (10, (3, 1)),
            (usize::MAX, (3, 1)),
        ] {
            let LineColumn { line, column } = line_column(text, offset);
            assert_eq!((line, column), expected, "{offset}");
        }
    }

    #[test]
    fn display_is_one_line_and_the_next_step() {
        let warning = Diagnostic::warning(&UNKNOWN_KEY, "unknown key `a`").help("remove it");
        assert_eq!(
            warning.to_string(),
            "warning[unknown-key]: unknown key `a`\n  help: remove it"
        );
        assert!(!has_errors(&[warning, Diagnostic::note(&UNKNOWN_KEY, "x")]));
        assert!(has_errors(&[Diagnostic::error(&UNKNOWN_KEY, "x")]));
    }
}
