//! Workflow commands, which GitHub Actions shows beside the changed lines.
//! <https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands>

use gpustub_core::diag::{Diagnostic, Level, LineColumn};

use super::{Sources, place};

/// The diagnostic as a command, without a line break at its end.
pub fn render(diagnostic: &Diagnostic, sources: &Sources) -> String {
    let command = match diagnostic.level {
        Level::Note => "notice",
        Level::Warning => "warning",
        Level::Error => "error",
    };
    let mut properties = Vec::new();
    if let Some((file, position)) = place(diagnostic, sources) {
        properties.push(format!("file={}", property(&file)));
        if let Some(LineColumn { line, column }) = position {
            properties.push(format!("line={line},col={column}"));
        }
    }
    properties.push(format!("title=gpustub {}", property(diagnostic.code.id)));
    let mut message = diagnostic.message.clone();
    if let Some(help) = &diagnostic.help {
        message.push_str("\nhelp: ");
        message.push_str(help);
    }
    format!("::{command} {}::{}", properties.join(","), data(&message))
}

fn data(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
