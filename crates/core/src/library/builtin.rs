//! Shipped libraries.

use std::sync::OnceLock;

use gpustub_manifests::LIBRARIES;

use super::{Library, add_major};
use crate::version::{HeaderVersion, Version};

impl Library {
    /// The shipped library of this id. (A test keeps all shipped manifests readable.)
    pub fn builtin(id: &str) -> Option<&'static Self> {
        // Read once: a workspace requests the same few in each of its packages.
        static READ: [OnceLock<Option<Library>>; LIBRARIES.len()] =
            [const { OnceLock::new() }; LIBRARIES.len()];
        let index = Self::index(id)?;
        READ[index].get_or_init(|| Self::read_builtin(id)).as_ref()
    }

    /// Reads the files of a shipped library.
    pub(crate) fn read_builtin(id: &str) -> Option<Self> {
        let shipped = &LIBRARIES[Self::index(id)?];
        let file = format!("{id}.toml");
        let mut library = Self::parse(&file, shipped.manifest, shipped.symbols, shipped.abi).0?;
        library.errors = shipped.errors;
        library.inherit_search_keys();
        Some(library)
    }

    /// Index of a shipped library in [`LIBRARIES`].
    pub(crate) fn index(id: &str) -> Option<usize> {
        LIBRARIES.iter().position(|library| library.id == id)
    }

    /// The ids of all shipped libraries, sorted.
    pub fn builtin_ids() -> impl Iterator<Item = &'static str> {
        LIBRARIES.iter().map(|library| library.id)
    }

    /// Majors that `header-version` may name, newest first: those of the library, and of its toolkit, whose
    /// release all headers of a program have, also where the library's file names contain no major.
    pub fn header_majors(&self, os: &str) -> Vec<u32> {
        let mut majors = self.majors(os);
        if !majors.is_empty() {
            for release in self.toolkit_releases() {
                add_major(&mut majors, release.major);
            }
        }
        majors
    }

    /// Releases of the library's toolkit whose headers were read, ascending: those of the family's first ABI
    /// table, which has the last one of each major. Where the majors are the library's own, those of its own table.
    pub fn toolkit_releases(&self) -> &[Version] {
        let Some(family) = self.toolkit_family() else {
            return self.abi.headers();
        };
        for with_table in LIBRARIES.iter().filter(|library| !library.abi.is_empty()) {
            match Self::builtin(with_table.id) {
                Some(sibling) if sibling.toolkit_family() == Some(family) => {
                    return sibling.abi.headers();
                }
                _ => {}
            }
        }
        &[]
    }

    /// Last release of the major of `header`, if `header` is newer. Of the newest known major the last
    /// release is unknown.
    pub fn last_release_before(&self, header: HeaderVersion) -> Option<Version> {
        let version = header.from;
        let is_listed = self
            .symbols
            .releases
            .iter()
            .any(|release| release.major == version.major && *release >= version);
        if version.minor == 0 || is_listed {
            return None;
        }
        let releases = self.toolkit_releases();
        let is_complete = releases.last()?.major > version.major;
        let last_release = *releases
            .iter()
            .rfind(|release| release.major == version.major)?;
        (is_complete && last_release < version).then_some(last_release)
    }
}
