//! The plan: all decisions about the generated files, as values.

use std::borrow::Cow;
use std::ops::Deref;

use crate::abi_table::AbiEntry;
use crate::by_name::ByName;
use crate::library::{Fallback, Hook, Library, LoadName, Preload};
use crate::manifest::{DlopenNote, LibraryType};
use crate::target::Target;
use crate::version::{HeaderVersion, Version};

/// Inputs of the planner in addition to the manifest: no file is read here.
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(Clone, Default)]
pub struct Inputs {
    /// The package's active cargo features; `None`: all count as on (commands outside a build).
    pub features: Option<Vec<String>>,
    /// Texts of the symbol lists that `GpuStub.toml` names, by the path given there.
    pub symbol_files: ByName<String>,
    /// Ids of the libraries that the build links themselves, without stubs ([`link_variable`]).
    ///
    /// [`link_variable`]: crate::library::link_variable
    pub linked: Vec<String>,
    /// Whether all libraries of toolkits need a header version, not only those with functions that depend on
    /// it: packages that share stubs must agree on it.
    pub require_header_versions: bool,
    /// Whether no image gets notes about the libraries that it opens, whatever `dlopen-note` says.
    pub omit_dlopen_notes: bool,
}

/// One function of a library, or data that the stub has a copy of.
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(PartialEq, Eq, Clone)]
pub struct Function {
    /// The exported name.
    pub name: String,
    /// Index into [`LibraryPlan::specs`].
    pub spec: u16,
}

/// Properties that several functions of a library share; most share number 0, a plain status function.
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Spec {
    /// Behaviour when the function cannot be called.
    pub fallback: Fallback,
    /// The function's own name, if its ABI differs between versions of the library:
    /// [`Library::abi`] has the names that are bound in that case.
    pub abi_name: Option<String>,
    /// Role beyond a call.
    pub hook: Option<Hook>,
    /// Number of bytes of data that the stub has a copy of; 0: a function.
    pub data_size: u32,
    /// Symbol version to bind (dlvsym) instead of the default one.
    pub symbol_version: Option<String>,
    /// Symbol bound where the library lacks the function.
    pub fallback_symbol: Option<String>,
}

/// Data of a library in a plan.
#[cfg_attr(feature = "tools", derive(Debug, Clone))]
#[derive(PartialEq, Eq)]
pub enum PlannedLibrary {
    /// A shipped library as it is.
    Shipped(&'static Library),
    /// A user-defined library, or a shipped one with changes of `GpuStub.toml`.
    Declared(Box<Library>),
}

#[cfg(feature = "tools")]
impl PlannedLibrary {
    /// The data, to change it.
    pub fn to_mut(&mut self) -> &mut Library {
        if let Self::Shipped(library) = *self {
            *self = Self::Declared(Box::new(library.clone()));
        }
        let Self::Declared(library) = self else {
            unreachable!("a shipped one was replaced");
        };
        library
    }

    /// The data, copied if they are those of a shipped library.
    pub fn into_owned(self) -> Library {
        match self {
            Self::Shipped(library) => library.clone(),
            Self::Declared(library) => *library,
        }
    }
}

impl Deref for PlannedLibrary {
    type Target = Library;

    fn deref(&self) -> &Library {
        match self {
            Self::Shipped(library) => library,
            Self::Declared(library) => library,
        }
    }
}

/// One library of the plan: its data and all decisions about it. `{arch}` is replaced in the
/// directories here, unlike in those of the library.
#[cfg_attr(feature = "tools", derive(Debug, Clone))]
#[derive(PartialEq, Eq)]
pub struct LibraryPlan {
    /// Data of the library.
    pub library: PlannedLibrary,
    /// Whether it is linked against. `false`: only its version is queried.
    pub stubbed: bool,
    /// Archive or shared library.
    pub library_type: LibraryType,
    /// Priority in the note of images that use the stubs.
    pub dlopen_note: DlopenNote,
    /// Names to load, in the order of majors decided for this program, unversioned last.
    pub load_names: Vec<LoadName>,
    /// The newest major that the manifest knows (0: none).
    pub newest_major: u32,
    /// The headers' version.
    pub header_version: Option<HeaderVersion>,
    /// The lowest accepted version.
    pub min_version: Option<Version>,
    /// Functions without which the library counts as unavailable.
    pub required_functions: Vec<String>,
    /// Directories to search first (`$ORIGIN` unexpanded).
    pub search_dirs: Vec<String>,
    /// [`Library::wheel_dirs`] of the target.
    pub wheel_dirs: Vec<String>,
    /// [`Library::root_subdirs`] of the target.
    pub root_subdirs: Vec<String>,
    /// [`Library::roots`] of the target.
    pub roots: Vec<String>,
    /// [`Library::preload`] of the target.
    pub preload: Vec<Preload>,
    /// [`Library::dirs_before_loader`] of the target.
    pub dirs_before_loader: Vec<String>,
    /// [`Library::dirs_after_loader`] of the target.
    pub dirs_after_loader: Vec<String>,
    /// Distinct specs; number 0 is the plain status function.
    pub specs: Cow<'static, [Spec]>,
    /// Sorted by name; empty when not stubbed.
    pub functions: Cow<'static, [Function]>,
}

impl LibraryPlan {
    /// Names in the note of images that use the stubs, newest major first. Package tools map an unversioned name
    /// to the package for development, so it is in the note only if there is no other.
    pub fn noted_names(&self) -> Vec<&str> {
        if self.dlopen_note == DlopenNote::Off {
            return Vec::new();
        }
        // `libOpenCL.so` has a major, too.
        let is_versioned = |name: &LoadName| name.name.contains(".so.");
        let are_versioned = self.load_names.iter().any(is_versioned);
        let mut noted: Vec<&LoadName> = Vec::new();
        for name in &self.load_names {
            if is_versioned(name) || !are_versioned {
                let index = noted.partition_point(|newer| newer.major >= name.major);
                noted.insert(index, name);
            }
        }
        noted.iter().map(|name| name.name.as_str()).collect()
    }

    /// ABI entries of a function by its name in the library.
    pub fn abi_entries(&self, name: &str) -> Vec<AbiEntry> {
        self.library.abi.entries(name, self.header_version)
    }
}

/// Path of the symbol list `path` of the manifest `file` in diagnostics: relative to the same
/// directory as the manifest's, so that users can open both.
pub fn symbol_list_path(file: &str, path: &str) -> String {
    match file.rfind(['/', '\\']) {
        Some(end) => format!("{}{path}", &file[..=end]),
        None => path.to_owned(),
    }
}

/// All libraries of one image, sorted by id.
#[cfg_attr(feature = "tools", derive(Debug, Clone))]
#[derive(PartialEq, Eq)]
pub struct Plan {
    /// Compilation target.
    pub target: Target,
    /// The libraries.
    pub libraries: Vec<LibraryPlan>,
    /// Libraries that the package uses but another one provides.
    pub required: Vec<String>,
    /// Names after `-l` of the libraries in [`Inputs::linked`].
    pub linked: Vec<String>,
}
