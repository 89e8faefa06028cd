//! Workflow commands, which GitHub Actions shows beside the changed lines.
//! <https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands>

use gpustub_core::diag::{Diagnostic, Level, LineColumn};

use super::{Sources, location};

/// The diagnostic as a command, without a line break at its end.
pub fn render(diagnostic: &Diagnostic, sources: &Sources) -> String {
    let command = match diagnostic.level {
        Level::Note => "notice",
        Level::Warning => "warning",
        Level::Error => "error",
    };
    let mut properties = Vec::new();
    if let Some((file, position)) = location(diagnostic, sources) {
        properties.push(format!("file={}", escape_property(&file)));
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
