//! Errors in files that should be shared libraries.

use std::fmt;
use std::path::{Path, PathBuf};

use gpustub_core::diag::{self, Diagnostic, listing};

/// Fault of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// The file cannot be opened, read or mapped; with the system's reason.
    Unreadable(String),
    /// The file is empty.
    Empty,
    /// A linker script; with the file that it names, if any.
    LinkerScript(Option<String>),
    /// An `ar` archive.
    Archive,
    /// An import library for several DLLs.
    SeveralDlls(Vec<String>),
    /// An import library for a DLL with this name, which no list can hold.
    DllName(String),
    /// A symbol list of gpustub.
    SymbolList,
    /// Another known kind of file: a PE image, a Mach-O image, LLVM bitcode.
    OtherFormat(&'static str),
    /// Code for GPUs, in a container or for one GPU; with its form.
    DeviceCode(String),
    /// An unknown kind of file.
    Unknown,
    /// The file ends before a part that its headers describe.
    Truncated(&'static str),
    /// Headers or tables contradict themselves.
    Malformed(&'static str),
    /// A file without a dynamic section: an object file, a static program, separate debug data.
    NoDynamicSymbols(&'static str),
    /// The library was built for another machine.
    Machine {
        /// Machine of the library.
        found: String,
        /// Requested machine.
        expected: String,
    },
    /// Required names are absent; each with the most similar name that exists.
    Missing(Vec<(String, Option<String>)>),
}

/// A [`Problem`] and its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    file: Option<PathBuf>,
    problem: Problem,
}

/// Maximum number of missing functions named in a message.
const MAX_NAMES_SHOWN: usize = 8;

impl Error {
    /// An error of the file at `path`.
    pub(crate) fn in_file(self, path: &Path) -> Self {
        Self {
            file: Some(path.to_owned()),
            ..self
        }
    }

    /// The fault.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// The next step for the user.
    pub fn help(&self) -> String {
        match &self.problem {
            Problem::Unreadable(_) => "check the path and the permissions".into(),
            Problem::LinkerScript(Some(target)) => {
                format!("give the file that the script names: `{target}`")
            }
            Problem::LinkerScript(None) => {
                "give the shared library that the script stands for".into()
            }
            Problem::Archive => {
                "archives have no load name and no versions: give the shared library, `.so` or `.dll`, or the DLL's import \
                 library"
                    .into()
            }
            Problem::DllName(_) => "give a copy of the DLL with a name without spaces, then write its name to `load-names` in \
                 GpuStub.toml"
                .into(),
            Problem::SeveralDlls(_) => "give one of the DLLs".into(),
            Problem::SymbolList => {
                "name it under `symbols` in GpuStub.toml; it needs no extraction".into()
            }
            Problem::OtherFormat(_) | Problem::Unknown => {
                "give an ELF shared library, such as `libname.so.1`, a DLL, or its import library, such as `name.lib` or \
                 `libname.dll.a`".into()
            }
            Problem::DeviceCode(_) => {
                "give the library for the host that loads this code: what a program links or opens".into()
            }
            Problem::Empty | Problem::Truncated(_) | Problem::Malformed(_) => {
                "the file is damaged or still being written: unpack or install it again".into()
            }
            Problem::NoDynamicSymbols(_) => {
                "give the shared library itself: what a program loads at run time".into()
            }
            Problem::Machine { expected, .. } => {
                format!("take the library from the packages for {expected}")
            }
            Problem::Missing(names) => match names.iter().find_map(|(_, near)| near.as_ref()) {
                Some(near) => format!("did you mean `{near}`? Or take a newer version of it"),
                None => "take a version of the library that has them, or drop them".into(),
            },
        }
    }

    /// The error as a diagnostic of the pipeline.
    pub fn diagnostic(&self) -> Diagnostic {
        let code = match &self.problem {
            Problem::Unreadable(_) => &diag::IO_ERROR,
            Problem::Machine { .. } => &diag::MACHINE_MISMATCH,
            Problem::Missing(_) => &diag::UNKNOWN_FUNCTION,
            _ => &diag::MALFORMED_LIBRARY,
        };
        Diagnostic::error(code, self.to_string()).help(self.help())
    }
}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        Self {
            file: None,
            problem,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            Some(file) => write!(f, "`{}` ", file.display())?,
            None => f.write_str("the file ")?,
        }
        self.problem.fmt(f)
    }
}

/// The predicate of a sentence about the file.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Unreadable(reason) => write!(f, "cannot be read: {reason}"),
            Problem::Empty => f.write_str("is empty"),
            Problem::LinkerScript(_) => f.write_str("is a linker script, not a library"),
            Problem::Archive => f.write_str("is a static archive, not a shared library"),
            Problem::SeveralDlls(dlls) => {
                write!(
                    f,
                    "is the import library of several DLLs: {}",
                    listing(dlls)
                )
            }
            Problem::DllName(name) => write!(
                f,
                "is the import library of `{}`: the name of a DLL must have no spaces",
                name.escape_debug()
            ),
            Problem::SymbolList => f.write_str("is a symbol list already, not a library"),
            Problem::OtherFormat(format) => write!(f, "is {format}, not a shared library"),
            Problem::DeviceCode(form) => write!(f, "is {form}, not a library for the host"),
            Problem::Unknown => {
                f.write_str("is neither an ELF shared library nor a DLL or its import library")
            }
            Problem::Truncated(what) => write!(f, "is truncated: incomplete {what}"),
            Problem::Malformed(what) => write!(f, "is malformed: {what}"),
            Problem::NoDynamicSymbols(kind) => {
                write!(f, "is {kind} and exports no dynamic symbols")
            }
            Problem::Machine { found, expected } => {
                write!(f, "is built for {found}, not for {expected}")
            }
            Problem::Missing(names) => {
                f.write_str("does not export ")?;
                for (i, (name, _)) in names.iter().take(MAX_NAMES_SHOWN).enumerate() {
                    write!(f, "{}`{name}`", if i == 0 { "" } else { ", " })?;
                }
                match names.len().saturating_sub(MAX_NAMES_SHOWN) {
                    0 => Ok(()),
                    more => write!(f, " and {more} more"),
                }
            }
        }
    }
}

impl std::error::Error for Error {}
