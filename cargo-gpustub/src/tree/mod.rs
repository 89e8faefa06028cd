//! What `sync` changes in a package, text to text: nothing here reads or writes a file.

pub mod build_rs;
pub mod cargo_toml;
pub mod lock;
mod rust;
pub mod use_line;

/// What an edit came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edit {
    /// The text is as it should be.
    Same,
    /// The new text.
    Changed(String),
    /// There is no place for it, for this reason.
    Impossible(&'static str),
}

/// The line break that a text uses.
fn line_break(text: &str) -> &'static str {
    match text.find('\n') {
        Some(at) if text[..at].ends_with('\r') => "\r\n",
        _ => "\n",
    }
}
