//! Output options: colours, verbosity and message format.

use clap::ValueEnum;

/// `--color`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal only
    Auto,
    /// Even in a pipe
    Always,
    /// Not at all
    Never,
}

impl Color {
    /// The choice for help and usage errors.
    pub fn for_clap(self) -> clap::ColorChoice {
        match self {
            Self::Auto => clap::ColorChoice::Auto,
            Self::Always => clap::ColorChoice::Always,
            Self::Never => clap::ColorChoice::Never,
        }
    }

    /// The choice for the streams.
    pub fn for_streams(self) -> anstream::ColorChoice {
        match self {
            Self::Auto => anstream::ColorChoice::Auto,
            Self::Always => anstream::ColorChoice::Always,
            Self::Never => anstream::ColorChoice::Never,
        }
    }
}

/// `--message-format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MessageFormat {
    /// With the marked source line, on standard error
    Human,
    /// A line each, on standard error
    Short,
    /// A JSON object a line, on standard output
    Json,
    /// Workflow commands of GitHub Actions, on standard output
    Github,
    /// One SARIF 2.1.0 document, on standard output
    Sarif,
}

/// Amount of status output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    /// Errors only.
    Quiet,
    /// Changes and results.
    Normal,
    /// Changes and results, and each checked package and file.
    Verbose,
}

/// `1 file`, `2 files`.
pub fn number(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
