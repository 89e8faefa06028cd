//! Compatible versions of headers.

use super::{AbiTable, insert_sorted};
use crate::library::Library;
use crate::version::{HeaderVersion, Version};

/// Mark of the headers in stubs: packages whose marks differ cannot share the stubs of a library.
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(Clone, PartialEq, Eq)]
pub enum HeadersMark {
    /// No mark: the library is in no toolkit, has no ABI table, and its package declares no version.
    Unmarked,
    /// No declared version: functions that depend on it are refused.
    Undeclared,
    /// Equal for all versions in which every function has the same ABI variant.
    Version(String),
}

impl HeadersMark {
    /// Mark of a library's stubs in a package that declares these headers.
    /// A user-defined library is `None`.
    pub fn new(library: Option<&Library>, header: Option<HeaderVersion>) -> Self {
        match (header, library) {
            (Some(header), Some(library)) => Self::Version(library.abi.headers_mark(header)),
            (Some(header), None) => Self::Version(AbiTable::default().headers_mark(header)),
            (None, Some(library)) if !library.abi.is_empty() || !library.family.is_empty() => {
                Self::Undeclared
            }
            (None, _) => Self::Unmarked,
        }
    }

    /// Whether packages with these marks can share stubs.
    pub fn is_compatible(&self, other: &Self) -> bool {
        *self == Self::Unmarked || *other == Self::Unmarked || self == other
    }
}

impl AbiTable {
    /// Version from which on no function has another ABI variant than in these headers, or the headers'
    /// version itself if variants differ within its range.
    fn headers_mark(&self, header: HeaderVersion) -> String {
        let newest = self.headers.last().map_or(0, |version| version.major);
        let changes = self.variant_changes();
        if header.from.major > newest {
            // Unknown headers are compatible with those of their major only.
            Version::new(header.from.major, 0).to_string()
        } else if changes
            .iter()
            .any(|change| *change > header.from && *change < header.below)
        {
            header.to_string()
        } else {
            changes
                .into_iter()
                .rfind(|change| *change <= header.from)
                .unwrap_or(Version::new(0, 0))
                .to_string()
        }
    }

    /// Versions in which a function has another ABI variant than before, ascending. A variant as which calls
    /// of the one before are passed as they are is not another.
    pub(crate) fn variant_changes(&self) -> Vec<Version> {
        let mut changes: Vec<Version> = Vec::new();
        for name in &self.names {
            let mut previous = None;
            for (version, variant) in &name.variants {
                let is_change = match (previous, *variant) {
                    (Some(previous), Some(variant)) => {
                        previous != variant && !self.is_passed(name.group, previous, variant)
                    }
                    _ => false,
                };
                if is_change {
                    insert_sorted(&mut changes, *version);
                }
                previous = variant.or(previous);
            }
        }
        changes
    }
}
