//! Workflow commands, which GitHub Actions shows beside the changed lines.
//! <https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands>

use std::path::Path;

use gpustub_core::diag::{Diagnostic, Level, LineColumn};

use super::{Sources, location};
use crate::display_path::slashes;

/// The current directory within the repository, with `/` at its end: the service reads paths as relative to the
/// repository, also of a step with `working-directory`. Empty at its root and outside.
pub fn directory(repository: Option<&Path>, current: &Path) -> String {
    let inner = repository.and_then(|repository| current.strip_prefix(repository).ok());
    match inner.map(slashes) {
        Some(inner) if !inner.is_empty() => inner + "/",
        _ => String::new(),
    }
}

/// The diagnostic as a command, without a line break at its end. Relative paths begin in `directory`.
pub fn render(diagnostic: &Diagnostic, sources: &Sources, directory: &str) -> String {
    let command = match diagnostic.level {
        Level::Note => "notice",
        Level::Warning => "warning",
        Level::Error => "error",
    };
    let mut properties = Vec::new();
    if let Some((file, position)) = location(diagnostic, sources) {
        let directory = if Path::new(&*file).is_absolute() {
            ""
        } else {
            directory
        };
        properties.push(format!(
            "file={}{}",
            escape_property(directory),
            escape_property(&file)
        ));
        if let Some(LineColumn { line, column }) = position {
            properties.push(format!("line={line},col={column}"));
        }
    }
    properties.push(format!(
        "title=gpustub {}",
        escape_property(diagnostic.code.id)
    ));
    let mut message = diagnostic.message.clone();
    if let Some(help) = &diagnostic.help {
        message.push_str("\nhelp: ");
        message.push_str(help);
    }
    format!("::{command} {}::{}", properties.join(","), escape(&message))
}

fn escape(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

fn escape_property(text: &str) -> String {
    escape(text).replace(':', "%3A").replace(',', "%2C")
}
