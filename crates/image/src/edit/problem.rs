//! Reasons why an image is not edited.

use std::fmt;

/// Reason why an image is not edited.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum EditProblem {
    /// Another kind of file.
    NotElf,
    /// A 32-bit file.
    Elf32,
    /// A file of a big-endian machine.
    BigEndian,
    /// An object file, core dump or other ELF file that is neither program nor shared library.
    NotImage,
    /// An unsupported machine.
    Machine(String),
    /// The image has no dynamic section, or is a position-independent static program: it needs no library.
    Static,
    /// The image was prelinked: its relocations hold addresses of other libraries.
    Prelinked,
    /// The image names auditors or filtees, which are found by the names of other libraries.
    Filter(&'static str),
    /// More program or section headers than the ELF header can count.
    ManyHeaders,
    /// The image imports data, which a stub of functions cannot provide.
    Data(String),
    /// The program has a copy of a library's data (copy relocation).
    CopyRelocation(String),
    /// The image requires versions of a library that it does not need.
    NotLoaded(String),
    /// The image imports a function in two versions of one library.
    TwoVersions(String),
    /// A PE image with a signature (Authenticode), which an edit makes invalid.
    Signed,
    /// A PE image that the system loads only with a valid signature.
    MustBeSigned,
    /// A PE image that was bound to the addresses of other DLLs.
    Bound,
    /// A PE image whose DLLs are searched in some directories only, by the flags of LoadLibraryEx.
    SearchFlags(u16),
    /// A PE image that exports a function of a DLL to replace as its own.
    Forwarder(String),
    /// The image requires none of the libraries and imports.
    NotNeeded,
    /// The image has no place for new bytes.
    Layout(&'static str),
    /// The file ends before a part that its headers describe.
    Truncated(&'static str),
    /// Headers or tables contradict themselves.
    Malformed(&'static str),
    /// A name of the request is empty or contains a NUL byte, or one node stands for two libraries.
    Request(String),
    /// The edited image differs from the request: a fault of this editor.
    Verification(String),
}

impl fmt::Display for EditProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotElf => f.write_str("is not an ELF file"),
            Self::Elf32 => f.write_str("is a 32-bit image; only 64-bit images can be repaired"),
            Self::BigEndian => {
                f.write_str("is a big-endian image; only little-endian images can be repaired")
            }
            Self::NotImage => f.write_str("is neither a program nor a shared library"),
            Self::Machine(name) => {
                write!(f, "is built for {name}, whose images cannot be repaired")
            }
            Self::Static => f.write_str("is linked statically: it loads no library at start"),
            Self::Prelinked => f.write_str("is prelinked: undo it with `prelink --undo` first"),
            Self::Filter(tag) => write!(f, "has {tag}, which refers to libraries by name"),
            Self::ManyHeaders => f.write_str("has more headers than the ELF header can count"),
            Self::Data(symbol) => {
                write!(f, "imports the data `{symbol}`, which the stub lacks")
            }
            Self::CopyRelocation(symbol) => write!(
                f,
                "has a copy of the data `{symbol}` (copy relocation), which the stub lacks"
            ),
            Self::NotLoaded(file) => write!(
                f,
                "requires versions of `{file}`, which is no needed library of it"
            ),
            Self::TwoVersions(symbol) => {
                write!(f, "imports `{symbol}` in two versions; a stub has one")
            }
            Self::Signed => f.write_str(
                "is signed: a repair would make the signature invalid (`--unsign` removes it)",
            ),
            Self::MustBeSigned => f.write_str(
                "is loaded with a valid signature only (/INTEGRITYCHECK), which a repair makes invalid",
            ),
            Self::Bound => f.write_str(
                "is bound to the addresses of other DLLs (bind.exe): link it again",
            ),
            Self::SearchFlags(flags) => write!(
                f,
                "would not find a stub library in its directory: it was linked with \
                 /DEPENDENTLOADFLAG:{flags:#x}"
            ),
            Self::Forwarder(target) => write!(
                f,
                "exports `{target}` of a library to replace; a stub library replaces imports only"
            ),
            Self::NotNeeded => f.write_str("requires none of the libraries to replace"),
            Self::Layout(why) => write!(f, "has no place for new bytes: {why}"),
            Self::Truncated(what) => write!(f, "is truncated: incomplete {what}"),
            Self::Malformed(what) => write!(f, "is malformed: {what}"),
            Self::Request(what) => write!(f, "cannot be repaired as requested: {what}"),
            Self::Verification(what) => {
                write!(f, "was not repaired: {what} (this is a bug of gpustub)")
            }
        }
    }
}

impl std::error::Error for EditProblem {}
