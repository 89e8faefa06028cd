//! Workflow commands, which GitHub Actions shows beside the changed lines.
//! <https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands>

use gpustub_core::diag::{Diagnostic, Level, LineColumn};

use super::base::Base;
use super::{Sources, location};

/// The diagnostic as a command, without a line break at its end. Its path begins in `base`.
pub fn render(diagnostic: &Diagnostic, sources: &Sources, base: &Base) -> String {
    let command = match diagnostic.level {
        Level::Note => "notice",
        Level::Warning => "warning",
        Level::Error => "error",
    };
    let mut properties = Vec::new();
    if let Some(origin) = &diagnostic.origin {
        let file = base.origin(origin);
        properties.push(format!("file={}", escape_property(&file.display())));
    }
    if let Some((_, Some(LineColumn { line, column }))) = location(diagnostic, sources) {
        properties.push(format!("line={line},col={column}"));
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
