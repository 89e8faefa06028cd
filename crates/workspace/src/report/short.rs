//! One line each, as compilers print: `path:line:column: level[code]: message`.

use gpustub_core::diag::{Diagnostic, LineColumn};

use super::{Sources, level_name, place};

/// The diagnostic as one line, without a line break at its end.
pub fn render(diagnostic: &Diagnostic, sources: &Sources) -> String {
    let place = match place(diagnostic, sources) {
        Some((file, Some(LineColumn { line, column }))) => format!("{file}:{line}:{column}: "),
        Some((file, None)) => format!("{file}: "),
        None => String::new(),
    };
    let level = level_name(diagnostic.level);
    format!(
        "{place}{level}[{}]: {}",
        diagnostic.code.id,
        diagnostic.message.replace('\n', " ")
    )
}
