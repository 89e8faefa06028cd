//! Library types of stubs and of libraries with device code.

/// Library type, as in CMake: `static` (hidden symbols in an archive) or `shared` (exported symbols in a library).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LibraryType {
    /// An archive; the default.
    #[default]
    Static,
    /// A shared library.
    Shared,
}

impl LibraryType {
    /// The value of `type`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Static => "static",
            Self::Shared => "shared",
        }
    }
}
