//! The terminal: only this module prints.
//!
//! Status lines, warnings and errors go to standard error, like cargo's own; standard output
//! contains data only. A closed pipe (`| head`) is no error.

use std::io::{self, Write};

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use clap_cargo::style;
use gpustub_core::diag::Diagnostic;
use serde::Serialize;

use crate::error::{Error, Result};
use crate::output::{Color, MessageFormat, Verbosity};
use crate::report::base::Base;
use crate::report::{self, Sources};
use crate::status_line::{StatusLine, StatusLines};

/// Both output streams and their options.
pub struct Shell {
    out: AutoStream<io::Stdout>,
    err: AutoStream<io::Stderr>,
    styled: bool,
    verbosity: Verbosity,
    format: MessageFormat,
    lines: StatusLines,
    /// Collected document of `--message-format sarif`.
    sarif: report::sarif::Run,
}

impl Shell {
    /// The process's own streams.
    pub fn new(color: Color, verbosity: Verbosity, format: MessageFormat) -> Self {
        let choice = color.for_streams();
        let err = AutoStream::new(io::stderr(), choice);
        let styled = err.current_choice() != ColorChoice::Never;
        Self {
            out: AutoStream::new(io::stdout(), choice),
            err,
            styled,
            verbosity,
            format,
            lines: StatusLines::OFF,
            sarif: report::sarif::Run::default(),
        }
    }

    /// Enables status lines of long work, unless the output is quiet.
    pub fn enable_status_lines(&mut self, lines: StatusLines) {
        if self.verbosity > Verbosity::Quiet {
            self.lines = lines;
        }
    }

    /// The status line of work that may take long. Nothing may be printed before it is dropped.
    pub fn status_line(&self, verb: &'static str) -> StatusLine {
        let style = if self.styled {
            style::GOOD
        } else {
            Style::new()
        };
        StatusLine::new(self.lines, format!("{style}{verb:>12}{style:#}"))
    }

    /// Whether standard error has colours.
    pub fn is_styled(&self) -> bool {
        self.styled
    }

    /// Format of findings.
    pub fn format(&self) -> MessageFormat {
        self.format
    }

    /// A status line: `     Created GpuStub.toml`.
    pub fn status(&mut self, verb: &str, object: impl AsRef<str>) {
        if self.verbosity > Verbosity::Quiet {
            self.line(verb, object.as_ref(), style::GOOD);
        }
    }

    /// A status line of verbose output.
    pub fn detail(&mut self, verb: &str, object: impl AsRef<str>) {
        if self.verbosity > Verbosity::Normal {
            let style = AnsiColor::BrightCyan.on_default().bold();
            self.line(verb, object.as_ref(), style);
        }
    }

    /// A note without a location.
    pub fn note(&mut self, text: impl AsRef<str>) {
        if self.verbosity > Verbosity::Quiet {
            self.labelled("note", style::NOTE, text.as_ref(), None);
        }
    }

    /// The reason why a command ends with 101.
    pub fn error(&mut self, error: &Error) {
        if self.format == MessageFormat::Json {
            let failure = report::json::failure(error);
            let _ = self.json(&failure);
        }
        self.sarif.fail(error);
        self.labelled("error", style::ERROR, &error.message, error.help.as_deref());
    }

    /// Prints findings in the requested format: human-readable formats to standard error, formats for
    /// programs to standard output.
    pub fn diagnostics(&mut self, diagnostics: &[Diagnostic], sources: &Sources) -> Result<()> {
        let mut visible = Vec::from_iter(diagnostics);
        if self.verbosity == Verbosity::Quiet {
            visible.retain(|diagnostic| report::is_error(diagnostic));
        }
        if self.format == MessageFormat::Human {
            for group in report::human::grouped(&visible, sources) {
                let text = report::human::render(group[0], &group[1..], sources, self.styled);
                let _ = writeln!(self.err, "{text}\n");
            }
            return Ok(());
        }
        let base = Base::of_process();
        for diagnostic in visible {
            match self.format {
                MessageFormat::Human => {}
                MessageFormat::Short => {
                    let _ = writeln!(self.err, "{}", report::short::render(diagnostic, sources));
                }
                MessageFormat::Json => self.json(&report::json::finding(diagnostic, sources))?,
                MessageFormat::Sarif => self.sarif.add(diagnostic, sources, &base),
                MessageFormat::Github => {
                    let mut line = report::github::render(diagnostic, sources, &base);
                    line.push('\n');
                    self.data(line)?;
                }
            }
        }
        Ok(())
    }

    /// Writes the collected document at the end of a run, also of a failed one.
    pub fn finish(&mut self) -> Result<()> {
        if self.format != MessageFormat::Sarif {
            return Ok(());
        }
        let document = self.sarif.document();
        let mut text = serde_json::to_string_pretty(&document)
            .map_err(|e| Error::new(format!("could not write JSON: {e}")))?;
        text.push('\n');
        self.data(text)
    }

    /// Prints a JSON object on a separate line.
    pub fn json(&mut self, value: &impl Serialize) -> Result<()> {
        let mut line = serde_json::to_string(value)
            .map_err(|e| Error::new(format!("could not write JSON: {e}")))?;
        line.push('\n');
        self.data(line)
    }

    /// Prints data unchanged.
    pub fn data(&mut self, bytes: impl AsRef<[u8]>) -> Result<()> {
        match self
            .out
            .write_all(bytes.as_ref())
            .and_then(|()| self.out.flush())
        {
            Err(e) if e.kind() != io::ErrorKind::BrokenPipe => Err(Error::new(format!(
                "could not write to standard output: {e}"
            ))),
            _ => Ok(()),
        }
    }

    /// A unified diff, coloured line by line on a terminal.
    pub fn diff(&mut self, diff: &str) -> Result<()> {
        let mut text = String::with_capacity(diff.len());
        for line in diff.split_inclusive('\n') {
            let style = match line.as_bytes().first() {
                _ if line.starts_with("---") || line.starts_with("+++") => Style::new().bold(),
                Some(b'+') => AnsiColor::Green.on_default(),
                Some(b'-') => AnsiColor::Red.on_default(),
                Some(b'@') => AnsiColor::Cyan.on_default(),
                _ => Style::new(),
            };
            text.push_str(&format!(
                "{style}{}{style:#}\n",
                line.trim_end_matches('\n')
            ));
        }
        self.data(text)
    }

    fn line(&mut self, verb: &str, object: &str, style: Style) {
        let _ = writeln!(self.err, "{style}{verb:>12}{style:#} {object}");
    }

    fn labelled(&mut self, label: &str, style: Style, text: &str, help: Option<&str>) {
        let bold = Style::new().bold();
        let _ = writeln!(self.err, "{style}{label}{style:#}{bold}:{bold:#} {text}");
        if let Some(help) = help {
            let style = style::TRANSIENT;
            let _ = writeln!(self.err, "{style}help{style:#}{bold}:{bold:#} {help}");
        }
    }
}
