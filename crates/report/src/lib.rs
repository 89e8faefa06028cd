//! Output of `cargo gpustub`: diagnostics in each `--message-format`, status lines, errors, and changes
//! to files as values.

pub mod display_path;
pub mod error;
pub mod ops;
pub mod output;
pub mod report;
pub mod shell;
pub mod status_line;
pub mod stream;
