//! Priority of the ELF notes by which images name the libraries that they open.

/// Priority of a library in the note `.note.dlopen` (UAPI.12, "Priority definition"), or no note. `required` is
/// absent: a program with stubs starts without the library.
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub enum DlopenNote {
    /// Only full-featured installations need the library; the default.
    #[default]
    Suggested,
    /// Most installations need the library.
    Recommended,
    /// No note.
    Off,
}

impl DlopenNote {
    /// The value of `dlopen-note`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Suggested => "suggested",
            Self::Recommended => "recommended",
            Self::Off => "off",
        }
    }
}
