//! Human-readable output.

use std::fmt::Write;

use gpustub_workspace::output::MessageFormat;
use gpustub_workspace::shell::Shell;

/// Appends a row with its title, if it has values.
pub fn row(text: &mut String, title: &str, values: impl Iterator<Item = String>) {
    let values: Vec<String> = values.collect();
    if !values.is_empty() {
        let _ = writeln!(text, "    {title:<10}  {}", values.join(", "));
    }
}

/// Reports that the plan is not shown, in the human-readable formats only.
pub fn not_shown(shell: &mut Shell) {
    if [MessageFormat::Human, MessageFormat::Short].contains(&shell.format()) {
        shell.note("plan not shown: incomplete because of the errors above");
    }
}
