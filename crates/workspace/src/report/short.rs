//! One line each, as compilers print: `path:line:column: level[code]: message`.

use gpustub_core::diag::{Diagnostic, LineColumn};

use super::{Sources, level_name, location};

/// The diagnostic as one line, without a line break at its end.
pub fn render(diagnostic: &Diagnostic, sources: &Sources) -> String {
    let prefix = match location(diagnostic, sources) {
        Some((file, Some(LineColumn { line, column }))) => format!("{file}:{line}:{column}: "),
        Some((file, None)) => format!("{file}: "),
        None => String::new(),
    };
    format!(
        "{prefix}{}[{}]: {}",
        level_name(diagnostic.level),
        diagnostic.code.id,
        diagnostic.message.replace('\n', " ")
    )
}
